//! Parses redirections, here-documents and `[[ … ]]`: the places where a word names a file or holds a text instead of
//! being an argument.

use super::cursor::{Cursor, HereDocument, Read, Unreadable};
use super::script::{Access, Doubt, Redirect, Word};
use super::words::Quoting;
use super::{ARITHMETIC, SHELLS_DISAGREE, zsh};

impl Cursor<'_> {
    /// Parses one redirection, if present; `part` is the command it belongs to.
    pub(super) fn redirect(&mut self, part: Option<usize>) -> Read<bool> {
        self.peek();
        let digits = self.src[self.pos..].bytes().take_while(u8::is_ascii_digit).count();
        let operator = &self.src.as_bytes()[self.pos + digits..];
        let (len, kind) = match operator {
            [b'<' | b'>', b'(', ..] if digits == 0 => return Ok(false),
            [b'<', b'<', b'<', ..] => (3, Kind::HereString),
            [b'<', b'<', b'-', ..] => (3, Kind::HereDocument { strip_tabs: true }),
            [b'<', b'<', ..] => (2, Kind::HereDocument { strip_tabs: false }),
            [b'<', b'>', ..] => (2, Kind::Both),
            [b'<', b'&', ..] | [b'>', b'&', ..] => (2, Kind::Duplicate),
            [b'<', ..] => (1, Kind::File(Access::Read)),
            [b'>', b'>' | b'|', ..] => (2, Kind::File(Access::Write)),
            [b'>', ..] => (1, Kind::File(Access::Write)),
            [b'&', b'>', b'>', ..] if digits == 0 => (3, Kind::File(Access::Write)),
            [b'&', b'>', ..] if digits == 0 => (2, Kind::File(Access::Write)),
            _ => return Ok(false),
        };
        self.pos += digits + len;
        if operator.get(len) == Some(&b'\\') && operator.get(len + 1) == Some(&b'\n') {
            return Err(Unreadable("a line break splits a redirection"));
        }
        // `>!file` and `>>|file` open `file` in zsh.
        if matches!(operator.get(len), Some(b'!' | b'|')) {
            return Err(Unreadable(SHELLS_DISAGREE));
        }
        self.skip_blanks();
        if let Kind::HereDocument { strip_tabs } = kind {
            let (delimiter, quoted) = self.delimiter()?;
            self.here_documents.push(HereDocument { delimiter, quoted, strip_tabs, part });
            return Ok(true);
        }
        let target = self.word()?.ok_or(Unreadable("a redirection has no target"))?.word;
        match kind {
            Kind::HereString => self.give(part, target),
            Kind::File(access) => self.script.redirects.push(Redirect { access, target }),
            Kind::Both => {
                self.script.redirects.push(Redirect { access: Access::Read, target: target.clone() });
                self.script.redirects.push(Redirect { access: Access::Write, target });
            }
            // `2>&1` and `3>&-` open no file; `>& name` does.
            Kind::Duplicate => {
                let descriptor = target
                    .literal()
                    .is_some_and(|to| to == "-" || !to.is_empty() && to.bytes().all(|b| b.is_ascii_digit()));
                // `2>&1-` moves a descriptor in bash and writes to the file `1-` in zsh.
                if target.literal().is_some_and(|to| to.len() > 1 && to.ends_with('-')) {
                    return Err(Unreadable(SHELLS_DISAGREE));
                }
                // bash expands such a name twice: `>&'$(id)'` runs `id`.
                let plain =
                    |to: &str| to.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./+@%,:".contains(&b));
                if !descriptor && !target.literal().is_some_and(plain) {
                    return Err(Unreadable("a redirection expands its file name twice"));
                }
                if !descriptor {
                    self.script.redirects.push(Redirect { access: Access::Write, target });
                }
            }
            Kind::HereDocument { .. } => {}
        }
        Ok(true)
    }

    /// Records the text that a command reads.
    fn give(&mut self, part: Option<usize>, text: Word) {
        if let Some(part) = part.and_then(|part_index| self.script.parts.get_mut(part_index)) {
            part.stdin = Some(text);
        }
    }

    /// Parses the delimiter of a here-document, and whether it is quoted.
    fn delimiter(&mut self) -> Read<(String, bool)> {
        let from = self.pos;
        let written = self.word()?.ok_or(Unreadable("a here-document has no delimiter"))?;
        let raw = &self.src[from..self.pos];
        let delimiter = written.word.literal().unwrap_or_default();
        let simple = !delimiter.is_empty()
            && delimiter.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
        if !simple {
            return Err(Unreadable("shells disagree about the delimiter of a here-document"));
        }
        let quoted = raw != delimiter;
        if quoted
            && raw != format!("'{delimiter}'")
            && raw != format!("\"{delimiter}\"")
            && raw != format!("\\{delimiter}")
        {
            return Err(Unreadable("shells disagree about the delimiter of a here-document"));
        }
        Ok((delimiter.to_owned(), quoted))
    }

    /// Reads the bodies of the here-documents announced on the line that just ended.
    pub(super) fn documents(&mut self) -> Read<()> {
        for here_document in std::mem::take(&mut self.here_documents) {
            let text = self.document(&here_document)?;
            self.give(here_document.part, text);
        }
        Ok(())
    }

    fn document(&mut self, here_document: &HereDocument) -> Read<Word> {
        let start = self.pos;
        loop {
            let line_start = self.pos;
            let rest = &self.src[self.pos..];
            let end = rest.find('\n').unwrap_or(rest.len());
            let line = &rest[..end];
            let stripped = if here_document.strip_tabs { line.trim_start_matches('\t') } else { line };
            if stripped == here_document.delimiter {
                self.pos += end;
                let body = &self.src[start..line_start];
                return if here_document.quoted { Ok(Word::text(body)) } else { self.expanded(body) };
            }
            // Some shells also accept `EOF)` as the end.
            let tail = stripped.strip_prefix(here_document.delimiter.as_str()).unwrap_or_default();
            if tail.starts_with([')', '`', ' ', '\t']) || end == rest.len() {
                return Err(Unreadable("a here-document is not closed"));
            }
            self.pos += end + 1;
        }
    }

    /// Parses a body in which substitutions are expanded.
    fn expanded(&mut self, body: &str) -> Read<Word> {
        // A backslash at the end of a line could hide the delimiter.
        if body.contains("\\\n") {
            return Err(Unreadable("a here-document contains a line continuation"));
        }
        self.nested(|cursor| {
            let mut within = Cursor::new(body, cursor.depth);
            within.script = std::mem::take(&mut cursor.script);
            let read = within.document_text();
            cursor.script = within.script;
            read
        })
    }

    fn document_text(&mut self) -> Read<Word> {
        let mut word = Word::text("");
        while let Some(byte) = self.raw() {
            match byte {
                b'$' => self.dollar(&mut word, Quoting::Document)?,
                b'`' => self.backticks(&mut word, Quoting::Document)?,
                b'\\' => self.escape_in_quotes(&mut word, b"$`\\")?,
                _ => word.push_str(self.take_char()),
            }
        }
        Ok(word)
    }

    /// Parses `… ]]` and what follows it. Numeric comparisons evaluate their operands.
    pub(super) fn test_then_redirects(&mut self) -> Read<()> {
        let mut computes_next = false;
        loop {
            self.skip_blanks();
            match self.peek() {
                // zsh parses parentheses after a word as glob qualifiers.
                Some(b'(') if !matches!(self.src.as_bytes()[self.pos - 1], b' ' | b'\t' | b'(' | b'!') => {
                    return Err(Unreadable(SHELLS_DISAGREE));
                }
                Some(b'&' | b'|') if self.raw_at(1) == self.raw() => self.pos += 2,
                Some(b'<' | b'>' | b'(' | b')') if self.raw_at(1) != Some(b'(') => self.pos += 1,
                _ => {
                    let word = self.word()?.ok_or(Unreadable("a test is not closed"))?;
                    if std::mem::take(&mut computes_next) && !zsh::is_number(&word.word) {
                        self.doubt(Doubt::Shifted(ARITHMETIC));
                    }
                    match word.bare() {
                        Some("]]") => break,
                        Some("-t") => computes_next = true,
                        Some("=~") => return Err(Unreadable("it uses a regular expression")),
                        Some("-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-v" | "-R") => {
                            self.doubt(Doubt::Shifted(ARITHMETIC));
                        }
                        _ => {}
                    }
                }
            }
        }
        loop {
            self.skip_blanks();
            if !self.redirect(None)? {
                return Ok(());
            }
        }
    }
}

/// What an operator opens.
#[derive(Debug, Clone, Copy)]
enum Kind {
    File(Access),
    Both,
    Duplicate,
    HereString,
    HereDocument { strip_tabs: bool },
}
