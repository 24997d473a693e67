//! Bash command lines: parses them into simple commands and looks inside wrappers. This module owns the structure of a
//! line; `wildcard` and `policy` match rules against it. It never guesses at a line that it cannot parse.

mod allow_wrappers;
mod arguments;
mod compound;
mod cursor;
mod data;
mod deny_wrappers;
mod dollar;
mod embedded_programs;
mod hazards;
mod known_names;
mod operands;
mod options;
mod reach;
mod reader;
mod redirects;
mod repository;
mod script;
mod suspects;
mod values;
mod words;
mod zsh;

pub(crate) use allow_wrappers::{Alone, Inner, is_harmless, must_be_named, unwrap};
pub(crate) use cursor::Unreadable;
pub(crate) use reach::{Line, Reach, program_is_stdin, reach};
pub(crate) use reader::read;
pub(crate) use script::{Access, Expansion, Part, Piece, Redirect, Script, Word, base_name};
pub(crate) use suspects::Suspect;

/// Why a line with arithmetic is in doubt.
const ARITHMETIC: &str = "arithmetic evaluates the content of a variable";

/// Why a line that bash and zsh parse differently is rejected.
const SHELLS_DISAGREE: &str = "bash and zsh parse it differently";

/// Whether a program runs code from its input or its operands: a shell, an interpreter, `eval` or `source`.
pub(crate) fn runs_code(name: &str) -> bool {
    known_names::SHELLS.contains(&name)
        || data::is_interpreter(name)
        || matches!(name, "eval" | "source" | ".")
}
