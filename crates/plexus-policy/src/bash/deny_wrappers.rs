//! Commands that run other commands, for deny and ask rules: where among the operands of a known wrapper its command
//! is. Unknown wrappers are found through `data`: a command that is not known to treat its operands as data may run
//! them.

use super::known_names::{RUN_BEHIND, RUNNERS, SHELLS};
use super::script::{Word, base_name};

/// The position of a wrapper's command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inside {
    /// After this many operands of the wrapper itself.
    Behind(usize),
    /// Anywhere among its operands.
    Anywhere,
}

/// Wrappers whose first operands are their own. For the others in `RUNNERS`, the first operand is the command.
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

/// Runners of packages and scripts. Unlike for other wrappers, a rule with `:*` allows what they run.
const PACKAGE_RUNNERS: [&str; 4] = ["bunx", "npx", "pnpx", "uvx"];

/// Commands that run another one after one of these words, besides those in `RUN_BEHIND`, and the number of operands in
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

/// Options of `sudo` without a value: the command follows them.
const FLAGS: [&str; 12] = ["--", "-A", "-E", "-H", "-K", "-P", "-S", "-b", "-i", "-k", "-n", "-s"];

/// Whether a word of a wrapper is an option that may take the next word as its value.
pub(super) fn may_take_next(wrapper: &str, word: &str) -> bool {
    if wrapper == "xargs" && !word.starts_with("--") {
        return ["-E", "-I", "-L", "-P", "-a", "-d", "-n", "-s"].contains(&word);
    }
    word.starts_with(['-', '+'])
        && !word.contains('=')
        && !(matches!(wrapper, "sudo" | "doas") && FLAGS.contains(&word))
        && word != "--"
}

/// The word that a rule for a wrapper must name in order to name the command inside. A word after an option may be the
/// option's value, and the first operands may be the wrapper's own. `None` if the command may be anywhere.
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

/// The positions in these words after which another command may start.
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

/// The dynamic loader runs the program in its arguments.
fn is_loader(name: &str) -> bool {
    ["ld-linux", "ld-musl", "ld.so", "ld64.so", "ld-elf", "ld-2."].iter().any(|start| name.starts_with(start))
}
