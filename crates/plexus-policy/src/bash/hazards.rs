//! Finds arguments that make a command do more than its name says. A wildcard covers operands and the options that a
//! table lists as harmless; a rule covers any other word only by naming it.

use super::arguments;
use super::options::table;
use super::script::{Word, base_name};

/// A word that a wildcard does not cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hazard {
    /// The index of the word; a rule must name all words up to it. `usize::MAX`: only a rule without a wildcard covers
    /// it.
    pub(crate) at: usize,
    pub(crate) kind: HazardKind,
}

/// What the word can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HazardKind {
    /// It runs something that is not among the parts of the script.
    Runs,
    /// It writes a file, changes the meaning of other words, or is unknown.
    Reaches,
}

/// Builtins whose every argument affects later commands.
const SHIFTING: [&str; 33] = [
    ".",
    "alias",
    "bind",
    "builtin",
    "command",
    "complete",
    "coproc",
    "declare",
    "dirs",
    "enable",
    "eval",
    "exec",
    "export",
    "fc",
    "getopts",
    "hash",
    "history",
    "let",
    "local",
    "mapfile",
    "popd",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "set",
    "shopt",
    "source",
    "trap",
    "typeset",
    "unalias",
    "unset",
    "wait",
];

/// The words of a command that a rule covers only by naming them.
pub(crate) fn hazards(words: &[Word]) -> Vec<Hazard> {
    let Some(name) = words.first().and_then(Word::literal) else { return Vec::new() };
    let name = base_name(name);
    let last = words.len() - 1;
    let all = |kind| vec![Hazard { at: usize::MAX, kind }];
    match name {
        "set" if words[1..].iter().all(|w| w.literal().is_some_and(is_plain_set)) => return Vec::new(),
        "wait" if last == 0 => return Vec::new(),
        "." | "alias" | "bind" | "complete" | "enable" | "eval" | "exec" | "fc" | "hash" | "source"
        | "trap" => {
            return all(HazardKind::Runs);
        }
        "printf"
            if words
                .get(1)
                .is_some_and(|w| w.known_start().is_empty() || w.known_start().starts_with('-')) =>
        {
            return all(HazardKind::Reaches);
        }
        "test" | "[" if words[1..].iter().any(|w| w.literal().is_none_or(|w| matches!(w, "-v" | "-R"))) => {
            return all(HazardKind::Reaches);
        }
        _ if SHIFTING.contains(&name) => return all(HazardKind::Reaches),
        _ => {}
    }
    match table(name) {
        Some(table) => arguments::with_table(words, table),
        None => arguments::without_table(words),
    }
}

/// `set -e` and similar options, which change no word.
fn is_plain_set(word: &str) -> bool {
    let letters = word.strip_prefix(['-', '+']).unwrap_or_default();
    matches!(word, "pipefail" | "errexit" | "nounset" | "xtrace")
        || !letters.is_empty() && letters.bytes().all(|b| b"eoux".contains(&b))
}
