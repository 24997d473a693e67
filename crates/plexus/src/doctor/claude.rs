//! Checks whether Claude Code is installed, in a version that Plexus is tested with.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use plexus_claude::{TESTED_VERSIONS, TooOld, Version};
use plexus_core::Launcher;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};

use super::{Finding, note, ok, problem};
use crate::environment;
use crate::settings::claude::find;
use crate::terminal::one_line;

/// How long a program may take to print its version. A launcher may have to download Claude Code first.
const VERSION_WITHIN: Duration = Duration::from_secs(20);
/// The maximum length of the printed version, in bytes.
const MAX_PRINTED: u64 = 1024;

/// Who chose the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChosenBy {
    /// The running hub, such as with `plexus up --claude PROGRAM`.
    RunningHub,
    /// The settings of the next hub.
    Settings,
}

pub(super) fn check(launcher: &Launcher, chosen_by: ChosenBy) -> Finding {
    let fix = match chosen_by {
        ChosenBy::RunningHub => {
            "install Claude Code, or set its path with --claude, PLEXUS_CLAUDE or `claude` in plexus.toml; then restart the hub"
        }
        ChosenBy::Settings => {
            "install Claude Code, or name it with --claude, PLEXUS_CLAUDE or `claude` in plexus.toml"
        }
    };
    let Some(path) = find(launcher) else {
        let missing = if launcher.is_path() { "is not a program" } else { "is not in PATH" };
        let program = launcher.program().display();
        return problem("claude", format!("`{program}` {missing}{}", chosen_by.note()), fix);
    };
    let command = [&[path.to_string_lossy().into_owned()], launcher.first_args()].concat().join(" ");
    let printed = match version(&path, launcher.first_args()) {
        Ok(printed) => printed,
        Err(why) => {
            let found = format!("{command}: {why}{}", chosen_by.note());
            return problem("claude", found, format!("run `{command} --version` to see the error"));
        }
    };
    let version_text = one_line(&printed, 100);
    let Some(version) = Version::printed(&printed) else {
        let found = format!("{command} is not Claude Code: it reports \"{version_text}\"");
        return problem("claude", format!("{found}{}", chosen_by.note()), fix);
    };
    let found = format!("{command}: {version_text}{}", chosen_by.note());
    let [.., newest] = TESTED_VERSIONS;
    if let Err(too_old) = version.check() {
        return problem("claude", format!("{command}: {too_old}{}", chosen_by.note()), TooOld::FIX);
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

/// Runs the command with `--version` and returns what it prints. A launcher may start other processes: at the time limit, the
/// whole process group is killed.
fn version(program: &Path, first_args: &[String]) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(first_args).arg("--version").process_group(0).env_clear();
    command.envs(environment::chosen(std::env::vars_os(), &[]).unwrap_or_default());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(async {
        let mut child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
        let group = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let outcome = tokio::time::timeout(VERSION_WITHIN, output(&mut child)).await;
        if outcome.is_err()
            && let Some(group) = group
        {
            // Fails only if every process of the group has ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
        outcome.unwrap_or_else(|_| Err("does not print its version".to_owned()))
    })
}

/// What a process prints until it ends.
async fn output(child: &mut Child) -> Result<String, String> {
    let mut text = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(MAX_PRINTED).read_to_end(&mut text).await.map_err(|error| error.to_string())?;
    }
    let status = child.wait().await.map_err(|error| error.to_string())?;
    if status.success() {
        Ok(String::from_utf8_lossy(&text).into_owned())
    } else {
        Err(format!("it failed ({status})"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Health;
    use super::*;

    #[test]
    fn a_missing_claude_is_a_problem_with_a_fix() {
        let finding = check(&Launcher::program_only("/nowhere/claude").unwrap(), ChosenBy::Settings);
        assert_eq!(finding.health, Health::Problem);
        assert!(finding.fix.unwrap().contains("PLEXUS_CLAUDE"));
    }
}
