//! Parses what starts with `$` or a backtick: substitutions, parameters, arithmetic, `$'…'`. The commands inside become
//! parts of the script; the value is unknown. Syntax that shells disagree about is rejected.

use super::cursor::{Cursor, Read, Unreadable};
use super::script::{Doubt, Expansion, Piece, Word};
use super::words::{Quoting, ends_word};
use super::{ARITHMETIC, SHELLS_DISAGREE};

impl Cursor<'_> {
    /// Parses an expansion, cursor on the `$`.
    pub(super) fn dollar(&mut self, word: &mut Word, quoting: Quoting) -> Read<()> {
        self.pos += 1;
        match self.raw() {
            Some(b'(') if self.raw_at(1) == Some(b'(') => {
                self.pos += 2;
                self.arithmetic()?;
            }
            Some(b'(') => {
                self.pos += 1;
                self.substitution_body()?;
            }
            Some(b'{') => {
                self.pos += 1;
                self.nested(Self::parameter)?;
            }
            Some(b'\'') if quoting == Quoting::None => return self.ansi_c_quoted(word),
            // `$"…"` may be replaced by a translation.
            Some(b'"') if quoting == Quoting::None => self.double_quoted(word)?,
            Some(byte) if byte == b'_' || byte.is_ascii_alphanumeric() => {
                self.name();
                return self.after_parameter(word, quoting);
            }
            Some(b'#') if !self.raw_at(1).is_none_or(|next| ends_word(next) || next == b'"') => {
                return Err(Unreadable(SHELLS_DISAGREE));
            }
            Some(b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => {
                self.pos += 1;
                return self.after_parameter(word, quoting);
            }
            // A literal dollar sign.
            None => {
                word.push_str("$");
                return Ok(());
            }
            Some(byte)
                if ends_word(byte) && byte != b'(' || matches!(byte, b'"' | b'/' | b',' | b':' | b'%') =>
            {
                word.push_str("$");
                return Ok(());
            }
            Some(_) => return Err(Unreadable("shells disagree about the meaning of a dollar sign")),
        }
        word.push(Piece::Any, quoting.expansion());
        Ok(())
    }

    /// Checks what follows `$name`. zsh includes more in the expansion: a subscript, which it evaluates, a modifier as
    /// in `$name:h`, and letters of any script.
    fn after_parameter(&mut self, word: &mut Word, quoting: Quoting) -> Read<()> {
        let mut rest = self.src[self.pos..].chars();
        word.push(Piece::Any, quoting.expansion());
        match rest.next() {
            Some('[') => Err(Unreadable(SHELLS_DISAGREE)),
            Some(c) if !c.is_ascii() && c.is_alphanumeric() => Err(Unreadable(SHELLS_DISAGREE)),
            Some(':') if rest.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '&') => {
                word.blur();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Parses the name of a variable.
    pub(super) fn name(&mut self) -> &str {
        let from = self.pos;
        while self.raw().is_some_and(|b| b == b'_' || b.is_ascii_alphanumeric()) {
            self.pos += 1;
        }
        &self.src[from..self.pos]
    }

    /// Parses `… )`: the commands of a substitution.
    pub(super) fn substitution_body(&mut self) -> Read<()> {
        self.nested(|cursor| {
            let here_documents = cursor.here_documents.len();
            cursor.substitutions += 1;
            cursor.list(&[])?;
            cursor.substitutions -= 1;
            if cursor.here_documents.len() != here_documents {
                return Err(Unreadable("a here-document is not closed"));
            }
            cursor.expect(b')', "a parenthesis is not closed")
        })
    }

    /// Parses `` `…` ``: extracts its text first, whatever it contains, and then parses it as a separate script.
    pub(super) fn backticks(&mut self, word: &mut Word, quoting: Quoting) -> Read<()> {
        self.pos += 1;
        let mut inner = String::new();
        loop {
            match self.raw() {
                None => return Err(Unreadable("a backtick is not closed")),
                Some(b'`') => break,
                Some(b'\\') => match self.raw_at(1) {
                    Some(b'`' | b'\\' | b'$') => {
                        self.pos += 1;
                        inner.push_str(self.take_char());
                    }
                    Some(b'"') if quoting == Quoting::Double => {
                        return Err(Unreadable("a quote is escaped inside backticks"));
                    }
                    _ => inner.push_str(self.take_char()),
                },
                Some(_) => inner.push_str(self.take_char()),
            }
        }
        self.pos += 1;
        self.nested(|cursor| {
            let mut within = Cursor::new(&inner, cursor.depth);
            within.script = std::mem::take(&mut cursor.script);
            let read = within.whole();
            cursor.script = within.script;
            read
        })?;
        word.push(Piece::Any, quoting.expansion());
        Ok(())
    }

    /// Parses `…))`. The shell evaluates names in it, and the value of a variable may run commands.
    pub(super) fn arithmetic(&mut self) -> Read<()> {
        self.nested(|cursor| {
            let mut open = 0_usize;
            loop {
                match cursor.raw() {
                    None | Some(b'\'' | b'"' | b'`' | b'\\' | b'[' | b'#' | b'{' | b';' | b'\n') => {
                        return Err(Unreadable("its arithmetic cannot be parsed"));
                    }
                    Some(b'(') => open += 1,
                    Some(b')') if open > 0 => open -= 1,
                    Some(b')') if cursor.raw_at(1) == Some(b')') => {
                        cursor.pos += 2;
                        return Ok(());
                    }
                    Some(b')') => return Err(Unreadable("its arithmetic cannot be parsed")),
                    Some(b'$') => {
                        cursor.doubt(Doubt::Shifted(ARITHMETIC));
                        cursor.dollar(&mut Word::default(), Quoting::Double)?;
                        continue;
                    }
                    Some(byte) if byte == b'_' || byte.is_ascii_alphabetic() => {
                        cursor.doubt(Doubt::Shifted(ARITHMETIC));
                    }
                    Some(_) => {}
                }
                cursor.take_char();
            }
        })
    }

    /// Parses `…}`: a parameter and its modifications.
    fn parameter(&mut self) -> Read<()> {
        match self.raw() {
            Some(b'#') if self.raw_at(1) != Some(b'}') => self.pos += 1,
            Some(b'!') if self.raw_at(1) != Some(b'}') => {
                self.doubt(Doubt::Unseen("a variable contains the name of another variable"));
                self.pos += 1;
            }
            _ => {}
        }
        if self.raw().is_some_and(|b| b == b'_' || b.is_ascii_alphanumeric()) {
            self.name();
        } else if matches!(self.raw(), Some(b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!')) {
            self.pos += 1;
        } else {
            return Err(Unreadable("shells disagree about the meaning of a parameter expansion"));
        }
        if self.raw() == Some(b'[') {
            self.index()?;
        }
        match self.raw() {
            Some(b'}') => {
                self.pos += 1;
                return Ok(());
            }
            Some(b'=') => self.doubt(Doubt::Shifted("an expansion assigns a variable")),
            Some(b'@') => self.doubt(Doubt::Unseen("an expansion evaluates the content of a variable")),
            Some(b':') if self.raw_at(1) == Some(b'=') => {
                self.doubt(Doubt::Shifted("an expansion assigns a variable"));
            }
            Some(b':') if !matches!(self.raw_at(1), Some(b'-' | b'+' | b'?')) && !self.plain_range() => {
                self.doubt(Doubt::Shifted(ARITHMETIC));
            }
            Some(b':' | b'-' | b'+' | b'?' | b'%' | b'#' | b'/' | b'^' | b',') => {}
            _ => return Err(Unreadable("shells disagree about the meaning of a parameter expansion")),
        }
        // The meaning of quotes in here depends on the context.
        loop {
            match self.raw() {
                Some(b'}') => {
                    self.pos += 1;
                    return Ok(());
                }
                Some(b'$') => self.dollar(&mut Word::default(), Quoting::Double)?,
                None | Some(b'\'' | b'"' | b'\\' | b'`' | b'{' | b'<' | b'>' | b'(' | b')' | b'\n') => {
                    return Err(Unreadable("shells disagree about the meaning of a parameter expansion"));
                }
                Some(_) => {
                    self.take_char();
                }
            }
        }
    }

    /// Whether only numbers precede the closing brace.
    fn plain_range(&self) -> bool {
        let inside = self.src[self.pos..].bytes().take_while(|b| *b != b'}');
        inside.into_iter().all(|b| b.is_ascii_digit() || matches!(b, b':' | b' ' | b'-'))
    }

    /// Parses `[…]` after a name: an expression, unless it is a number or selects all elements.
    fn index(&mut self) -> Read<()> {
        self.pos += 1;
        let from = self.pos;
        while self.raw().is_some_and(|b| {
            b.is_ascii_alphanumeric() || matches!(b, b'_' | b'@' | b'*' | b'$' | b'-' | b'+')
        }) {
            self.pos += 1;
        }
        let index = &self.src[from..self.pos];
        if !matches!(index, "@" | "*") && !index.bytes().all(|b| b.is_ascii_digit()) {
            self.doubt(Doubt::Shifted(ARITHMETIC));
        }
        self.expect(b']', "an array index cannot be parsed")
    }

    /// Parses `$'…'`, cursor on the quote.
    fn ansi_c_quoted(&mut self, word: &mut Word) -> Read<()> {
        self.pos += 1;
        word.push_str("");
        loop {
            match self.raw() {
                None => return Err(Unreadable("a quote is not closed")),
                Some(b'\'') => {
                    self.pos += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.pos += 1;
                    match self.ansi_c_escape()? {
                        Some(c) => word.push_str(c.encode_utf8(&mut [0; 4])),
                        // A NUL ends the text, and a single byte may be any character in the locale.
                        None => word.push(Piece::Any, Expansion::One),
                    }
                }
                Some(_) => word.push_str(self.take_char()),
            }
        }
    }

    /// Parses one escape of `$'…'`; `None` if it is not clearly a character.
    fn ansi_c_escape(&mut self) -> Read<Option<char>> {
        let letter = self.raw().ok_or(Unreadable("a quote is not closed"))?;
        let (radix, most) = match letter {
            b'x' => (16, 2),
            b'u' => (16, 4),
            b'U' => (16, 8),
            b'0'..=b'7' => (8, 3),
            _ => {
                let known = match letter {
                    b'n' => Some('\n'),
                    b't' => Some('\t'),
                    b'\\' | b'\'' | b'"' | b'?' => Some(char::from(letter)),
                    _ => None,
                };
                self.take_char();
                return Ok(known);
            }
        };
        if radix == 16 {
            self.pos += 1;
        }
        let digits =
            self.src[self.pos..].bytes().take(most).take_while(|b| char::from(*b).is_digit(radix)).count();
        let value = u32::from_str_radix(&self.src[self.pos..self.pos + digits], radix).unwrap_or(0);
        self.pos += digits;
        Ok(char::from_u32(value).filter(|c| c.is_ascii() && !c.is_ascii_control()))
    }
}
