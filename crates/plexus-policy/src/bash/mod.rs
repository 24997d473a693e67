//! Bash command lines: read into the commands they are made of, and seen through wrappers. It owns what a line *is*;
//! what a rule says about it is in `wildcard` and `policy`. A line that cannot be read is never guessed at.

mod arguments;
mod commands;
mod compound;
mod cursor;
mod dollar;
mod hazards;
mod operands;
mod options;
mod reach;
mod reader;
mod redirects;
mod script;
mod scripts;
mod unwrap;
mod values;
mod words;

pub(crate) use cursor::Unreadable;
pub(crate) use reach::{Line, Reach, reach};
pub(crate) use reader::read;
pub(crate) use script::{Access, Part, Piece, Redirect, Script, Word, base_name};
pub(crate) use unwrap::{Alone, Inner, is_harmless, must_be_named, unwrap};
