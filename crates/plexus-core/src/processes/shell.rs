//! The shell in which Claude Code runs tool calls. Claude Code supports zsh and bash and prefers zsh by default. The
//! policy's parser is exact for bash only, so every child is started with a known bash. This module finds it and
//! overrides all other shell settings in the environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The variable that names the shell of tool calls. Claude Code prefers it to `SHELL` and to the shells in `PATH`.
pub(crate) const SHELL_VARIABLE: &str = "CLAUDE_CODE_SHELL";

/// The variable that names a program to which Claude Code passes every command line instead of running it.
pub(crate) const PREFIX_VARIABLE: &str = "CLAUDE_CODE_SHELL_PREFIX";

/// Directories that only the system administrator can write to. They are searched before `PATH`, because a child may be
/// able to write to the directories in `PATH`.
const SYSTEM_DIRECTORIES: [&str; 4] = ["/bin", "/usr/bin", "/usr/local/bin", "/run/current-system/sw/bin"];

/// Makes bash the shell of the tool calls of a child with this environment. On a host without bash, Claude Code chooses
/// a shell itself, by the hub's `SHELL` and the child's `PATH`.
pub(crate) fn fix_shell(env: &mut BTreeMap<OsString, OsString>) {
    choose(env, find_bash(), std::env::var_os("SHELL"));
}

fn choose(env: &mut BTreeMap<OsString, OsString>, bash: Option<PathBuf>, fallback: Option<OsString>) {
    for name in [SHELL_VARIABLE, PREFIX_VARIABLE, "SHELL"] {
        env.remove(&OsString::from(name));
    }
    if let Some(bash) = bash {
        env.insert("SHELL".into(), bash.clone().into());
        env.insert(SHELL_VARIABLE.into(), bash.into());
    } else if let Some(fallback) = fallback {
        env.insert("SHELL".into(), fallback);
    }
}

/// The bash that agents run their commands with; `None` if this machine has none.
pub fn find_bash() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = SYSTEM_DIRECTORIES.iter().map(PathBuf::from);
    first_bash(system.chain(std::env::split_paths(&path).filter(|directory| directory.is_absolute())))
}

fn first_bash(directories: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    directories.map(|directory| directory.join("bash")).find(|program| is_executable(program))
}

fn is_executable(program: &Path) -> bool {
    program.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given() -> BTreeMap<OsString, OsString> {
        [("SHELL", "/bin/zsh"), (SHELL_VARIABLE, "/tmp/bash"), (PREFIX_VARIABLE, "/tmp/run"), ("A", "b")]
            .map(|(name, value)| (name.into(), value.into()))
            .into()
    }

    fn plain(env: &BTreeMap<OsString, OsString>) -> Vec<(&str, &str)> {
        env.iter().map(|(name, value)| (name.to_str().unwrap(), value.to_str().unwrap())).collect()
    }

    #[test]
    fn variables_of_a_session_do_not_choose_the_shell() {
        let mut env = given();
        choose(&mut env, Some("/bin/bash".into()), Some("/bin/fish".into()));
        assert_eq!(plain(&env), [("A", "b"), (SHELL_VARIABLE, "/bin/bash"), ("SHELL", "/bin/bash")]);
    }

    #[test]
    fn without_bash_the_hubs_own_shell_is_used() {
        let mut env = given();
        choose(&mut env, None, Some("/bin/zsh".into()));
        assert_eq!(plain(&env), [("A", "b"), ("SHELL", "/bin/zsh")]);
        let mut env = given();
        choose(&mut env, None, None);
        assert_eq!(plain(&env), [("A", "b")]);
    }

    #[test]
    fn a_file_that_is_not_executable_is_not_used_as_a_shell() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second, third] = ["a", "b", "c"].map(|name| folder.path().join(name));
        std::fs::create_dir_all(first.join("bash")).unwrap();
        for (directory, mode) in [(&second, 0o644), (&third, 0o755)] {
            std::fs::create_dir(directory).unwrap();
            std::fs::write(directory.join("bash"), "").unwrap();
            std::fs::set_permissions(directory.join("bash"), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let found = first_bash([first, second, third.clone()].into_iter());
        assert_eq!(found, Some(third.join("bash")));
    }
}
