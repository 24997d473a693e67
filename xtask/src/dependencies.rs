//! Checks of the dependency graph that no compiler makes. The program that users install must not contain test code.

use std::process::Command;

/// All packages that are linked into the package `plexus` or run to build it.
fn packages_of_plexus() -> Vec<String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["tree", "--package", "plexus", "--edges", "normal,build", "--prefix", "none", "--offline"]);
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    tree.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn the_program_does_not_depend_on_the_test_kit() {
    let packages = packages_of_plexus();
    let depends_on = |name: &str| packages.iter().any(|package| package == name);
    assert!(depends_on("plexus-core") && depends_on("plexus-scripted-agent"), "{packages:?}");
    assert!(!depends_on("plexus-testkit"), "{packages:?}");
}
