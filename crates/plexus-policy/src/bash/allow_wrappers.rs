//! Removes wrappers, for allow rules: only a few, and only if nothing about them is unclear. For all others, a rule
//! must name the command inside.

use super::deny_wrappers::command_inside;
use super::hazards::hazards;
use super::known_names::{HARMLESS, RUNNERS, SHELLS};
use super::reader;
use super::script::{Assignment, Part, Script, Word, base_name};
use super::zsh;

/// What remains of a part after a wrapper is removed.
#[derive(Debug)]
pub(crate) enum Inner {
    Part(Part),
    Script(Script),
}

/// Removes one wrapper, if all of it is understood.
pub(crate) fn unwrap(part: &Part) -> Option<Inner> {
    let name = part.words.first()?.literal()?;
    let mut assignments = part.assignments.clone();
    let mut at = 1;
    let word = |at: usize| part.words.get(at).and_then(Word::literal);
    match name {
        "nohup" | "noglob" | "command" | "builtin" => {}
        "nice" => {
            if word(1) == Some("-n") {
                at = 3;
            }
        }
        "timeout" => {
            while let Some(option) = word(at).filter(|w| w.starts_with('-')) {
                at += match option {
                    "-k" | "-s" => 2,
                    "--preserve-status" | "--foreground" | "-v" => 1,
                    _ => return None,
                };
            }
            word(at)?.strip_suffix(['s', 'm', 'h', 'd']).or_else(|| word(at))?.parse::<f64>().ok()?;
            at += 1;
        }
        "stdbuf" => {
            while word(at).is_some_and(|w| w.len() == 3 && ["-i", "-o", "-e"].contains(&&w[..2])) {
                at += 1;
            }
        }
        "env" => {
            while let Some((name, value)) = word(at).and_then(|w| w.split_once('=')) {
                assignments.push(Assignment { name: name.to_owned(), value: Word::text(value) });
                at += 1;
            }
        }
        "xargs" => {
            while let Some(option) = word(at).filter(|w| w.starts_with('-')) {
                let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
                at += match (option, option.get(..2)) {
                    ("-0" | "-r" | "-t" | "--null" | "--no-run-if-empty", _) => 1,
                    ("-n" | "-P" | "-L", _) if word(at + 1).is_some_and(number) => 2,
                    (_, Some("-n" | "-P" | "-L")) if number(&option[2..]) => 1,
                    _ => return None,
                };
            }
            let mut words = part.words.get(at..)?.to_vec();
            words.push(Word::unknown());
            return plain_start(&words).then_some(Inner::Part(Part { assignments, words, stdin: None }));
        }
        "bash" | "sh" | "/bin/bash" | "/bin/sh" if word(1) == Some("-c") && assignments.is_empty() => {
            // Further options may precede the command line.
            let line = word(2).filter(|line| !line.starts_with(['-', '+']))?;
            return reader::read(line, 1).ok().map(Inner::Script);
        }
        _ => return None,
    }
    // Every removed word must be known: an unknown one could be the command itself.
    let taken = part.words.get(..at)?;
    if taken.iter().any(|word| word.literal().is_none()) {
        return None;
    }
    let words = part.words.get(at..)?.to_vec();
    plain_start(&words).then(|| Inner::Part(Part { assignments, words, stdin: part.stdin.clone() }))
}

/// The words that a wildcard does not cover: a rule must name all words up to the last of them.
pub(crate) fn must_be_named(part: &Part) -> Vec<usize> {
    let positions =
        |words: &[Word]| -> Vec<usize> { hazards(words).iter().map(|hazard| hazard.at).collect() };
    let name = part.words.first().and_then(Word::literal).map(base_name).unwrap_or_default();
    if !RUNNERS.contains(&name) {
        return positions(&part.words);
    }
    // Alone it prints the environment.
    if name == "env" && part.words.len() == 1 {
        return Vec::new();
    }
    // A shell that only checks the syntax of a file runs nothing.
    if let [_, option, file] = part.words.as_slice()
        && matches!(name, "bash" | "sh" | "dash" | "zsh" | "ksh")
        && option.literal() == Some("-n")
        && file
            .literal()
            .is_some_and(|file| file.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.'))
    {
        return vec![1];
    }
    // Only the command inside matters: a rule for its wrapper does not cover it.
    let plain = |word: &Word| word.literal().is_some_and(|word| !word.starts_with('-'));
    let inside = match unwrap(part) {
        Some(Inner::Part(inner)) => {
            let added = usize::from(name == "xargs");
            let Some(at) = (part.words.len() + added).checked_sub(inner.words.len()) else {
                return vec![usize::MAX];
            };
            let mut named = vec![at];
            named.extend(positions(&inner.words).into_iter().map(|position| position.saturating_add(at)));
            return named;
        }
        Some(Inner::Script(_)) => None,
        None if SHELLS.contains(&name) && part.words.get(1).is_none_or(|word| !plain(word)) => None,
        None => command_inside(&part.words),
    };
    let mut named = positions(&part.words);
    named.push(inside.unwrap_or(usize::MAX));
    named
}

/// Whether a command starts here, and not another option.
fn plain_start(words: &[Word]) -> bool {
    words.first().and_then(Word::literal).is_some_and(|name| !name.is_empty() && !name.starts_with('-'))
}

/// Whether a rule may allow a command with this assignment without naming the variable.
pub(crate) fn is_harmless(assignment: &Assignment, alone: Alone) -> bool {
    let name = assignment.name.as_str();
    // The shell itself parses differently when its locale changes.
    if HARMLESS.contains(&name) && (alone == Alone::No || !name.starts_with('L')) {
        return !zsh::computes_value(assignment)
            && assignment.value.literal().is_some_and(|value| is_plain_value(name, value));
    }
    // A script's own variables have lower-case names; the few such names that programs know are excluded.
    alone == Alone::Yes
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        && !zsh::steers(name)
}

/// Whether every program treats a value of such a variable as text. `make` evaluates the values of all variables as its
/// own code, scripts insert them into commands, and the C library opens files that some of them name.
fn is_plain_value(name: &str, value: &str) -> bool {
    let signs: &[u8] = match name {
        "DEBUG" => b"_.,:*-",
        "LANGUAGE" => b"_.:@-",
        "RUST_LOG" => b"_.,:=-",
        "TZ" => b"_+-/",
        _ => b"_.@-",
    };
    !value.starts_with(['-', '/', '.'])
        && value.bytes().all(|b| b.is_ascii_alphanumeric() || signs.contains(&b))
}

/// Whether an assignment has no command: it then stays in the shell and is not exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alone {
    Yes,
    No,
}
