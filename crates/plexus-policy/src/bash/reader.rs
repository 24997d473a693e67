//! Parses the structure of a command line: lists, pipelines, simple and compound commands. It accepts only syntax that
//! all common shells parse alike, in one pass and to a bounded depth. `words` parses words; `compound` parses loops and
//! cases.

use super::cursor::{Cursor, Read, Unreadable, check_text};
use super::script::{Assignment, Doubt, Part, Script, Word};
use super::words::Written;
use super::{SHELLS_DISAGREE, zsh};

/// Words that are special at the start of a command.
const KEYWORDS: [&str; 22] = [
    "!", "{", "}", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while",
];

/// Parses a whole command line, nested `depth` levels inside another.
pub(crate) fn read(text: &str, depth: usize) -> Result<Script, Unreadable> {
    check_text(text)?;
    let mut cursor = Cursor::new(text, depth);
    cursor.nested(Cursor::whole)?;
    zsh::add_doubts(&mut cursor.script, text);
    Ok(cursor.script)
}

impl Cursor<'_> {
    /// Parses to the end of the text.
    pub(super) fn whole(&mut self) -> Read<()> {
        self.list(&[])?;
        if self.raw().is_some() {
            return Err(Unreadable("a closing parenthesis has no opening one"));
        }
        if !self.here_documents.is_empty() {
            return Err(Unreadable("a here-document is not closed"));
        }
        Ok(())
    }

    /// Parses commands up to one of these keywords, a closing parenthesis, `;;` or the end.
    pub(super) fn list(&mut self, until: &[&str]) -> Read<()> {
        loop {
            self.skip_lines()?;
            match self.raw() {
                None | Some(b')') => return Ok(()),
                Some(b';') if matches!(self.raw_at(1), Some(b';' | b'&')) => return Ok(()),
                _ => {}
            }
            if self.at_keyword(until) {
                return Ok(());
            }
            self.and_or()?;
            self.skip_blanks();
            match self.peek() {
                Some(b';') if matches!(self.raw_at(1), Some(b';' | b'&')) => return Ok(()),
                // zsh: run it in the background and disown it.
                Some(b'&') if matches!(self.raw_at(1), Some(b'!' | b'|')) => {
                    return Err(Unreadable(SHELLS_DISAGREE));
                }
                Some(b';' | b'&') => self.pos += 1,
                Some(b'\n') | None | Some(b')') => {}
                Some(_) => return Err(Unreadable("a separator is missing after a command")),
            }
        }
    }

    fn and_or(&mut self) -> Read<()> {
        loop {
            self.pipeline()?;
            self.skip_blanks();
            let (first, second) = (self.peek(), self.raw_at(1));
            match (first, second) {
                (Some(b'&'), Some(b'&')) | (Some(b'|'), Some(b'|')) => self.pos += 2,
                _ => return Ok(()),
            }
            self.skip_lines()?;
        }
    }

    fn pipeline(&mut self) -> Read<()> {
        loop {
            while self.at_keyword(&["!", "time"]) {
                self.word()?;
                self.skip_blanks();
                if self.src[self.pos..].starts_with("-p ") {
                    self.pos += 3;
                    self.skip_blanks();
                }
            }
            self.nested(Self::command)?;
            self.skip_blanks();
            if self.peek() != Some(b'|') || self.raw_at(1) == Some(b'|') {
                return Ok(());
            }
            self.pos += 1;
            self.eat(b'&');
            self.skip_lines()?;
        }
    }

    /// Skips blanks, comments and line ends, and reads the here-documents after each line end.
    pub(super) fn skip_lines(&mut self) -> Read<()> {
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(b'#') => self.comment()?,
                Some(b'\n') => {
                    self.pos += 1;
                    self.documents()?;
                }
                _ => return Ok(()),
            }
        }
    }

    /// Skips a comment to the end of its line.
    pub(super) fn comment(&mut self) -> Read<()> {
        let rest = &self.src[self.pos..];
        let end = rest.find('\n').unwrap_or(rest.len());
        // Shells of different versions disagree about comments before the end of a substitution.
        if self.substitutions > 0 && rest[..end].contains([')', '\'', '"', '`', '(']) {
            return Err(Unreadable("a substitution contains a comment"));
        }
        self.pos += end;
        Ok(())
    }

    /// Whether one of these words follows here, unquoted.
    pub(super) fn at_keyword(&mut self, words: &[&str]) -> bool {
        self.skip_blanks();
        self.keyword().is_some_and(|found| words.contains(&found))
    }

    /// The keyword at the cursor.
    fn keyword(&mut self) -> Option<&'static str> {
        self.peek();
        let rest = &self.src[self.pos..];
        let len = rest.bytes().position(super::words::ends_word).unwrap_or(rest.len());
        let word = &rest[..len];
        KEYWORDS.into_iter().find(|keyword| *keyword == word)
    }

    pub(super) fn keyword_now(&mut self, keyword: &str) -> Read<()> {
        if self.at_keyword(&[keyword]) {
            self.pos += keyword.len();
            Ok(())
        } else {
            Err(Unreadable("a compound command is incomplete"))
        }
    }

    fn command(&mut self) -> Read<()> {
        if self.peek() == Some(b'(') {
            self.pos += 1;
            if self.raw() == Some(b'(') {
                self.pos += 1;
                self.arithmetic()?;
            } else {
                self.list(&[])?;
                self.expect(b')', "a parenthesis is not closed")?;
            }
            return self.redirects_after();
        }
        let Some(keyword) = self.keyword() else { return self.simple() };
        self.pos += keyword.len();
        match keyword {
            "{" => {
                self.list(&["}"])?;
                self.keyword_now("}")?;
            }
            "if" => self.conditional()?,
            "while" | "until" => {
                self.list(&["do"])?;
                self.do_group()?;
            }
            "for" | "select" => self.for_loop()?,
            "case" => self.case()?,
            "[[" => return self.test_then_redirects(),
            "function" => {
                self.skip_blanks();
                self.word()?.ok_or(Unreadable("a function has no name"))?;
                self.skip_blanks();
                if self.eat(b'(') {
                    self.expect(b')', "a function's name is followed by something else")?;
                }
                return self.function_body();
            }
            _ => return Err(Unreadable("a keyword is in the place of a command")),
        }
        self.redirects_after()
    }

    /// Parses the body after `name ()`.
    fn function_body(&mut self) -> Read<()> {
        self.doubt(Doubt::Shifted("it defines a function, which may replace any command"));
        self.skip_lines()?;
        match self.peek() {
            Some(b'(' | b'{') => self.nested(Self::command),
            _ => Err(Unreadable("a function has no body")),
        }
    }

    fn redirects_after(&mut self) -> Read<()> {
        loop {
            self.skip_blanks();
            if !self.redirect(None)? {
                return Ok(());
            }
        }
    }

    fn simple(&mut self) -> Read<()> {
        // The slot is reserved immediately: the body of a here-document is read later and must find its command.
        let part_index = self.script.parts.len();
        self.script.parts.push(Part::default());
        let mut part = Part::default();
        let mut any = false;
        let start = self.pos;
        loop {
            self.skip_blanks();
            if self.redirect(Some(part_index))? {
                any = true;
                continue;
            }
            if self.peek() == Some(b'#') {
                self.comment()?;
                break;
            }
            if part.words.is_empty() && self.assignment(&mut part)? {
                any = true;
                continue;
            }
            let Some(written) = self.word()? else { break };
            any = true;
            if part.words.is_empty() && written.bare().is_some_and(is_torn) {
                return Err(Unreadable("a line break splits a keyword or an assignment"));
            }
            if !part.words.is_empty() && written.bare() == Some("{") {
                return Err(Unreadable(SHELLS_DISAGREE));
            }
            if part.words.is_empty() && part.assignments.is_empty() && self.function_follows(&written)? {
                return self.function_body();
            }
            part.words.push(written.word);
        }
        if !any {
            return Err(Unreadable("a command is missing"));
        }
        // Without a command, only `$(<file)` has the same meaning in all shells.
        if part.words.is_empty() && part.assignments.is_empty() {
            let reads_file = self.src[..start].ends_with("$(") && self.peek() == Some(b')');
            if !reads_file {
                self.doubt(Doubt::Shifted("zsh runs a command for a redirection without a command"));
            }
        }
        if let Some(slot) = self.script.parts.get_mut(part_index) {
            part.stdin = slot.stdin.take();
            *slot = part;
        }
        Ok(())
    }

    /// Whether the word is the name in `name ()`; consumes the parentheses. No other syntax allows a parenthesis after
    /// a word.
    fn function_follows(&mut self, written: &Written) -> Read<bool> {
        self.skip_blanks();
        if self.peek() != Some(b'(') {
            return Ok(false);
        }
        self.pos += 1;
        self.skip_blanks();
        if written.bare().is_none() || !self.eat(b')') {
            return Err(Unreadable("a parenthesis follows a word"));
        }
        Ok(true)
    }

    /// Parses `name=value` or `name=(…)`, if present.
    fn assignment(&mut self, part: &mut Part) -> Read<bool> {
        self.peek();
        let start = self.pos;
        let name = self.name().to_owned();
        if !is_name(&name) {
            self.pos = start;
            return Ok(false);
        }
        match self.peek() {
            Some(b'[') => return Err(Unreadable("it may assign an element of an array")),
            Some(b'+') if self.raw_at(1) == Some(b'=') => self.pos += 2,
            Some(b'=') => self.pos += 1,
            _ => {
                self.pos = start;
                return Ok(false);
            }
        }
        let value = if self.peek() == Some(b'(') {
            self.pos += 1;
            loop {
                self.skip_lines()?;
                if self.word()?.is_none() {
                    break;
                }
            }
            self.expect(b')', "a list is not closed")?;
            self.doubt(Doubt::Shifted("it assigns a list, which may change the shell itself"));
            Word::unknown()
        } else {
            self.word()?.unwrap_or_default().word
        };
        part.assignments.push(Assignment { name, value });
        Ok(true)
    }
}

/// Whether a command's name would have been parsed differently without a line continuation in it. zsh also assigns to
/// `1=a` and to names in any script.
fn is_torn(name: &str) -> bool {
    let assigned = |name: &str| {
        let name = name.trim_end_matches('+');
        !name.is_empty() && name.chars().all(|c| c == '_' || c.is_alphanumeric())
    };
    KEYWORDS.contains(&name) || name.split_once(['=', '[']).is_some_and(|(start, _)| assigned(start))
}

pub(super) fn is_name(text: &str) -> bool {
    text.bytes().next().is_some_and(|b| !b.is_ascii_digit())
        && text.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric())
}
