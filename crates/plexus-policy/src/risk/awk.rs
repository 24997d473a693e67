//! Marks awk programs that run commands: `system(…)`, `print | "sh"`, `"date" | getline`.

use plexus_protocol::RiskKind;

use super::command_rules::{program_name, shown};
use super::path::Directories;
use super::{Marks, quoted, unreadable};
use crate::bash::Word;

/// Stands for a string of the program.
const STRING: char = '\u{1}';

/// Adds the marks of an awk command.
pub(super) fn scan(words: &[Word], dirs: &Directories<'_>, marks: &mut Marks) {
    let program = words.first().and_then(Word::literal).map(program_name);
    if !program.is_some_and(|name| matches!(name.as_str(), "awk" | "gawk" | "mawk" | "nawk")) {
        return;
    }
    let mut operands = words[1..].iter().filter(|word| !word.known_start().starts_with('-'));
    if operands.next().is_some_and(|word| word.is_computed() && word.known_start().is_empty()) {
        let reason = format!("{} runs code that is not known before it runs", quoted(&shown(words)));
        marks.add(RiskKind::Unclear, reason);
    }
    // `-F'|'` is not code.
    let texts = words[1..].iter().filter_map(Word::literal).filter(|word| !word.starts_with("-F"));
    for text in texts.filter(|text| runs_command(text)) {
        marks.add(RiskKind::Unclear, format!("{} may run another command", quoted(&shown(words))));
        unreadable::scan(text, dirs, marks);
    }
}

fn runs_command(program: &str) -> bool {
    let code = without_strings(program);
    let is_code = code.contains(['{', ';', '(', STRING]);
    let calls_system = code.split("system").skip(1).any(|behind| behind.trim_start().starts_with('('));
    if is_code && (calls_system || code.contains("getline") || code.contains("@load")) {
        return true;
    }
    let pipes = |text: &str| {
        let text = text.replace("||", " ");
        text.match_indices('|').any(|(at, _)| text[..at].contains("print") || text[at..].contains("getline"))
    };
    let into_string = |text: &str| {
        let text = text.replace("||", " ");
        text.split('|').skip(1).any(|behind| behind.trim_start_matches([' ', '&']).starts_with(STRING))
    };
    is_code && (into_string(&code) || pipes(&without_regexes(&code)))
}

/// The program with a mark in place of each string.
fn without_strings(program: &str) -> String {
    let mut out = String::with_capacity(program.len());
    let mut chars = program.chars();
    while let Some(c) = chars.next() {
        if c != '"' {
            out.push(c);
            continue;
        }
        out.push(STRING);
        while let Some(c) = chars.next() {
            match c {
                '"' => break,
                '\\' => {
                    chars.next();
                }
                _ => {}
            }
        }
    }
    out
}

/// The program without `/…/`, which may contain `|`.
fn without_regexes(program: &str) -> String {
    program.split('/').step_by(2).collect::<Vec<_>>().join("/")
}
