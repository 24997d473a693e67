//! Compares the words of a command with its option table, like getopt, and returns the words that are not known to be
//! harmless. It fails closed: a word that the table does not explain is a hazard, whatever it may expand to.

mod option;

use std::ops::ControlFlow;

use super::hazards::{Hazard, HazardKind, hazards};
use super::operands::{Operand, OperandJudge};
use super::options::{
    self, AfterDashes, Effect, Input, OperandAccess, Operands, OptionSpec, OptionValue, Order, Style, Table,
    Trust,
};
use super::repository;
use super::script::{Expansion, Piece, Word};
use super::values::ValueCheck;

/// Judges a command without a table: operands are covered, options are not.
pub(super) fn without_table(words: &[Word]) -> Vec<Hazard> {
    Arguments::new(words, 1).against(&Table::default())
}

/// Judges a command with a table.
pub(super) fn with_table(words: &[Word], table: &Table) -> Vec<Hazard> {
    Arguments::new(words, 1).against(table)
}

/// One pass over the words of a command.
#[derive(Default)]
struct Arguments<'w> {
    words: &'w [Word],
    at: usize,
    found: Vec<Hazard>,
    /// An option was not recognised, so it is unknown whether the next word is its value.
    lost: bool,
    /// An option was found that keeps the command from reading code from its input.
    alone: bool,
    judge: OperandJudge,
    /// The number of subcommands entered.
    level: usize,
    /// An option followed the last subcommand.
    opted: bool,
}

/// How to treat the next word.
enum Next {
    Word,
    /// All further words are arguments of the program that is run.
    Own,
    /// A program is at this index, followed by its arguments.
    Program(usize),
}

impl<'w> Arguments<'w> {
    fn new(words: &'w [Word], at: usize) -> Self {
        Self { words, at, ..Self::default() }
    }

    fn hazard(&mut self, at: usize, kind: HazardKind) {
        self.found.push(Hazard { at, kind });
    }

    fn against(mut self, table: &Table) -> Vec<Hazard> {
        if table.trust == Trust::Everything {
            return self.found;
        }
        if table.style == Style::OldCluster {
            self.old_cluster(table);
        }
        while let Some(word) = self.words.get(self.at) {
            let at = self.at;
            self.at += 1;
            let Some(text) = word.literal() else {
                if self.unknown(table, word, at).is_break() {
                    return self.found;
                }
                continue;
            };
            let next = if text == "--" && !self.lost && table.after_dashes != AfterDashes::NotKnown {
                return self.behind_dashes(table);
            } else if is_option(table, text) {
                self.opted = true;
                self.option(table, text, at)
            } else if let Some(end) = self.operand(table, word, at) {
                return end;
            } else {
                Next::Word
            };
            match next {
                Next::Word => {}
                Next::Own => return self.found,
                Next::Program(at) => return self.program(at),
            }
        }
        self.end(table)
    }

    fn end(mut self, table: &Table) -> Vec<Hazard> {
        if !self.judge.is_complete(table.operands) {
            self.hazard(usize::MAX, HazardKind::Runs);
        }
        let takes_code = match table.input {
            Input::Data => false,
            Input::Code => true,
            Input::CodeWithoutOperand => !self.judge.saw_operand(),
            Input::WritesOutput => false,
        };
        if table.input == Input::WritesOutput && self.judge.saw_operand() && !self.alone {
            self.hazard(self.words.len() - 1, HazardKind::Reaches);
        }
        if takes_code && !self.alone {
            self.hazard(usize::MAX, HazardKind::Reaches);
        }
        self.found
    }

    /// Judges a word that is unknown before the command runs.
    fn unknown(&mut self, table: &Table, word: &Word, at: usize) -> ControlFlow<()> {
        let start = start_of(word);
        let stays = word.expansion() != Expansion::Many;
        if let Some((name, _)) = start.split_once('=')
            && stays
            && let Some(OptionSpec { value, effect: Effect::Harmless, .. }) = table.option(name)
            && matches!(value, OptionValue::Value(ValueCheck::Any) | OptionValue::Attached(ValueCheck::Any))
        {
            return ControlFlow::Continue(());
        }
        let is_operand = stays && !start.is_empty() && !is_option(table, start);
        if !is_operand || self.lost || table.has_subcommands() {
            let kind = if table.can_run() { HazardKind::Runs } else { HazardKind::Reaches };
            self.hazard(at, kind);
            self.lost = true;
            return ControlFlow::Continue(());
        }
        self.repository(table, word, at);
        match self.judge.judge(table.operands, Operand::Unknown(word)) {
            Ok(()) if matches!(table.operands, Operands::Script) => return ControlFlow::Break(()),
            Ok(()) => {}
            Err(kind) => self.hazard(at, kind),
        }
        ControlFlow::Continue(())
    }

