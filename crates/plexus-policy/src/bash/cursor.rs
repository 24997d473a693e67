//! A position in the text of a command line, and the limits of what is parsed. This module owns lookahead and line
//! continuations; `reader`, `words` and `dollar` interpret the characters.

use super::script::{Doubt, Script};

/// Longer commands are rejected; Claude Code uses the same limit.
pub(super) const MAX_BYTES: usize = 10_000;

/// The maximum nesting of substitutions and compound commands.
const MAX_DEPTH: usize = 40;

/// A command line that cannot be parsed, and why. What a shell would do with it is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreadable(pub(crate) &'static str);

pub(super) type Read<T> = Result<T, Unreadable>;

/// A here-document whose body follows later.
#[derive(Debug)]
pub(super) struct HereDocument {
    pub(super) delimiter: String,
    pub(super) quoted: bool,
    pub(super) strip_tabs: bool,
    /// The part that reads it.
    pub(super) part: Option<usize>,
}

/// The text, the position in it, and the results so far.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    pub(super) src: &'a str,
    pub(super) pos: usize,
    pub(super) depth: usize,
    /// The number of open `$( )`: some shells parse `case` and comments differently inside.
    pub(super) substitutions: usize,
    pub(super) here_documents: Vec<HereDocument>,
    pub(super) script: Script,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(src: &'a str, depth: usize) -> Self {
        Self { src, pos: 0, depth, substitutions: 0, here_documents: Vec::new(), script: Script::default() }
    }

    /// The next byte, uninterpreted.
    pub(super) fn raw(&self) -> Option<u8> {
        self.src.as_bytes().get(self.pos).copied()
    }

    pub(super) fn raw_at(&self, ahead: usize) -> Option<u8> {
        self.src.as_bytes().get(self.pos + ahead).copied()
    }

    /// The next byte outside quotes. A backslash at the end of a line joins it to the next line.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while self.src[self.pos..].starts_with("\\\n") {
            self.pos += 2;
        }
        self.raw()
    }

    /// Consumes the next byte if it is this one.
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.pos += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, byte: u8, why: &'static str) -> Read<()> {
        if self.eat(byte) { Ok(()) } else { Err(Unreadable(why)) }
    }

    pub(super) fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.pos += 1;
        }
    }

    /// Consumes and returns the next character.
    pub(super) fn take_char(&mut self) -> &'a str {
        let rest = &self.src[self.pos..];
        let len = rest.chars().next().map_or(0, char::len_utf8);
        self.pos += len;
        &rest[..len]
    }

    /// Runs `read` one nesting level deeper.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Unreadable("it is nested too deeply"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    pub(super) fn doubt(&mut self, doubt: Doubt) {
        if !self.script.doubts.contains(&doubt) {
            self.script.doubts.push(doubt);
        }
    }
}

/// Rejects text that shells, terminals and people read differently.
pub(super) fn check_text(text: &str) -> Read<()> {
    if text.len() > MAX_BYTES {
        return Err(Unreadable("it is too long"));
    }
    if text.is_ascii() {
        if text.bytes().any(|b| b.is_ascii_control() && b != b'\n' && b != b'\t') {
            return Err(Unreadable("it contains control characters"));
        }
        return Ok(());
    }
    for c in text.chars() {
        if c.is_control() && c != '\n' && c != '\t' {
            return Err(Unreadable("it contains control characters"));
        }
        if !c.is_ascii() && (c.is_whitespace() || is_invisible(c)) {
            return Err(Unreadable("it contains invisible characters"));
        }
    }
    Ok(())
}

/// Characters that have no width or change the text direction.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
