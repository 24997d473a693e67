//! The scripted agent as a program, for tests to use in place of `claude`.

fn main() {
    std::process::exit(plexus_scripted_agent::run(std::env::args().skip(1).collect(), |_, _| None));
}
