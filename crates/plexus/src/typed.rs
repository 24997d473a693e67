//! Lines that a person types. One is read only when it is wanted, so that an editor has the terminal to itself, and what was
//! typed before a question was shown can be forgotten, so that it never answers that question.

use std::io::BufRead as _;

use rustix::io::ioctl_fionread;
use rustix::process::getpgrp;
use rustix::termios::{QueueSelector, tcflush, tcgetpgrp};
use tokio::sync::mpsc;

/// The lines of stdin.
pub(crate) struct Typed {
    want: std::sync::mpsc::Sender<()>,
    lines: mpsc::UnboundedReceiver<String>,
    /// A line is being waited for.
    wanted: bool,
}

impl Typed {
    /// Reads on a thread of its own, since nothing can end such a read.
    pub(crate) fn new() -> Self {
        let (want, wants) = std::sync::mpsc::channel();
        let (sender, lines) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            let mut read = std::io::stdin().lock().lines();
            while wants.recv().is_ok() {
                let Some(Ok(line)) = read.next() else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { want, lines, wanted: false }
    }

    /// The next line; `None` when there are no more. Cancel safe.
    pub(crate) async fn line(&mut self) -> Option<String> {
        if !self.wanted {
            // A thread that has ended is seen below.
            let _ = self.want.send(());
            self.wanted = true;
        }
        let line = self.lines.recv().await;
        self.wanted = false;
        line
    }

    /// Forgets what was typed up to now.
    pub(crate) fn forget(&mut self) {
        while self.lines.try_recv().is_ok() {
            self.wanted = false;
        }
        // No terminal, nothing to forget.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
    }

    /// Forgets lines that nobody asked for, and says whether there were any. It does not wait for input.
    pub(crate) fn forget_unasked(&mut self) -> Unasked {
        let waiting = ioctl_fionread(std::io::stdin()).is_ok_and(|bytes| bytes > 0);
        if !is_foreground() || (!waiting && self.lines.is_empty()) {
            return Unasked::Nothing;
        }
        self.forget();
        Unasked::Lines
    }

    /// Forgets what was typed for this program, so that the shell does not run it when this program has ended.
    pub(crate) fn forget_at_end(&mut self) {
        if is_foreground() {
            self.forget();
        }
    }
}

/// What was typed although nothing was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unasked {
    /// At least one line.
    Lines,
    /// No line.
    Nothing,
}

/// Whether this program has the terminal. Input that is typed while it runs in the background is for another program, and the
/// system stops a background program that touches it.
fn is_foreground() -> bool {
    tcgetpgrp(std::io::stdin()).is_ok_and(|group| group == getpgrp())
}
