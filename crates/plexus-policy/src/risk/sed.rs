//! Marks sed scripts that run commands: `1e id`, `s/a/b/e`. The search is rough, because a mark needs no certainty.

use plexus_protocol::RiskKind;

use super::command_rules::{program_name, shown};
use super::{Marks, quoted};
use crate::bash::Word;

/// Adds the marks of a sed command.
pub(super) fn scan(words: &[Word], marks: &mut Marks) {
    let program = words.first().and_then(Word::literal).map(program_name);
    if !program.is_some_and(|name| matches!(name.as_str(), "sed" | "gsed" | "ssed")) {
        return;
    }
    let mut texts = words[1..].iter().filter_map(Word::literal);
    if texts.any(|text| text.split([';', '\n', '{', '}']).any(runs_command)) {
        marks.add(RiskKind::Unclear, format!("{} may run another command", quoted(&shown(words))));
    }
}

/// Whether one command of a script is `e`, or a substitution with the flag `e`.
fn runs_command(command: &str) -> bool {
    let command = without_address(command.trim_start_matches("--expression=").trim());
    if let Some(behind) = command.strip_prefix('e') {
        return behind.is_empty() || behind.starts_with(char::is_whitespace);
    }
    let mut chars = command.chars();
    let (Some('s'), Some(delimiter)) = (chars.next(), chars.next()) else { return false };
    let is_flag = |c: char| c.is_ascii_digit() || "gpiImMe".contains(c);
    match chars.as_str().rsplit_once(delimiter) {
        Some((_, flags)) if !delimiter.is_alphanumeric() => flags.contains('e') && flags.chars().all(is_flag),
        _ => false,
    }
}

/// The command without the lines that it applies to: `1,$`, `/a/`.
fn without_address(mut command: &str) -> &str {
    loop {
        let rest = command.trim_start_matches(|c: char| c.is_ascii_digit() || " $,!~+".contains(c));
        let rest = match rest.strip_prefix('/').and_then(|rest| rest.split_once('/')) {
            Some((_, behind)) => behind.trim_start_matches(['I', 'M']),
            None => rest,
        };
        if rest == command {
            return command;
        }
        command = rest;
    }
}
