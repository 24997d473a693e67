//! Parses one word: quotes, escapes and the pieces that are unknown before it runs. `dollar` parses what follows a `$`
//! or a backtick.

use super::SHELLS_DISAGREE;
use super::cursor::{Cursor, Read, Unreadable};
use super::script::{Expansion, Piece, Word};

/// A word, and how it was written.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) word: Word,
    /// Nothing in it was quoted or expanded: only such a word can be a keyword or a variable name.
    pub(super) plain: bool,
}

impl Written {
    /// The word, if it was written without quotes or expansions.
    pub(super) fn bare(&self) -> Option<&str> {
        if self.plain { self.word.literal() } else { None }
    }
}

/// Bytes that end a word outside quotes.
pub(super) fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}

/// Bytes without special meaning in any shell, anywhere in a word.
fn is_ordinary(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'-' | b'.' | b'/' | b':' | b',' | b'+' | b'@' | b'%')
}

impl Cursor<'_> {
    /// Parses a word; `None` if no word starts here.
    pub(super) fn word(&mut self) -> Read<Option<Written>> {
        match self.peek() {
            None => return Ok(None),
            Some(b'<' | b'>') if self.raw_at(1) == Some(b'(') => {}
            Some(byte) if ends_word(byte) => return Ok(None),
            Some(_) => {}
        }
        let mut written = Written { word: Word::default(), plain: true };
        let start = self.pos;
        while let Some(byte) = self.peek() {
            if matches!(byte, b'<' | b'>') && self.raw_at(1) == Some(b'(') {
                // Shells disagree whether this is a process substitution in the middle of a word.
                if self.pos != start {
                    return Err(Unreadable("a word contains a process substitution"));
                }
                written.plain = false;
                self.pos += 2;
                self.substitution_body()?;
                written.word.push(Piece::Any, Expansion::One);
                continue;
            }
            if ends_word(byte) {
                break;
            }
            self.piece(byte, start, &mut written)?;
        }
        // zsh ends a block with it anywhere.
        if written.bare() == Some("}") {
            return Err(Unreadable(SHELLS_DISAGREE));
        }
        if !self.here_documents.is_empty() && self.src[start..self.pos].contains('\n') {
            return Err(Unreadable("a line break in a word separates a here-document from its command"));
        }
        let source = &self.src[start..self.pos];
        if written.word.literal().is_none() && source.contains(['*', '?', '[', '{']) {
            written.word.set_pattern(source);
        }
        Ok(Some(written))
    }

    /// Parses the next piece of an unquoted word.
    fn piece(&mut self, byte: u8, start: usize, written: &mut Written) -> Read<()> {
        match byte {
            _ if is_ordinary(byte) => {
                let from = self.pos;
                while self.raw().is_some_and(is_ordinary) {
                    self.pos += 1;
                }
                written.word.push_str(&self.src[from..self.pos]);
                return Ok(());
            }
            b'\'' => self.single_quoted(&mut written.word)?,
            b'"' => self.double_quoted(&mut written.word)?,
            b'\\' => {
                self.pos += 1;
                if self.raw().is_none() {
                    return Err(Unreadable("it ends with a backslash"));
                }
                written.word.push_str(self.take_char());
            }
            b'$' => self.dollar(&mut written.word, Quoting::None)?,
            b'`' => self.backticks(&mut written.word, Quoting::None)?,
            b'~' if self.pos == start => {
                self.pos += 1;
                let home = self.peek().is_none_or(|next| next == b'/' || ends_word(next));
                written.word.push(if home { Piece::Home } else { Piece::Any }, Expansion::One);
            }
            // `{}` at the end of a word is text in every shell; other braces may expand to several words.
            b'{' if self.raw_at(1) == Some(b'}') && self.raw_at(2).is_none_or(ends_word) => {
                written.word.push_str("{}");
                self.pos += 2;
            }
            b'{' if self.pos == start && self.raw_at(1).is_none_or(ends_word) => {
                written.word.push_str("{");
                self.pos += 1;
                return Ok(());
            }
            b'[' if self.pos == start && self.raw_at(1).is_none_or(ends_word) => {
                written.word.push_str("[");
                self.pos += 1;
                return Ok(());
            }
            b'*' | b'?' | b'[' | b'{' => {
                self.pos += 1;
                written.word.push(Piece::Any, Expansion::Each);
            }
            // zsh replaces `=ls` with the path of `ls`.
            b'=' if self.pos == start => {
                self.pos += 1;
                written.word.push(Piece::Any, Expansion::One);
            }
            _ => {
                written.word.push_str(self.take_char());
                return Ok(());
            }
        }
        written.plain = false;
        Ok(())
    }

    fn single_quoted(&mut self, word: &mut Word) -> Read<()> {
        self.pos += 1;
        let rest = &self.src[self.pos..];
        let end = rest.find('\'').ok_or(Unreadable("a quote is not closed"))?;
        word.push_str(&rest[..end]);
        self.pos += end + 1;
        // With a zsh option, two of them are one quote inside the quotes.
        if self.raw() == Some(b'\'') { Err(Unreadable(SHELLS_DISAGREE)) } else { Ok(()) }
    }

    /// Parses `"…"`, cursor on the quote.
    pub(super) fn double_quoted(&mut self, word: &mut Word) -> Read<()> {
        self.pos += 1;
        word.push_str("");
        loop {
            let from = self.pos;
            let rest = &self.src.as_bytes()[from..];
            let len = rest.iter().position(|b| matches!(b, b'"' | b'\\' | b'$' | b'`'));
            self.pos += len.ok_or(Unreadable("a quote is not closed"))?;
            word.push_str(&self.src[from..self.pos]);
            match self.raw() {
                Some(b'"') => {
                    self.pos += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape_in_quotes(word, b"$`\"\\")?,
                Some(b'$') => self.dollar(word, Quoting::Double)?,
                _ => self.backticks(word, Quoting::Double)?,
            }
        }
    }

    /// Parses a backslash where only some characters can be escaped.
    pub(super) fn escape_in_quotes(&mut self, word: &mut Word, escapable: &[u8]) -> Read<()> {
        match self.raw_at(1) {
            None => return Err(Unreadable("it ends with a backslash")),
            Some(b'\n') => self.pos += 2,
            Some(next) if escapable.contains(&next) => {
                self.pos += 1;
                word.push_str(self.take_char());
            }
            Some(_) => {
                self.pos += 1;
                word.push_str("\\");
            }
        }
        Ok(())
    }
}

/// The context of a `$` or a backtick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    None,
    Double,
    /// In the body of a here-document, where quotes are ordinary characters.
    Document,
}

impl Quoting {
    /// What an expansion in this context can become.
    pub(super) fn expansion(self) -> Expansion {
        match self {
            Self::None => Expansion::Many,
            Self::Double | Self::Document => Expansion::One,
        }
    }
}
