//! Checks the data directory and its permissions, the sandbox of agents, the shell, and the free disk space.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use plexus_agent::{Protection, SandboxState};
use plexus_core::{SandboxSetting, find_bash, granted_before, regain_sandbox};
use plexus_server::Config;

use super::{Finding, namespaces, note, ok, problem};

const SEE_SANDBOX: &str = "see \"The sandbox\" in docs/configuration.md";

pub(super) fn data_dir(dir: &Path) -> Finding {
    const WHAT: &str = "data directory";
    match dir.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => not_writable(dir)
            .unwrap_or_else(|| ok(WHAT, format!("{} will be created at the first start", dir.display()))),
        Err(error) => problem(WHAT, format!("{}: {error}", dir.display()), "choose another with --data-dir"),
        Ok(found) if !found.is_dir() => {
            problem(WHAT, format!("{} is not a directory", dir.display()), "choose another with --data-dir")
        }
        Ok(found) => open_to_others(&found).map_or_else(
            || not_writable(dir).unwrap_or_else(|| ok(WHAT, dir.display().to_string())),
            |(found, fix)| {
                problem(WHAT, format!("{} {found}", dir.display()), format!("{fix} {}", dir.display()))
            },
        ),
    }
}

/// The problem with a directory in which no file can be created, or with the directory in which it would be created. The
/// file that it tries has no name and leaves no trace.
fn not_writable(dir: &Path) -> Option<Finding> {
    let existing = dir.ancestors().find(|dir| dir.exists())?;
    let error = tempfile::tempfile_in(existing).err()?;
    let found = format!("{} is not writable: {error}", existing.display());
    let fix = format!("chmod u+rwx {}, or choose another with --data-dir", existing.display());
    Some(problem("data directory", found, fix))
}

/// What is wrong with the owner or mode of a file, and the command that fixes it.
fn open_to_others(found: &Metadata) -> Option<(String, &'static str)> {
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Some(("belongs to another user".to_owned(), "sudo chown \"$USER\""));
    }
    let mode = found.mode() & 0o777;
    (mode & 0o077 != 0).then(|| (format!("is accessible to other users (mode {mode:o})"), "chmod go="))
}

pub(super) fn private_files(dir: &Path) -> impl Iterator<Item = Finding> {
    let paths = ["operator.token", "identity.key", "hub.sock"].map(|name| dir.join(name));
    paths.into_iter().filter_map(|path| {
        let (found, fix) = open_to_others(&path.symlink_metadata().ok()?)?;
        Some(problem("files", format!("{} {found}", path.display()), format!("{fix} {}", path.display())))
    })
}

/// Checks what separates agents from the data directory, from other processes and from the streams of their own Claude Code.
pub(super) fn sandbox(config: &Config, dir: &Path) -> Vec<Finding> {
    let fix = SEE_SANDBOX;
    let elsewhere = if dir.is_dir() { None } else { tempfile::tempdir().ok() };
    let tried = elsewhere.as_ref().map_or(dir, |elsewhere| elsewhere.path());
    let before = granted_before(dir);
    match (config.hub.sandbox, plexus_agent::try_sandbox(tried, config.hub.tracing, &before)) {
        (SandboxSetting::Off, _) => {
            vec![note(
                "sandbox",
                "`wall` in plexus.toml is \"off\": agents can read the operator's token",
                fix,
            )]
        }
        (_, SandboxState::Namespaces { signals, terminals, descriptors, memory, parts: _ }) => vec![
            ok("sandbox", "agents cannot read the data directory, wherever it is mounted now or later"),
            protection("signals", "agents cannot signal the hub or other agents", signals),
            protection("terminals", "agents cannot write to your terminals", terminals),
            protection("descriptors", "an agent's commands cannot use its streams or trace it", descriptors),
            protection("memory", "an agent's commands cannot write its memory", memory),
        ],
        (_, SandboxState::None { reason }) if !before.is_empty() => vec![problem(
            "sandbox",
            format!("no agent can start, because this system denies a part of the sandbox: {reason}"),
            regain_sandbox(dir),
        )],
        (SandboxSetting::Required, SandboxState::None { reason }) => {
            let found = format!(
                "no agent can start: `wall` is \"required\", and this system does not support it ({reason})"
            );
            vec![problem("sandbox", found, namespaces::advice())]
        }
        (SandboxSetting::Wanted, SandboxState::None { reason }) => {
            vec![note("sandbox", format!("{} ({reason})", namespaces::UNPROTECTED), namespaces::advice())]
        }
    }
}

fn protection(what: &'static str, holds: &str, found: Protection) -> Finding {
    match found {
        Protection::Held(by) => ok(what, format!("{holds} ({by})")),
        Protection::Open(why) => note(what, format!("not protected: {why}"), SEE_SANDBOX),
    }
}

/// Checks whether inotify can notify the hub of new output of agents. An agent can use up the instances of its user.
pub(super) fn inotify() -> Finding {
    match plexus_agent::try_inotify() {
        Ok(()) => ok("inotify", "the hub is notified of new output of agents"),
        Err(error) => note(
            "inotify",
            format!(
                "no instance or watch is left for this user ({error}): the hub checks for new output of agents every 250 ms instead"
            ),
            "find what uses them (`lsof | grep inotify`), or raise fs.inotify.max_user_instances and max_user_watches",
        ),
    }
}

/// The shell that agents run their commands with.
pub(super) fn shell() -> Finding {
    match find_bash() {
        Some(bash) => ok("shell", format!("agents run commands with {}", bash.display())),
        None => note(
            "shell",
            "bash is missing, so agents run commands with zsh, and more of them need approval",
            "install bash",
        ),
    }
}

pub(super) fn disk(config: &Config, dir: &Path) -> Finding {
    let reserve = config.hub.limits.reserve_bytes;
    let existing = dir.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"));
    match std::fs::File::open(existing).and_then(plexus_agent::free_bytes) {
        Ok(free) if free < reserve => {
            let found = format!(
                "{} free, {} reserved for decisions: no turn can start",
                amount(free),
                amount(reserve)
            );
            problem("disk", found, "free some space, or set `reserve_mb` under [limits] in plexus.toml")
        }
        Ok(free) if free < reserve.saturating_mul(4) => {
            note("disk", format!("{} free", amount(free)), "free some space")
        }
        Ok(free) => ok("disk", format!("{} free", amount(free))),
        Err(error) => {
            problem("disk", format!("{}: {error}", existing.display()), "choose another with --data-dir")
        }
    }
}

/// A number of bytes, for people.
fn amount(bytes: u64) -> String {
    let tenths = |unit: u64| {
        let tenths = u128::from(bytes) * 10 / u128::from(unit);
        format!("{}.{}", tenths / 10, tenths % 10)
    };
    match bytes {
        GIB.. => format!("{} GiB", tenths(GIB)),
        _ => format!("{} MiB", tenths(MIB)),
    }
}

const MIB: u64 = 1024 * 1024;
const GIB: u64 = 1024 * MIB;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_with_one_decimal_and_a_unit() {
        assert_eq!(
            [0, 300 * MIB + MIB / 2, 72_218 * MIB, u64::MAX].map(amount),
            ["0.0 MiB", "300.5 MiB", "70.5 GiB", "17179869183.9 GiB"]
        );
    }
}
