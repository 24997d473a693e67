//! What is on the terminal while a session is followed: the transcript on stdout, and on stderr one line below it that
//! says how things stand or asks for something. It owns where the cursor is.

use std::io::Write as _;

use crate::output;
use crate::terminal::safe;

/// For whom it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// A person at a terminal, who can be asked.
    Person,
    /// A file, or a pipe.
    Plain,
    /// A program.
    Json,
}

/// The line below the transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bottom {
    /// Nothing.
    Empty,
    /// How things stand.
    Progress(String),
    /// What a person is asked for.
    Prompt(String),
}

/// The terminal.
pub(crate) struct Screen {
    pub(crate) manner: Manner,
    bottom: Bottom,
    /// Text of a block that is still being written.
    streamed: String,
}

impl Screen {
    pub(crate) fn new(manner: Manner) -> Self {
        Self { manner, bottom: Bottom::Empty, streamed: String::new() }
    }

    /// Lines of the transcript. They are harmless already.
    pub(crate) fn lines(&mut self, lines: &str) {
        self.end_block();
        self.clear();
        output::print(lines);
        self.draw();
    }

    /// Words beside the transcript.
    pub(crate) fn say(&mut self, words: &str) {
        self.end_block();
        self.clear();
        output::say(words);
        self.draw();
    }

    /// A piece of a text, as it comes.
    pub(crate) fn piece(&mut self, text: &str) {
        self.clear();
        self.streamed.push_str(text);
        write_out(&safe(text));
    }

    /// A whole text of which pieces may have been shown.
    pub(crate) fn text(&mut self, shown: &str) {
        let pieces = std::mem::take(&mut self.streamed);
        if pieces.is_empty() {
            self.lines(shown);
            return;
        }
        if let Some(next) = safe(&pieces).strip_prefix(shown).filter(|next| !next.trim().is_empty()) {
            // The text after it has begun.
            self.streamed = next.to_owned();
            return;
        }
        match shown.strip_prefix(safe(&pieces).trim_end()) {
            Some(rest) => write_out(&format!("{rest}\n")),
            None => write_out(&format!("\n{shown}\n")),
        }
        self.draw();
    }

    /// What stands below from now on.
    pub(crate) fn set_bottom(&mut self, bottom: Bottom) {
        if self.manner != Manner::Person || self.bottom == bottom {
            return;
        }
        self.clear();
        self.bottom = bottom;
        self.draw();
    }

    /// Whether something is asked for on the line below.
    pub(crate) fn asks(&self) -> bool {
        matches!(self.bottom, Bottom::Prompt(_))
    }

    /// A line was typed: the cursor is below it.
    pub(crate) fn typed(&mut self) {
        self.bottom = Bottom::Empty;
    }

    fn end_block(&mut self) {
        if !self.streamed.is_empty() {
            self.streamed.clear();
            write_out("\n");
        }
    }

    fn clear(&self) {
        // In the midst of a text there is no line below, and the text must not go.
        if self.manner == Manner::Person && self.bottom != Bottom::Empty && self.streamed.is_empty() {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }

    fn draw(&self) {
        if self.manner != Manner::Person || !self.streamed.is_empty() {
            return;
        }
        if let Bottom::Progress(line) | Bottom::Prompt(line) = &self.bottom {
            let mut stderr = std::io::stderr().lock();
            let _ = write!(stderr, "{line}").and_then(|()| stderr.flush());
        }
    }
}

fn write_out(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = write!(stdout, "{text}").and_then(|()| stdout.flush());
}
