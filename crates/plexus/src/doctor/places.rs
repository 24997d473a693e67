//! Where the hub keeps its things: who may get at them, what keeps agents out, and how much room there is.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use plexus_agent::{Protection, Walled};
use plexus_core::{WallSetting, find_bash, granted_before, regain_sandbox};
use plexus_server::Config;

use super::{Finding, note, ok, wrong};

pub(super) fn data_dir(dir: &Path) -> Finding {
    const WHAT: &str = "data directory";
    match dir.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            ok(WHAT, format!("{} will be created at the first start", dir.display()))
        }
        Err(error) => wrong(WHAT, format!("{}: {error}", dir.display()), "choose another with --data-dir"),
        Ok(found) if !found.is_dir() => {
            wrong(WHAT, format!("{} is not a directory", dir.display()), "choose another with --data-dir")
        }
        Ok(found) => open_to_others(&found).map_or_else(
            || ok(WHAT, dir.display().to_string()),
            |(found, mend)| {
                wrong(WHAT, format!("{} {found}", dir.display()), format!("{mend} {}", dir.display()))
            },
        ),
    }
}

/// What is wrong with who owns something, or may get at it, and the command that mends it.
fn open_to_others(found: &Metadata) -> Option<(String, &'static str)> {
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Some(("belongs to another user".to_owned(), "sudo chown \"$USER\""));
    }
    let mode = found.mode() & 0o777;
    (mode & 0o077 != 0).then(|| (format!("is open to others (mode {mode:o})"), "chmod go="))
}

pub(super) fn private_files(dir: &Path) -> impl Iterator<Item = Finding> {
    let paths = ["operator.token", "identity.key", "hub.sock"].map(|name| dir.join(name));
    paths.into_iter().filter_map(|path| {
        let (found, mend) = open_to_others(&path.symlink_metadata().ok()?)?;
        Some(wrong("files", format!("{} {found}", path.display()), format!("{mend} {}", path.display())))
    })
}

/// What keeps agents from the data directory, from other processes and from the streams of their own Claude Code.
pub(super) fn sandbox(config: &Config, dir: &Path) -> Vec<Finding> {
    let mend = "see \"The wall\" in docs/configuration.md";
    let elsewhere = if dir.is_dir() { None } else { tempfile::tempdir().ok() };
    let tried = elsewhere.as_ref().map_or(dir, |elsewhere| elsewhere.path());
    let before = granted_before(dir);
    match (config.hub.wall, plexus_agent::try_sandbox(tried, config.hub.tracing, &before)) {
        (WallSetting::Off, _) => {
            vec![note("wall", "`wall` in plexus.toml is \"off\": agents can read the operator's token", mend)]
        }
        (_, Walled::Namespaces { signals, terminals, descriptors, memory, parts: _ }) => vec![
            ok("wall", "agents are kept from the data directory, wherever it is mounted now or later"),
            protection("signals", "agents cannot signal the hub or other agents", signals),
            protection("terminals", "agents cannot write to your terminals", terminals),
            protection("descriptors", "an agent's commands cannot use its streams or trace it", descriptors),
            protection("memory", "an agent's commands cannot write its memory", memory),
        ],
        (_, Walled::None { reason }) if !before.is_empty() => vec![wrong(
            "wall",
            format!("no agent is started, as this system refuses a part of the sandbox: {reason}"),
            regain_sandbox(dir),
        )],
        (WallSetting::Required, Walled::None { reason }) => {
            vec![wrong("wall", format!("required, and this system grants none: {reason}"), mend)]
        }
        (WallSetting::Wanted, Walled::None { reason }) => vec![note(
            "wall",
            format!("this system grants none, so agents can read the operator's token: {reason}"),
            mend,
        )],
    }
}

fn protection(what: &'static str, holds: &str, found: Protection) -> Finding {
    match found {
        Protection::Held(by) => ok(what, format!("{holds} ({by})")),
        Protection::Open(why) => {
            note(what, format!("not protected: {why}"), "see \"The wall\" in docs/configuration.md")
        }
    }
}

/// How the hub learns that an agent has written something. An agent can use up what its user may have.
pub(super) fn inotify() -> Finding {
    match plexus_agent::try_inotify() {
        Ok(()) => ok("inotify", "the hub is notified of what agents write"),
        Err(error) => note(
            "inotify",
            format!(
                "no instance or watch is left for this user ({error}): the hub checks what agents write every 250 ms instead"
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
            "there is no bash, so agents run commands with zsh, and more lines are asked about",
            "install bash",
        ),
    }
}

pub(super) fn disk(config: &Config, dir: &Path) -> Finding {
    let reserve = config.hub.limits.reserve_bytes;
    let there = dir.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"));
    match std::fs::File::open(there).and_then(plexus_agent::free_bytes) {
        Ok(free) if free < reserve => {
            let found = format!(
                "{} free, {} reserved for decisions: no turn can start",
                amount(free),
                amount(reserve)
            );
            wrong("disk", found, "free some space, or set `reserve_mb` under [limits] in plexus.toml")
        }
        Ok(free) if free < reserve.saturating_mul(4) => {
            note("disk", format!("{} free", amount(free)), "free some space")
        }
        Ok(free) => ok("disk", format!("{} free", amount(free))),
        Err(error) => {
            wrong("disk", format!("{}: {error}", there.display()), "choose another place with --data-dir")
        }
    }
}

/// An amount of bytes as people read it.
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
    fn amounts_are_short() {
        assert_eq!(
            [0, 300 * MIB + MIB / 2, 72_218 * MIB, u64::MAX].map(amount),
            ["0.0 MiB", "300.5 MiB", "70.5 GiB", "17179869183.9 GiB"]
        );
    }
}
