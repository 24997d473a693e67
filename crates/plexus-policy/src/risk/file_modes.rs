//! Marks file modes that let every user write, or let a file run with its owner's rights: the operand of `chmod`, and the
//! option `-m` of `install` and `mkdir`.

use plexus_protocol::RiskKind;

use super::command_rules::{program_name, shown};
use super::{Marks, quoted};
use crate::bash::Word;

/// Adds the marks of a command that sets a file mode.
pub(super) fn scan(words: &[Word], marks: &mut Marks) {
    let Some(name) = words.first().and_then(Word::literal).map(program_name) else { return };
    let mode = match name.as_str() {
        "chmod" => words[1..].iter().find(|word| {
            word.literal().is_none_or(|word| !word.starts_with('-') || is_removal(word))
                && !word.known_start().starts_with("--")
        }),
        "install" | "mkdir" => option_value(&words[1..]),
        _ => return,
    };
    let Some(mode) = mode else { return };
    let command = quoted(&shown(words));
    let Some(mode) = mode.literal() else {
        marks.add(RiskKind::Unclear, format!("{command} sets access that is not known before it runs"));
        return;
    };
    let mode = mode.trim_start_matches("--mode=");
    let mode = if name == "chmod" { mode } else { mode.trim_start_matches("-m") };
    if lets_everyone_write(mode) {
        marks.add(RiskKind::Permissions, format!("{command} lets every user write"));
    }
    if runs_as_owner(mode) {
        marks.add(RiskKind::Permissions, format!("{command} lets the file run with its owner's rights"));
    }
}

/// The word with the mode: the one after `-m`, or `-m755` itself.
fn option_value(words: &[Word]) -> Option<&Word> {
    let at = words.iter().position(|word| {
        let start = word.known_start();
        start.starts_with("-m") || start.starts_with("--mode")
    })?;
    if matches!(words[at].literal(), Some("-m" | "--mode")) { words.get(at + 1) } else { words.get(at) }
}

/// `-w` and `-rwx` are modes, `-R` is an option.
fn is_removal(word: &str) -> bool {
    word.len() > 1 && word[1..].bytes().all(|b| b"rwxXst".contains(&b))
}

fn lets_everyone_write(mode: &str) -> bool {
    match octal(mode) {
        Some(bits) => bits & 0o002 != 0,
        None => clauses(mode).any(|(who, operator, rights)| {
            let everyone = who.contains(['o', 'a']) || who.is_empty() && rights.contains("rwx");
            everyone && operator != '-' && rights.contains(['w', 'u', 'g'])
        }),
    }
}

fn runs_as_owner(mode: &str) -> bool {
    match octal(mode) {
        Some(bits) => bits & 0o6000 != 0,
        None => clauses(mode).any(|(_, operator, rights)| operator != '-' && rights.contains('s')),
    }
}

fn octal(mode: &str) -> Option<u32> {
    let digits = mode.trim_start_matches(['=', '+']);
    u32::from_str_radix(digits, 8).ok()
}

/// The changes of a symbolic mode: whose rights, `+`, `-` or `=`, and which rights.
fn clauses(mode: &str) -> impl Iterator<Item = (&str, char, &str)> {
    mode.split(',').flat_map(|clause| {
        let operators = ['+', '-', '='];
        let who = &clause[..clause.find(operators).unwrap_or(clause.len())];
        clause.match_indices(operators).map(move |(at, operator)| {
            let behind = &clause[at + 1..];
            let rights = &behind[..behind.find(operators).unwrap_or(behind.len())];
            (who, operator.chars().next().unwrap_or('+'), rights)
        })
    })
}
