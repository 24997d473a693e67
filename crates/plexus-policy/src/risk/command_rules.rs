//! Matches the words of one simple command with the rules of `command_table`.

use plexus_protocol::RiskKind;

use super::command_table::{COMMANDS, CommandRule, VALUE_OPTIONS, When};
use super::{Marks, quoted};
use crate::bash::{Expansion, Piece, Word, base_name};
use crate::wildcard::name_matches;

/// The maximum number of words of a command that are compared with rules.
const MAX_WORDS: usize = 400;

/// Adds the marks of one command.
pub(super) fn scan(words: &[Word], marks: &mut Marks) {
    let Some(name) = words.first().and_then(Word::literal).map(program_name) else { return };
    if words.len() > MAX_WORDS {
        marks.add(RiskKind::Unclear, format!("{} has too many words to analyse", quoted(&name)));
    }
    let words = &words[..words.len().min(MAX_WORDS)];
    let command = Command::of(&name, words);
    for rule in COMMANDS {
        match command.matches(rule) {
            Match::Yes => marks.add(rule.kind, format!("{} {}", quoted(&shown(words)), rule.effect)),
            Match::UnknownSubcommand => marks.add(
                RiskKind::Unclear,
                format!("{}: the subcommand is not known before it runs", quoted(&shown(words))),
            ),
            Match::No => {}
        }
    }
}

/// Whether a rule names this program.
pub(super) fn is_known(name: &str) -> bool {
    let name = program_name(name);
    COMMANDS.iter().any(|rule| programs(rule).any(|program| is_program(program, &name)))
}

/// The name of a program without its directory and its version: `/usr/bin/python3.12` is `python3`.
pub(super) fn program_name(word: &str) -> String {
    let name = base_name(word);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    match name.split_once('.') {
        Some((start, version))
            if start.starts_with("python") && version.bytes().all(|b| b.is_ascii_digit()) =>
        {
            start
        }
        _ => name,
    }
    .to_owned()
}

/// The words as text, with `…` for unknown parts.
pub(super) fn shown(words: &[Word]) -> String {
    let mut text = String::new();
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            text.push(' ');
        }
        for piece in word.pieces() {
            match piece {
                Piece::Text(known) => text.push_str(known),
                Piece::Home => text.push('~'),
                Piece::Any => text.push('…'),
            }
        }
        if text.len() > 4 * super::MAX_QUOTED {
            break;
        }
    }
    text
}

enum Match {
    No,
    /// The rule names a subcommand, and that of the command is unknown before it runs.
    UnknownSubcommand,
    Yes,
}

/// A command, split into its name, options and operands.
struct Command<'w> {
    name: &'w str,
    /// The words after the name.
    rest: &'w [Word],
    /// The positions in `rest` of the words that are neither options nor their values.
    operands: Vec<usize>,
}

impl<'w> Command<'w> {
    fn of(name: &'w str, words: &'w [Word]) -> Self {
        let rest = &words[1..];
        let options_of = |command: &str| {
            VALUE_OPTIONS.iter().find(|(named, _)| *named == command).map_or(&[][..], |(_, options)| options)
        };
        let mut with_value = options_of(name);
        let mut operands = Vec::new();
        let mut at = 0;
        while let Some(word) = rest.get(at) {
            let start = word.known_start();
            if start.starts_with('-') && start != "-"
                || operands.is_empty() && name == "cargo" && start.starts_with('+')
            {
                let takes_next = word.literal().is_some_and(|word| with_value.contains(&word));
                at += usize::from(takes_next);
            } else {
                with_value = match operands.is_empty() {
                    true => options_of(&format!("{name} {start}")),
                    false => &[],
                };
                operands.push(at);
            }
            at += 1;
        }
        Self { name, rest, operands }
    }

