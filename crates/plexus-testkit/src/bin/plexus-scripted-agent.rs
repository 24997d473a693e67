//! The scripted agent as a program: where a test or a hub expects `claude`, name this instead.

fn main() {
    std::process::exit(plexus_testkit::agent::run(std::env::args().skip(1).collect()));
}
