//! A place in the text of a command line, and the bounds on what is read at all. It owns the looking ahead and the
//! line continuations; what the characters mean is for `reader`, `words` and `dollar` to say.

use super::script::{Doubt, Script};

/// Longer commands are not read; Claude Code draws the line at the same place.
pub(super) const MAX_BYTES: usize = 10_000;

/// How deep substitutions and compound commands may be nested.
const MAX_DEPTH: usize = 40;

/// A command line that cannot be read, and why. What a shell would make of it is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreadable(pub(crate) &'static str);

pub(super) type Read<T> = Result<T, Unreadable>;

/// A here-document that was announced and whose body is still to come.
#[derive(Debug)]
pub(super) struct Announced {
    pub(super) delimiter: String,
    pub(super) quoted: bool,
    pub(super) strip_tabs: bool,
    /// Which part reads it.
    pub(super) part: Option<usize>,
}

/// The text, where we are in it, and what was found so far.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    pub(super) src: &'a str,
    pub(super) pos: usize,
    pub(super) depth: usize,
    /// How many `$( )` are open here: some shells read `case` and comments differently in there.
    pub(super) substitutions: usize,
    pub(super) announced: Vec<Announced>,
    pub(super) script: Script,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(src: &'a str, depth: usize) -> Self {
        Self { src, pos: 0, depth, substitutions: 0, announced: Vec::new(), script: Script::default() }
    }

    /// The next byte, as it stands.
    pub(super) fn raw(&self) -> Option<u8> {
        self.src.as_bytes().get(self.pos).copied()
    }

    pub(super) fn raw_at(&self, ahead: usize) -> Option<u8> {
        self.src.as_bytes().get(self.pos + ahead).copied()
    }

    /// The next byte outside quotes, where a backslash at the end of a line joins it to the next.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while self.src[self.pos..].starts_with("\\\n") {
            self.pos += 2;
        }
        self.raw()
    }

    /// Takes the next byte if it is this one.
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

    /// The next character, whole, and the cursor behind it.
    pub(super) fn take_char(&mut self) -> &'a str {
        let rest = &self.src[self.pos..];
        let len = rest.chars().next().map_or(0, char::len_utf8);
        self.pos += len;
        &rest[..len]
    }

    /// Runs `read` one level further in.
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

/// Refuses text that shells, terminals and people read differently.
pub(super) fn check_text(text: &str) -> Read<()> {
    if text.len() > MAX_BYTES {
        return Err(Unreadable("it is too long"));
    }
    if text.is_ascii() {
        if text.bytes().any(|b| b.is_ascii_control() && b != b'\n' && b != b'\t') {
            return Err(Unreadable("it holds control characters"));
        }
        return Ok(());
    }
    for c in text.chars() {
        if c.is_control() && c != '\n' && c != '\t' {
            return Err(Unreadable("it holds control characters"));
        }
        if !c.is_ascii() && (c.is_whitespace() || is_invisible(c)) {
            return Err(Unreadable("it holds invisible characters"));
        }
    }
    Ok(())
}

/// Characters that take no room or turn the text around.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