    /// Judges the words after `--`, where no options follow.
    fn behind_dashes(self, table: &Table) -> Vec<Hazard> {
        match table.after_dashes {
            AfterDashes::Own | AfterDashes::NotKnown => self.found,
            AfterDashes::Table(name) => match options::table(name) {
                Some(table) => self.against(table),
                None => self.against(&Table::default()),
            },
            AfterDashes::Operands => self.only_operands(table),
        }
    }

    /// Judges the remaining words, all of which are operands.
    fn only_operands(mut self, table: &Table) -> Vec<Hazard> {
        while let Some(word) = self.words.get(self.at) {
            let at = self.at;
            self.at += 1;
            if word.literal().is_none()
                && word.expansion() == Expansion::Many
                && table.operands != Operands::Any
            {
                self.hazard(at, HazardKind::Runs);
            } else if let Some(end) = self.operand(table, word, at) {
                return end;
            }
        }
        self.end(table)
    }

    /// Judges an operand; returns the result if it changes the meaning of all later words.
    fn operand(&mut self, table: &Table, word: &Word, at: usize) -> Option<Vec<Hazard>> {
        if table.has_subcommands() {
            return Some(self.subcommand(table, word, at));
        }
        if self.lost && table.operands != Operands::Any {
            self.hazard(at, HazardKind::Reaches);
            return None;
        }
        if table.operands == Operands::Program {
            self.hazard(at, HazardKind::Runs);
            return Some(std::mem::take(self).program(at));
        }
        self.repository(table, word, at);
        let operand = word.literal().map_or(Operand::Unknown(word), Operand::Known);
        if let Err(kind) = self.judge.judge(table.operands, operand) {
            self.hazard(at, kind);
        }
        if table.operands == Operands::Script {
            return Some(std::mem::take(&mut self.found));
        }
        if table.order == Order::OptionsFirst {
            return Some(std::mem::take(self).only_operands(table));
        }
        None
    }

    /// Judges an operand that leads into a repository's own folder: git runs what is written there with its next
    /// command.
    fn repository(&mut self, table: &Table, word: &Word, at: usize) {
        let leads_there = match table.access {
            OperandAccess::Reads => false,
            OperandAccess::May => repository::leads_into(word),
            OperandAccess::Writes => word.is_computed() || repository::leads_into(word),
        };
        if leads_there {
            self.hazard(at, HazardKind::Reaches);
        }
    }

    fn subcommand(&mut self, table: &Table, word: &Word, at: usize) -> Vec<Hazard> {
        let Some(inner) = word.literal().and_then(|name| table.subcommand(name)).filter(|_| !self.lost)
        else {
            // An unknown subcommand: a rule must name it, and its options.
            self.hazard(at, HazardKind::Reaches);
            let rest = std::mem::take(self);
            return rest.against(&Table::default());
        };
        // `git remote -v` lists and `git remote -v remove x` does not: a rule for the former does not cover the latter.
        if self.level > 0 && self.opted {
            self.hazard(at, HazardKind::Reaches);
        }
        self.level += 1;
        self.opted = false;
        match inner.trust {
            Trust::NamedWrites => self.hazard(at, HazardKind::Reaches),
            Trust::NamedRuns => self.hazard(at, HazardKind::Runs),
            Trust::Listed | Trust::Everything => {}
        }
        std::mem::take(self).against(inner)
    }

    /// Judges a program that a rule must name, with its own table.
    fn program(mut self, at: usize) -> Vec<Hazard> {
        let inner = hazards(self.words.get(at..).unwrap_or_default());
        self.found
            .extend(inner.into_iter().map(|hazard| Hazard { at: hazard.at.saturating_add(at), ..hazard }));
        self.found
    }

    fn old_cluster(&mut self, table: &Table) {
        let Some(text) = self.words.get(1).and_then(Word::literal) else { return };
        if text.starts_with('-') || text.is_empty() {
            return;
        }
        // Each letter with a value takes one of the following words, in order.
        self.at = 2;
        for letter in text.chars() {
            match table.option(&format!("-{letter}")) {
                Some(option) => {
                    let value = match option.value {
                        OptionValue::Value(check) => Some(check),
                        _ => None,
                    };
                    self.effect(option, 1, value.map(|check| (check, self.at)));
                    self.at += usize::from(value.is_some());
                }
                None => self.not_known(table, "", 1),
            }
        }
    }
}

/// Whether a word is an option, or may be one.
fn is_option(table: &Table, text: &str) -> bool {
    match text.chars().next() {
        Some('-') => text.len() > 1,
        Some('+') => table.option("+NAME").is_some(),
        _ => false,
    }
}

/// The text that a word starts with; `~` is known to be a path.
fn start_of(word: &Word) -> &str {
    if word.pieces().first() == Some(&Piece::Home) { "/" } else { word.known_start() }
}

#[cfg(test)]
mod tests;
