//! Bash command lines: read into the commands they are made of, and seen through wrappers. It owns what a line *is*;
//! what a rule says about it is in `wildcard` and `policy`. A line that cannot be read is never guessed at.

mod arguments;
mod commands;
mod compound;
mod cursor;
mod data;
mod dollar;
mod hazards;
mod operands;
mod options;
mod reach;
mod reader;
mod redirects;
mod repository;
mod script;
mod scripts;
mod suspects;
mod unwrap;
mod values;
mod words;
mod wrappers;
mod zsh;

pub(crate) use cursor::Unreadable;
pub(crate) use reach::{Line, Reach, reach};
pub(crate) use reader::read;
pub(crate) use script::{Access, Part, Piece, Redirect, Script, Word, base_name};
pub(crate) use suspects::Suspect;
pub(crate) use unwrap::{Alone, Inner, is_harmless, must_be_named, unwrap};

/// Why a line in which something is computed is in doubt.
const ARITHMETIC: &str = "arithmetic evaluates what a variable holds";

/// Why a line is not read that bash and zsh read differently.
const SHELLS_DISAGREE: &str = "bash and zsh read it differently";
