//! Judges one option of a command: a separate word, a cluster of letters, and a value in the same or in the next word.

use super::{Arguments, Next, start_of};
use crate::bash::hazards::HazardKind;
use crate::bash::options::{self, Attached, Effect, NextWord, OptionSpec, OptionValue, Style, Table};
use crate::bash::script::{Expansion, Word};
use crate::bash::values::ValueCheck;

impl Arguments<'_> {
    pub(super) fn option(&mut self, table: &Table, text: &str, at: usize) -> Next {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let single = format!("-{}", name.trim_start_matches('-'));
        let listed = match table.style {
            Style::SingleDash if name.starts_with("--") => {
                table.option(name).or_else(|| table.option(&single))
            }
            _ if name.len() > 2 || table.style != Style::Gnu && table.style != Style::OldCluster => {
                table.option(name)
            }
            _ => None,
        };
        if let Some(option) = listed {
            self.alone |= table.alone.contains(&name);
            return self.whole(table, option, name, value, at);
        }
        if text[1..].bytes().all(|b| b.is_ascii_digit()) && table.option("-NUM").is_some() {
            return Next::Word;
        }
        if text.starts_with("--") || table.style == Style::Exact || text.starts_with('+') {
            self.not_known(table, name, at);
            return Next::Word;
        }
        self.cluster(table, text, at)
    }

    /// Judges an option that is a separate word, optionally with `=value`.
    fn whole(
        &mut self,
        table: &Table,
        option: OptionSpec,
        name: &str,
        value: Option<&str>,
        at: usize,
    ) -> Next {
        match (option.value, value) {
            (OptionValue::Nothing, Some(_)) | (OptionValue::Two, Some(_)) => {
                self.not_known(table, name, at);
                Next::Word
            }
            (OptionValue::Nothing, None) | (OptionValue::Attached(_), None) => {
                self.effect(option, at, None);
                if option.then == NextWord::Own { Next::Own } else { Next::Word }
            }
            (OptionValue::Value(check) | OptionValue::Attached(check), Some(value)) => {
                self.attached(option, check, value, at)
            }
            (OptionValue::Value(check), None) => self.separate(option, check, at),
            (OptionValue::Two, None) => {
                self.separate(option, ValueCheck::Any, at);
                self.separate(option, ValueCheck::Any, at)
            }
        }
    }

    /// Judges `-abc`, `-n5`, `-an 5`.
    fn cluster(&mut self, table: &Table, text: &str, at: usize) -> Next {
        for (index, letter) in text.char_indices().skip(1) {
            let name = format!("-{letter}");
            let Some(option) = table.option(&name) else {
                self.not_known(table, text, at);
                return Next::Word;
            };
            self.alone |= table.alone.contains(&name.as_str());
            let rest = &text[index + letter.len_utf8()..];
            match option.value {
                OptionValue::Nothing if table.style == Style::SingleDash && !rest.is_empty() => {
                    self.not_known(table, text, at);
                    return Next::Word;
                }
                OptionValue::Nothing => {
                    self.effect(option, at, None);
                    if option.then == NextWord::Own {
                        return Next::Own;
                    }
                }
                OptionValue::Attached(_) | OptionValue::Value(_) if !may_be_value(table, rest) => {
                    self.effect(option, at, None);
                    self.not_known(table, text, at);
                    return Next::Word;
                }
                OptionValue::Attached(_) if rest.is_empty() => self.effect(option, at, None),
                OptionValue::Attached(check) | OptionValue::Value(check) if !rest.is_empty() => {
                    return self.attached(option, check, rest, at);
                }
                OptionValue::Value(check) | OptionValue::Attached(check) => {
                    return self.separate(option, check, at);
                }
                OptionValue::Two => {
                    self.not_known(table, text, at);
                    return Next::Word;
                }
            }
        }
        Next::Word
    }

    fn attached(&mut self, option: OptionSpec, check: ValueCheck, value: &str, at: usize) -> Next {
        self.judge.saw_value(check);
        if option.effect == Effect::Harmless && !check.admits(value) {
            let kind = if check == ValueCheck::Sed { HazardKind::Runs } else { HazardKind::Reaches };
            self.hazard(at, kind);
        }
        self.effect(option, at, None);
        match option.then {
            NextWord::Words => Next::Word,
            NextWord::Own => Next::Own,
            // The program is only part of a word, so no rule can name it alone.
            NextWord::Arguments => {
                self.hazard(usize::MAX, HazardKind::Runs);
                Next::Own
            }
        }
    }

    /// Judges an option whose value is the next word.
    fn separate(&mut self, option: OptionSpec, check: ValueCheck, at: usize) -> Next {
        let value = self.at;
        self.at += 1;
        self.effect(option, at, Some((check, value)));
        match option.then {
            NextWord::Words => Next::Word,
            NextWord::Own => Next::Own,
            NextWord::Arguments => {
                let program = self.words.get(value).and_then(Word::literal);
                if option.effect == Effect::Harmless && program.and_then(options::table).is_none() {
                    self.hazard(value, HazardKind::Reaches);
                }
                Next::Program(value)
            }
        }
    }

    /// Records what an option does: the option itself, and the word that is its value.
    pub(super) fn effect(&mut self, option: OptionSpec, at: usize, value: Option<(ValueCheck, usize)>) {
        match option.effect {
            Effect::Harmless => {}
            Effect::Reaches => self.hazard(at, HazardKind::Reaches),
            // The program follows the option, unless it is part of it.
            Effect::Runs => self.hazard(value.map_or(at, |(_, value)| value), HazardKind::Runs),
        }
        let Some((check, value)) = value else { return };
        self.judge.saw_value(check);
        let Some(word) = self.words.get(value) else { return };
        let harmless = match word.literal() {
            Some(text) => {
                let dashed = text.starts_with('-') && text.len() > 1;
                let number = text[1.min(text.len())..].starts_with(|c: char| c.is_ascii_digit() || c == '>');
                // If the value looks like an option, versions of the command may disagree about which it is.
                (!dashed || number || check == ValueCheck::Mode)
                    && (option.effect != Effect::Harmless || check.admits(text))
            }
            None => match word.expansion() {
                Expansion::One => {
                    option.effect != Effect::Harmless || check.admits_any_after(word.known_start())
                }
                Expansion::Each => {
                    check == ValueCheck::Any && !start_of(word).is_empty() && !start_of(word).starts_with('-')
                }
                Expansion::Many => false,
            },
        };
        if !harmless {
            let kind = if check == ValueCheck::Sed { HazardKind::Runs } else { HazardKind::Reaches };
            self.hazard(value, kind);
        }
    }

    pub(super) fn not_known(&mut self, table: &Table, name: &str, at: usize) {
        let runs = name.starts_with("--") && table.may_abbreviate_a_runner(name);
        self.hazard(at, if runs { HazardKind::Runs } else { HazardKind::Reaches });
        self.lost = true;
    }
}

/// Whether the rest of a cluster is harmless as the value of the option before it: either it certainly is that value,
/// or it would be harmless as options too.
fn may_be_value(table: &Table, rest: &str) -> bool {
    let number = rest.bytes().all(|b| b.is_ascii_digit());
    let harmless = |letter: char| {
        table.option(&format!("-{letter}")).is_none_or(|option| option.effect == Effect::Harmless)
    };
    match table.attached {
        Attached::Getopt => true,
        Attached::Never => number,
        Attached::Probably => number || rest.chars().all(harmless),
    }
}
