//! Commands that run other commands, for deny and ask rules: where among the operands of a known wrapper its command
//! stands. A wrapper that no table knows is found by what `data` leaves: a command that is not known to take its operands
//! for data may run them.

use super::commands::{RUN_BEHIND, RUNNERS, SHELLS};
use super::script::{Word, base_name};

/// Where the command of a wrapper stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inside {
    /// Behind this many operands of the wrapper's own.
    Behind(usize),
    /// Anywhere among its operands.
    Anywhere,
}

/// Wrappers whose first operands are their own. Of the others in `RUNNERS` the first operand is the command.
const OWN_OPERANDS: [(&str, usize); 20] = [
    ("chroot", 1),
    ("chrt", 1),
    ("faketime", 1),
    ("flock", 1),
    ("gosu", 1),
    ("lckdo", 1),
    ("repeat", 1),
    ("retry", 1),
    ("runcon", 1),
    ("setarch", 1),
    ("setuidgid", 1),
    ("sg", 1),
    ("ssh", 1),
    ("su", 1),
    ("su-exec", 1),
    ("systemd-nspawn", 1),
    ("taskset", 1),
    ("timelimit", 1),
    ("timeout", 1),
    ("with-lock-ex", 1),
];

/// Wrappers whose options take several values, or that take command lines in several places.
const ANYWHERE: [&str; 22] = [
    "-",
    "at",
    "batch",
    "busybox",
    "bwrap",
    "capsh",
    "eval",
    "expect",
    "firejail",
    "gdb",
    "hyperfine",
    "lldb",
    "mispipe",
    "parallel",
    "pee",
    "proot",
    "screen",
    "script",
    "systemd-run",
    "tmux",
    "toybox",
    "trap",
];

/// Runners of packages and scripts. Unlike other wrappers, a rule with `:*` allows what they run.
const PACKAGE_RUNNERS: [&str; 4] = ["bunx", "npx", "pnpx", "uvx"];

/// Commands that run another one behind a word of theirs, besides those in `RUN_BEHIND`, and how many operands stand
/// between.
const BEHIND_WORD: &[(&str, &[&str], usize)] = &[
    ("bun", &["exec", "x"], 0),
    ("bundle", &["exec"], 0),
    ("cargo", &["exec", "watch", "with"], 0),
    ("conda", &["run"], 0),
    ("devbox", &["run"], 0),
    ("direnv", &["exec"], 1),
    ("distrobox", &["enter"], 1),
    ("flatpak", &["run"], 1),
    ("flatpak-spawn", &["--host"], 0),
    ("hatch", &["run"], 0),
    ("ip", &["exec"], 1),
    ("lxc", &["exec"], 1),
    ("mamba", &["run"], 0),
    ("mise", &["exec", "x"], 0),
    ("nix", &["--command", "-c"], 0),
    ("nix-shell", &["--command", "--run"], 0),
    ("npm", &["exec", "explore", "x"], 0),
    ("pdm", &["run"], 0),
    ("perf", &["record", "stat", "trace"], 0),
    ("pipenv", &["run"], 0),
    ("pipx", &["run"], 0),
    ("pnpm", &["dlx", "exec"], 0),
    ("poetry", &["run"], 0),
    ("python", &["-m"], 0),
    ("python3", &["-m"], 0),
    ("rr", &["record"], 0),
    ("rustup", &["run"], 1),
    ("rye", &["run"], 0),
    ("snap", &["run"], 0),
    ("uv", &["run"], 0),
    ("volta", &["run"], 0),
    ("yarn", &["dlx", "exec"], 0),
];

/// Options of `sudo` that take no value: what follows them is the command.
const FLAGS: [&str; 12] = ["--", "-A", "-E", "-H", "-K", "-P", "-S", "-b", "-i", "-k", "-n", "-s"];

/// Whether a word of a wrapper is an option that may take the next word for its value.
pub(super) fn may_take_next(wrapper: &str, word: &str) -> bool {
    if wrapper == "xargs" && !word.starts_with("--") {
        return ["-E", "-I", "-L", "-P", "-a", "-d", "-n", "-s"].contains(&word);
    }
    word.starts_with(['-', '+'])
        && !word.contains('=')
        && !(matches!(wrapper, "sudo" | "doas") && FLAGS.contains(&word))
        && word != "--"
}

/// The word that a rule for a wrapper has to name so that it names the command inside: a word behind an option may be the
/// option's value, and the first operands may be the wrapper's own. There is none where the command may stand anywhere.
pub(super) fn command_inside(words: &[Word]) -> Option<usize> {
    let name = words.first().and_then(Word::literal).map(base_name)?;
    if ANYWHERE.contains(&name) {
        return None;
    }
    let text = |at: usize| words.get(at).and_then(Word::literal);
    let mut own = OWN_OPERANDS.iter().find(|(wrapper, _)| *wrapper == name).map_or(0, |(_, own)| *own);
    let mut last = None;
    for at in (1..words.len()).filter(|at| text(*at).is_none_or(|word| !word.starts_with('-'))) {
        last = Some(at);
        let may_be_value = text(at - 1).is_some_and(|previous| at > 1 && may_take_next(name, previous));
        if may_be_value || text(at).is_some_and(|word| word.contains('=')) {
            continue;
        }
        if own == 0 {
            return Some(at);
        }
        own -= 1;
    }
    last
}

/// The places among these words behind which another command may begin.
pub(super) fn insides(words: &[Word]) -> Vec<(usize, Inside)> {
    let Some(name) = words.first().and_then(Word::literal).map(base_name) else { return Vec::new() };
    let text = |at: usize| words.get(at).and_then(Word::literal);
    if name == "command" && text(1).is_some_and(|word| word.starts_with("-v") || word.starts_with("-V")) {
        return Vec::new();
    }
    if is_loader(name) || PACKAGE_RUNNERS.contains(&name) {
        return vec![(1, Inside::Behind(0))];
    }
    if SHELLS.contains(&name) {
        let command =
            |word: &Word| word.literal().is_none_or(|word| word.starts_with('-') && word.contains('c'));
        return if words[1..].iter().any(command) { vec![(1, Inside::Anywhere)] } else { Vec::new() };
    }
    if RUNNERS.contains(&name) {
        let own = OWN_OPERANDS.iter().find(|(wrapper, _)| *wrapper == name).map_or(0, |(_, own)| *own);
        let inside = if ANYWHERE.contains(&name) { Inside::Anywhere } else { Inside::Behind(own) };
        return vec![(1, inside)];
    }
    let (behind, inside): (&[&str], Inside) = if let Some((runner, behind)) =
        RUN_BEHIND.iter().find(|(runner, _)| *runner == name)
    {
        (
            behind,
            if matches!(*runner, "find" | "fd" | "fdfind") { Inside::Behind(0) } else { Inside::Behind(1) },
        )
    } else if let Some((_, behind, own)) = BEHIND_WORD.iter().find(|(runner, ..)| *runner == name) {
        (behind, Inside::Behind(*own))
    } else {
        return Vec::new();
    };
    let is_behind = |at: &usize| text(*at).is_some_and(|word| behind.contains(&word));
    (1..words.len()).filter(is_behind).map(|at| (at + 1, inside)).collect()
}

/// The dynamic loader runs the program that it is given.
fn is_loader(name: &str) -> bool {
    ["ld-linux", "ld-musl", "ld.so", "ld64.so", "ld-elf", "ld-2."].iter().any(|start| name.starts_with(start))
}
