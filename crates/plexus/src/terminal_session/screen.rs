//! The terminal while a session is followed: the transcript on stdout, and below it one line on stderr with the status or a prompt. It
//! owns the position of the cursor.

use std::io::Write as _;

use unicode_width::UnicodeWidthStr as _;

use crate::escape::one_line;
use crate::output;
use crate::paint::{Ink, Paint};
use crate::review::width::{cut, end};
use crate::terminal::size;

/// The shortest part of a typed text that is shown.
const SHORTEST: usize = 8;

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
    /// A prompt, and the text that was typed so far.
    Prompt {
        /// Escaped.
        prompt: String,
        typed: String,
    },
}

/// The terminal.
pub(crate) struct Screen {
    pub(crate) output_mode: OutputMode,
    bottom: Bottom,
    /// The rows of the terminal that `bottom` occupies.
    rows: usize,
    /// The colours of stderr.
    pub(super) paint: Paint,
}

impl Screen {
    pub(crate) fn new(output_mode: OutputMode) -> Self {
        Self { output_mode, bottom: Bottom::Empty, rows: 1, paint: Paint::of(&std::io::stderr()) }
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
        matches!(self.bottom, Bottom::Prompt { .. })
    }

    /// Ends the line below: it stays on the screen, and the cursor moves to the next row.
    pub(crate) fn end_line(&mut self) {
        if self.output_mode == OutputMode::Terminal {
            output::say("");
        }
        self.bottom = Bottom::Empty;
    }

    /// Draws the line below again, after another program has used the terminal.
    pub(crate) fn redraw(&mut self) {
        self.rows = 1;
        self.clear();
        self.draw();
    }

    fn clear(&self) {
        if self.output_mode == OutputMode::Terminal && self.bottom != Bottom::Empty {
            let up = match self.rows {
                0 | 1 => String::new(),
                rows => format!("\x1b[{}A\x1b[J", rows - 1),
            };
            let _ = write!(std::io::stderr().lock(), "\r{up}\x1b[K");
        }
    }

    fn draw(&mut self) {
        if self.output_mode != OutputMode::Terminal {
            return;
        }
        self.rows = 1;
        let width = size().0.max(1);
        let line = match &self.bottom {
            Bottom::Empty => return,
            // A line that wraps could not be cleared, and would stay in the scrollback.
            Bottom::Progress(line) => {
                self.paint.ink(Ink::Dim, &cut(&one_line(line), width.saturating_sub(2)))
            }
            Bottom::Prompt { prompt, typed } => {
                let typed = one_line(typed);
                // The end of a long text, because the cursor is there.
                let room = width.saturating_sub(prompt.width() % width + 2).max(SHORTEST);
                let line = match typed.width() <= room {
                    true => format!("{prompt}{typed}"),
                    false => format!("{prompt}…{}", end(&typed, room)),
                };
                self.rows = line.width().div_ceil(width).max(1);
                line
            }
        };
        let mut stderr = std::io::stderr().lock();
        let _ = write!(stderr, "{line}").and_then(|()| stderr.flush());
    }
}
