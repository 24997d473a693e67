//! Checks whether Claude Code is installed, in a version that Plexus is tested with.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plexus_claude::{TESTED_VERSIONS, Version};

use super::{Finding, note, ok, problem};
use crate::environment;
use crate::terminal::one_line;

/// How long a program may take to print its version.
const VERSION_WITHIN: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Who chose the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChosenBy {
    /// The running hub, such as with `plexus up --claude PROGRAM`.
    RunningHub,
    /// The settings of the next hub.
    Settings,
}

pub(super) fn check(program: &Path, chosen_by: ChosenBy) -> Finding {
    let fix = match chosen_by {
        ChosenBy::RunningHub => {
            "install Claude Code, or set its path with --claude, PLEXUS_CLAUDE or `claude` in plexus.toml; then restart the hub"
        }
        ChosenBy::Settings => {
            "install Claude Code, or name it with --claude, PLEXUS_CLAUDE or `claude` in plexus.toml"
        }
    };
    let Some(path) = in_path(program) else {
        let missing = if program.components().count() > 1 { "is not a program" } else { "is not in PATH" };
        return problem("claude", format!("`{}` {missing}{}", program.display(), chosen_by.note()), fix);
    };
    let version_text = match version(&path) {
        Ok(version_text) => version_text,
        Err(why) => {
            let found = format!("{}: {why}{}", path.display(), chosen_by.note());
            return problem("claude", found, format!("run `{} --version` to see the error", path.display()));
        }
    };
    let Some(version) = Version::printed(&version_text) else {
        let found = format!("{} is not Claude Code: it reports \"{version_text}\"", path.display());
        return problem("claude", format!("{found}{}", chosen_by.note()), fix);
    };
    let found = format!("{}: {version_text}{}", path.display(), chosen_by.note());
    let [oldest, .., newest] = TESTED_VERSIONS;
    if version < Version::OLDEST {
        return problem("claude", found, format!("update it: {oldest} or later is required"));
    }
    if Some(version) > Version::parse(newest) {
        return note(
            "claude",
            found,
            format!("newer than {newest}, the newest version Plexus is tested with"),
        );
    }
    ok("claude", found)
}

impl ChosenBy {
    fn note(self) -> &'static str {
        match self {
            Self::RunningHub => " (used by the running hub)",
            Self::Settings => "",
        }
    }
}

fn in_path(program: &Path) -> Option<PathBuf> {
    let is_program =
        |path: &PathBuf| path.metadata().is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0);
    if program.components().count() > 1 {
        return Some(program.to_owned()).filter(is_program);
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(program)).find(is_program)
}

fn version(program: &Path) -> Result<String, String> {
    let mut command = Command::new(program);
    command
        .arg("--version")
        .env_clear()
        .envs(environment::chosen(std::env::vars_os(), &[]).unwrap_or_default());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
    let started = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break status,
            None if started.elapsed() > VERSION_WITHIN => {
                let _ = child.kill();
                let _ = child.wait();
                return Err("does not print its version".to_owned());
            }
            None => std::thread::sleep(POLL_INTERVAL),
        }
    };
    let mut version_text = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        let _ = stdout.read_to_string(&mut version_text);
    }
    if status.success() { Ok(one_line(&version_text, 100)) } else { Err(format!("it failed ({status})")) }
}

#[cfg(test)]
mod tests {
    use super::super::Health;
    use super::*;

    #[test]
    fn a_missing_claude_is_a_problem_with_a_fix() {
        let finding = check(Path::new("/nowhere/claude"), ChosenBy::Settings);
        assert_eq!(finding.health, Health::Problem);
        assert!(finding.fix.unwrap().contains("PLEXUS_CLAUDE"));
    }
}
