//! The setting `claude`: the command that starts Claude Code. This module parses its flag, rejects a command line that was written
//! as one program, and finds the program as the system does. `plexus-agent` defines which commands are valid.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};
use plexus_core::Launcher;

use crate::error::{ExpectedError, system};

/// Parses the value of `--claude` and `PLEXUS_CLAUDE`.
pub(crate) fn launcher_parser() -> impl TypedValueParser<Value = Launcher> {
    OsStringValueParser::new().try_map(Launcher::parse)
}

/// The command to use: its program exists if its name contains a space, and a relative path is resolved.
pub(super) fn chosen(claude: Launcher) -> Result<Launcher, ExpectedError> {
    let text = claude.program().to_string_lossy();
    if text.contains(char::is_whitespace) && claude.first_args().is_empty() && find(&claude).is_none() {
        let words = serde_json::json!(text.split_whitespace().collect::<Vec<_>>());
        return Err(ExpectedError::Settings(format!(
            "`claude` is set to `{text}`, which is not a program; to pass arguments, write an array: {words}"
        )));
    }
    claude.located().map_err(system)
}

/// The file of the program, as its path or through `PATH`; `None` if there is no such program.
pub(crate) fn find(claude: &Launcher) -> Option<PathBuf> {
    let is_program =
        |path: &PathBuf| path.metadata().is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0);
    let program: &Path = claude.program();
    if claude.is_path() {
        return Some(program.to_owned()).filter(is_program);
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(program)).find(is_program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(path: impl Into<PathBuf>) -> Launcher {
        Launcher::program_only(path).unwrap()
    }

    #[test]
    fn a_command_line_in_one_string_is_rejected_with_the_array() {
        for text in ["npx -y @anthropic-ai/claude-code", "no-such-program -y"] {
            let refused = chosen(program(text)).unwrap_err().to_string();
            let array = serde_json::json!(text.split(' ').collect::<Vec<_>>()).to_string();
            assert!(refused.ends_with(&format!("write an array: {array}")), "{refused}");
        }
    }

    #[test]
    fn the_path_of_a_program_may_contain_spaces() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("my claude");
        std::os::unix::fs::symlink("/bin/sh", &path).unwrap();
        assert_eq!(chosen(program(&path)).unwrap().program(), path);
        let array = Launcher::of_words(vec!["/no such".to_owned(), "-y".to_owned()]).unwrap();
        assert_eq!(chosen(array.clone()).unwrap(), array, "an array says what is the program");
    }
}
