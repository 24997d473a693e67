//! A line while it is typed, with the keys that a terminal has for a line: backspace, Ctrl-W, Ctrl-U, Enter and Ctrl-D.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::watch::decode::Input;

/// The maximum length of a line.
const MAX_BYTES: usize = 1024 * 1024;

/// A line that is not finished.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Line(String);

/// What an input did.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Edit {
    /// The line may have changed.
    Changed,
    /// The line is finished; a new one begins.
    Done(String),
    /// Tab.
    Tab,
    /// Ctrl-D on an empty line.
    End,
}

impl Line {
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Whether the line has nothing but blanks.
    pub(super) fn is_blank(&self) -> bool {
        self.0.trim().is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn push(&mut self, text: &str) {
        if self.0.len() + text.len() <= MAX_BYTES {
            self.0.push_str(text);
        }
    }

    /// Applies one input.
    pub(super) fn apply(&mut self, input: &Input) -> Edit {
        let KeyEvent { code, modifiers, .. } = match input {
            Input::Key(key) => *key,
            Input::Paste(text) => {
                self.push(&text.replace('\n', " "));
                return Edit::Changed;
            }
        };
        match (code, modifiers) {
            (KeyCode::Char(c), KeyModifiers::NONE) => self.push(c.encode_utf8(&mut [0; 4])),
            // The terminal sends Enter as a newline, which is Ctrl-J.
            (KeyCode::Enter, _) | (KeyCode::Char('j'), KeyModifiers::CONTROL) => {
                return Edit::Done(std::mem::take(&mut self.0));
            }
            (KeyCode::Tab, _) => return Edit::Tab,
            (KeyCode::Backspace, _) => drop(self.0.pop()),
            (KeyCode::Char('u'), KeyModifiers::CONTROL) => self.0.clear(),
            (KeyCode::Char('w'), KeyModifiers::CONTROL) => {
                let kept = self.0.trim_end().rfind(char::is_whitespace).map_or(0, |blank| blank + 1);
                self.0.truncate(self.0.ceil_char_boundary(kept));
            }
            (KeyCode::Char('d'), KeyModifiers::CONTROL) if self.0.is_empty() => return Edit::End,
            _ => {}
        }
        Edit::Changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::decode::Decoder;

    /// The line after these keys, and the finished lines.
    fn typed(keys: &str) -> (String, Vec<Edit>) {
        let mut line = Line::default();
        let inputs = Decoder::default().feed(keys.as_bytes());
        let edits = inputs.iter().map(|input| line.apply(input)).filter(|edit| *edit != Edit::Changed);
        let edits = edits.collect();
        (line.0, edits)
    }

    #[test]
    fn a_line_is_edited_at_its_end() {
        let done = |text: &str| Edit::Done(text.to_owned());
        assert_eq!(typed("fix é\u{7f}it\n"), (String::new(), vec![done("fix it")]));
        assert_eq!(typed("fix the  test \u{17}").0, "fix the  ");
        assert_eq!(typed("a\u{a0}b\u{17}").0, "a\u{a0}");
        assert_eq!(typed("wrong\u{15}y\r").1, [done("y")]);
        assert_eq!(typed("\u{7f}\u{4}").1, [Edit::End]);
        assert_eq!(typed("a\u{4}\t"), ("a".to_owned(), vec![Edit::Tab]));
    }

    #[test]
    fn replies_of_the_terminal_and_keys_with_alt_are_not_typed() {
        assert_eq!(typed("\u{1b}]11;rgb:0\u{7}a\u{1b}y\u{1b}[Ab").0, "ab");
    }
}
