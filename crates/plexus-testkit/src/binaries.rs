//! The paths of the programs that tests start: from the environment, else from cargo's target directory. The test command builds them.

use std::path::{Path, PathBuf};

/// The hub's binary: `$PLEXUS_BIN`, else `target/<profile>/plexus` of the running test.
///
/// # Errors
/// If neither exists. The message says how to build it.
pub fn plexus() -> anyhow::Result<PathBuf> {
    find("PLEXUS_BIN", "plexus", "cargo build -p plexus")
}

/// The scripted agent's binary: `$PLEXUS_SCRIPTED_AGENT`, else `target/<profile>/plexus-scripted-agent`.
///
/// # Errors
/// If neither exists. The message says how to build it.
pub fn scripted_agent() -> anyhow::Result<PathBuf> {
    find("PLEXUS_SCRIPTED_AGENT", "plexus-scripted-agent", "cargo build -p plexus-testkit")
}

/// The MCP server that logs its requests: `$PLEXUS_TOOL_SERVER`, else `target/<profile>/plexus-tool-server`.
///
/// # Errors
/// If neither exists. The message says how to build it.
pub fn tool_server() -> anyhow::Result<PathBuf> {
    find("PLEXUS_TOOL_SERVER", "plexus-tool-server", "cargo build -p plexus-testkit")
}

fn find(variable: &str, name: &str, build: &str) -> anyhow::Result<PathBuf> {
    if let Some(given) = std::env::var_os(variable).filter(|v| !v.is_empty()) {
        return Ok(given.into());
    }
    beside(&std::env::current_exe()?, name)
        .ok_or_else(|| anyhow::anyhow!("no `{name}` beside this test: run `{build}` or set {variable}"))
}

/// A test is in `target/<profile>/deps/`, the programs are one directory above.
fn beside(test: &Path, name: &str) -> Option<PathBuf> {
    test.ancestors().skip(1).take(2).map(|dir| dir.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_in_the_profile_directory_above_the_test() {
        let target = tempfile::tempdir().unwrap();
        let profile = target.path().join("debug");
        std::fs::create_dir_all(profile.join("deps")).unwrap();
        std::fs::write(profile.join("plexus"), "").unwrap();
        assert_eq!(beside(&profile.join("deps/some_test-0123"), "plexus"), Some(profile.join("plexus")));
        assert_eq!(beside(&profile.join("deps/some_test-0123"), "other"), None);
    }
}