    fn matches(&self, rule: &CommandRule) -> Match {
        if !programs(rule).any(|program| is_program(program, self.name)) {
            return Match::No;
        }
        let mut behind = 0;
        for (number, names) in rule.command.split(' ').skip(1).enumerate() {
            let Some(at) = self.operands.get(number) else { return Match::No };
            match self.rest[*at].literal() {
                Some(word) if names.split('|').any(|name| name == word) => behind = number + 1,
                Some(_) => return Match::No,
                None => return Match::UnknownSubcommand,
            }
        }
        let matches = match rule.when {
            When::Always => true,
            When::NoOperand => self.operands.len() == behind,
            When::Nothing => self.rest.iter().all(|word| matches!(word.literal(), Some("-"))),
            When::With(any) => any.split(' ').any(|all| all.split('&').all(|one| self.has(one, behind))),
        };
        if matches { Match::Yes } else { Match::No }
    }

    /// Whether one of the words after the subcommands matches.
    fn has(&self, pattern: &str, subcommands: usize) -> bool {
        let from = subcommands.checked_sub(1).and_then(|last| self.operands.get(last)).map_or(0, |at| at + 1);
        if pattern == "^-" {
            let first = self.operands.get(subcommands).map(|at| &self.rest[*at]);
            return first.is_some_and(|word| word.literal() == Some("-"));
        }
        let (pattern, until) = match pattern.strip_prefix('^') {
            Some(pattern) => (pattern, self.operands.get(subcommands).copied().unwrap_or(self.rest.len())),
            None => (pattern, self.rest.len()),
        };
        if pattern.starts_with('-') && pattern != "-" {
            // Options may also precede a subcommand.
            let mut options = self.rest[..until].iter().filter_map(option_text);
            return if pattern == "--" {
                options.any(|word| word == "--")
            } else {
                options.take_while(|word| *word != "--").any(|word| self.is_option(pattern, word))
            };
        }
        let mut words = self.rest[from..].iter();
        if pattern == "$" {
            return words.any(|word| word.is_computed() && !word.known_start().contains('/'));
        }
        if pattern == "$-" {
            return words.any(|word| {
                let start = word.known_start();
                let may_start_option = start.is_empty() || start.starts_with('-');
                word.is_computed() && (may_start_option || word.expansion() == Expansion::Many)
            });
        }
        if let Some(program) = pattern.strip_prefix('/') {
            return words.any(|word| word.literal().is_some_and(|word| base_name(word) == program));
        }
        words.any(|word| match word.literal() {
            Some(word) => name_matches(pattern, word),
            // `+$BRANCH`
            None => {
                pattern.ends_with('*')
                    && pattern.len() > 1
                    && word.known_start().starts_with(pattern.trim_end_matches('*'))
            }
        })
    }

    /// Whether a written option is the one of a rule.
    fn is_option(&self, pattern: &str, written: &str) -> bool {
        if let Some(long) = pattern.strip_prefix("--") {
            let Some(written) = written.strip_prefix("--") else { return false };
            let name = written.split('=').next().unwrap_or(written);
            return name_matches(long, name) || !name.is_empty() && long.starts_with(name);
        }
        let mut letters = pattern.chars().skip(1);
        match (letters.next(), letters.next()) {
            // One letter, also among others. A digit or a sign starts the value of an earlier letter, but git has options that are
            // digits.
            (Some(letter), None) => {
                let is_flag = |c: &char| c.is_ascii_alphabetic() || self.name == "git" && c.is_ascii_digit();
                let in_cluster = |cluster: &str| {
                    !cluster.starts_with('-') && cluster.chars().take_while(is_flag).any(|c| c == letter)
                };
                written == pattern || written.strip_prefix('-').is_some_and(in_cluster)
            }
            _ => name_matches(pattern, written),
        }
    }
}

/// The known part of a word that may be an option.
fn option_text(word: &Word) -> Option<&str> {
    word.literal().or_else(|| Some(word.known_start())).filter(|text| text.starts_with('-'))
}

fn programs(rule: &CommandRule) -> impl Iterator<Item = &'static str> {
    rule.command.split(' ').next().unwrap_or_default().split('|')
}

fn is_program(pattern: &str, name: &str) -> bool {
    name_matches(pattern, name)
}
