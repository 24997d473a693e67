//! The terminal while a session is followed: the transcript on stdout, and below it one line on stderr with the status or a prompt. It
//! owns the position of the cursor.

use std::io::Write as _;

use crate::escape::one_line;
use crate::output;
use crate::paint::{Ink, Paint};
use crate::review::width::cut;
use crate::terminal::size;

/// The reader of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputMode {
    /// A user at a terminal, who can answer.
    Terminal,
    /// A file or a pipe.
    Plain,
    /// A program.
    Json,
}

/// The line below the transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bottom {
    /// Nothing.
    Empty,
    /// The status.
    Progress(String),
    /// A prompt.
    Prompt(String),
}

/// The terminal.
pub(crate) struct Screen {
    pub(crate) output_mode: OutputMode,
    bottom: Bottom,
    /// The colours of stderr.
    pub(super) paint: Paint,
}

impl Screen {
    pub(crate) fn new(output_mode: OutputMode) -> Self {
        Self { output_mode, bottom: Bottom::Empty, paint: Paint::of(&std::io::stderr()) }
    }

    /// Prints lines of the transcript. The caller has escaped them.
    pub(crate) fn lines(&mut self, lines: &str) {
        self.clear();
        output::print(lines);
        self.draw();
    }

    /// Prints a message on stderr.
    pub(crate) fn say(&mut self, words: &str) {
        self.clear();
        output::say(words);
        self.draw();
    }

    /// Sets the line below the transcript.
    pub(crate) fn set_bottom(&mut self, bottom: Bottom) {
        if self.output_mode != OutputMode::Terminal || self.bottom == bottom {
            return;
        }
        self.clear();
        self.bottom = bottom;
        self.draw();
    }

    /// Whether the line below is a prompt.
    pub(crate) fn has_prompt(&self) -> bool {
        matches!(self.bottom, Bottom::Prompt(_))
    }

    /// Notes that a line was typed: the cursor is below it.
    pub(crate) fn typed(&mut self) {
        self.bottom = Bottom::Empty;
    }

    fn clear(&self) {
        if self.output_mode == OutputMode::Terminal && self.bottom != Bottom::Empty {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }

    fn draw(&self) {
        if self.output_mode != OutputMode::Terminal {
            return;
        }
        let line = match &self.bottom {
            Bottom::Empty => return,
            // A line that wraps could not be cleared, and would stay in the scrollback.
            Bottom::Progress(line) => {
                self.paint.ink(Ink::Dim, &cut(&one_line(line), size().0.saturating_sub(2)))
            }
            Bottom::Prompt(line) => line.clone(),
        };
        let mut stderr = std::io::stderr().lock();
        let _ = write!(stderr, "{line}").and_then(|()| stderr.flush());
    }
}
