//! The terminal while a session is followed: the transcript on stdout, and below it one line on stderr with the status or a prompt. It
//! owns the position of the cursor.

use std::io::Write as _;

use crate::escape::safe;
use crate::output;

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
    /// The text of a block that is still incomplete.
    streamed: String,
}

impl Screen {
    pub(crate) fn new(output_mode: OutputMode) -> Self {
        Self { output_mode, bottom: Bottom::Empty, streamed: String::new() }
    }

    /// Prints lines of the transcript. The caller has escaped them.
    pub(crate) fn lines(&mut self, lines: &str) {
        self.end_block();
        self.clear();
        output::print(lines);
        self.draw();
    }

    /// Prints a message on stderr.
    pub(crate) fn say(&mut self, words: &str) {
        self.end_block();
        self.clear();
        output::say(words);
        self.draw();
    }

    /// Prints a text delta.
    pub(crate) fn print_delta(&mut self, text: &str) {
        self.clear();
        self.streamed.push_str(text);
        write_out(&safe(text));
    }

    /// Prints a whole text of which deltas may have been printed.
    pub(crate) fn text(&mut self, shown: &str) {
        let printed = std::mem::take(&mut self.streamed);
        if printed.is_empty() {
            self.lines(shown);
            return;
        }
        if let Some(next) = safe(&printed).strip_prefix(shown).filter(|next| !next.trim().is_empty()) {
            // The next text has started.
            self.streamed = next.to_owned();
            return;
        }
        match shown.strip_prefix(safe(&printed).trim_end()) {
            Some(rest) => write_out(&format!("{rest}\n")),
            None => write_out(&format!("\n{shown}\n")),
        }
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

    fn end_block(&mut self) {
        if !self.streamed.is_empty() {
            self.streamed.clear();
            write_out("\n");
        }
    }

    fn clear(&self) {
        // There is no line below an incomplete text, and the text must stay.
        if self.output_mode == OutputMode::Terminal
            && self.bottom != Bottom::Empty
            && self.streamed.is_empty()
        {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }

    fn draw(&self) {
        if self.output_mode != OutputMode::Terminal || !self.streamed.is_empty() {
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
