//! Parses `if`, `while`, `for` and `case`. Their commands may or may not run, so all of them count.

use super::cursor::{Cursor, Read, Unreadable};
use super::reader::is_name;
use super::script::{Assignment, Part, Word};

impl Cursor<'_> {
    pub(super) fn conditional(&mut self) -> Read<()> {
        self.list(&["then"])?;
        self.keyword_now("then")?;
        self.list(&["elif", "else", "fi"])?;
        if self.at_keyword(&["elif"]) {
            self.pos += "elif".len();
            return self.nested(Self::conditional);
        }
        if self.at_keyword(&["else"]) {
            self.pos += "else".len();
            self.list(&["fi"])?;
        }
        self.keyword_now("fi")
    }

    pub(super) fn do_group(&mut self) -> Read<()> {
        self.keyword_now("do")?;
        self.list(&["done"])?;
        self.keyword_now("done")
    }

    pub(super) fn for_loop(&mut self) -> Read<()> {
        self.skip_blanks();
        let written = self.word()?.ok_or(Unreadable("a loop has no variable"))?;
        let name = written.bare().filter(|name| is_name(name)).ok_or(Unreadable("a loop has no variable"))?;
        self.script.parts.push(assigns(name));
        self.skip_lines()?;
        if self.at_keyword(&["in"]) {
            self.pos += "in".len();
            self.skip_blanks();
            while self.word()?.is_some() {
                self.skip_blanks();
            }
        }
        self.skip_blanks();
        self.eat(b';');
        self.skip_lines()?;
        self.do_group()
    }

    pub(super) fn case(&mut self) -> Read<()> {
        if self.substitutions > 0 {
            return Err(Unreadable("a substitution contains a `case`"));
        }
        self.skip_blanks();
        self.word()?.ok_or(Unreadable("a `case` has no subject"))?;
        self.skip_lines()?;
        self.keyword_now("in")?;
        loop {
            self.skip_lines()?;
            if self.at_keyword(&["esac"]) {
                self.pos += "esac".len();
                return Ok(());
            }
            self.eat(b'(');
            loop {
                self.skip_blanks();
                self.word()?.ok_or(Unreadable("a `case` has no pattern"))?;
                self.skip_blanks();
                if !self.eat(b'|') {
                    break;
                }
            }
            self.expect(b')', "a `case` pattern is not closed")?;
            self.list(&["esac"])?;
            if self.src[self.pos..].starts_with(";;&") {
                self.pos += 3;
            } else if self.src[self.pos..].starts_with(";;") || self.src[self.pos..].starts_with(";&") {
                self.pos += 2;
            } else if !self.at_keyword(&["esac"]) {
                return Err(Unreadable("a `case` is not closed"));
            }
        }
    }
}

/// A part that only assigns some value to a variable.
fn assigns(name: &str) -> Part {
    Part {
        assignments: vec![Assignment { name: name.to_owned(), value: Word::unknown() }],
        ..Part::default()
    }
}
