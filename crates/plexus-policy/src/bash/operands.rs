//! Judges operands that are more than data: outputs, scripts, assignments, response files. The table of a command
//! defines the kind.

use super::embedded_programs;
use super::hazards::HazardKind;
use super::options::Operands;
use super::repository::is_remote;
use super::script::{Expansion, Word};
use super::values::ValueCheck;

/// One operand.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operand<'w> {
    Known(&'w str),
    /// Unknown before it runs, but certainly not an option.
    Unknown(&'w Word),
}

/// Judges the operands of one command, in order.
#[derive(Debug, Default)]
pub(super) struct OperandJudge {
    seen: usize,
    scripted: bool,
    reads_setting: bool,
    /// The database is not a file.
    in_memory: bool,
}

type Judged = Result<(), HazardKind>;

impl OperandJudge {
    /// Records that an option had a value of this kind: a script supplied by an option is not among the operands.
    pub(super) fn saw_value(&mut self, check: ValueCheck) {
        self.scripted |= check == ValueCheck::Sed;
    }

    /// Whether there was an operand.
    pub(super) fn saw_operand(&self) -> bool {
        self.seen > 0
    }

    /// Whether the operands include everything that the command needs.
    pub(super) fn is_complete(&self, operands: Operands) -> bool {
        operands != Operands::Sql || self.seen > 1
    }

    pub(super) fn judge(&mut self, operands: Operands, operand: Operand<'_>) -> Judged {
        let nth = self.seen;
        self.seen += 1;
        let start = match operand {
            Operand::Known(text) => text,
            Operand::Unknown(word) => word.known_start(),
        };
        let known = match operand {
            Operand::Known(text) => Some(text),
            Operand::Unknown(_) => None,
        };
        let reaches = |harmless: bool| if harmless { Ok(()) } else { Err(HazardKind::Reaches) };
        let runs = |harmless: bool| if harmless { Ok(()) } else { Err(HazardKind::Runs) };
        match operands {
            Operands::Any | Operands::Program => Ok(()),
            // For many commands `@file` is a list of arguments.
            Operands::Script => runs(!start.starts_with('@') && !is_input(start)),
            Operands::AtMost(most) => {
                let several = matches!(operand, Operand::Unknown(word) if word.expansion() != Expansion::One);
                reaches(nth < most && !several)
            }
            Operands::Beginning(with) => reaches(start.starts_with(with)),
            Operands::NotBeginning(with) => {
                reaches(known == Some("") || start.chars().next().is_some_and(|first| !with.contains(first)))
            }
            Operands::Without(signs) => {
                runs(known.is_some_and(|text| !text.contains(|c: char| signs.contains(c))))
            }
            Operands::Sed if self.scripted => Ok(()),
            Operands::Sed => runs(nth > 0 || known.is_some_and(embedded_programs::is_plain_sed)),
            // awk treats an operand such as `a=b` as an assignment, and as a program in another position, so all are
            // checked.
            Operands::Awk => runs(known.map_or(nth > 0, embedded_programs::is_plain_awk)),
            Operands::Sql if nth == 0 => {
                self.in_memory = known == Some(":memory:");
                Ok(())
            }
            Operands::Sql => runs(known.is_some_and(|statement| {
                embedded_programs::is_plain_sql(statement)
                    && (self.in_memory || embedded_programs::only_reads_sql(statement))
            })),
            Operands::Remote(at) if at.holds(nth) => runs(known.is_some_and(is_remote)),
            Operands::Git | Operands::Remote(_) => runs(!start.contains("::")),
            Operands::GitConfig => {
                if nth == 0 && matches!(known, Some("get" | "list")) {
                    self.reads_setting = true;
                }
                let writes =
                    matches!(known, Some("set" | "unset" | "edit" | "rename-section" | "remove-section"));
                runs(known.is_some() && (self.reads_setting || nth == 0 && !writes))
            }
        }
    }
}

/// Whether a file is the standard input, or another one that is already open.
fn is_input(name: &str) -> bool {
    name == "-" || name.starts_with("/dev/") || name.starts_with("/proc/")
}
