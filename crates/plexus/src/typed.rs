//! Reads typed lines. A line is read only on request, so that an editor can use the terminal, and input typed before a prompt can be
//! discarded, so that it never answers that prompt.

use std::io::BufRead as _;

use rustix::process::getpgrp;
use rustix::termios::{QueueSelector, tcflush, tcgetpgrp};
use tokio::sync::mpsc;

/// The lines of stdin.
pub(crate) struct Typed {
    want: std::sync::mpsc::Sender<()>,
    lines: mpsc::UnboundedReceiver<String>,
    /// A line was requested.
    wanted: bool,
}

impl Typed {
    /// Reads on a thread of its own, because a read of stdin cannot be cancelled.
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

    /// The next line; `None` at the end of input. Cancel safe.
    pub(crate) async fn line(&mut self) -> Option<String> {
        if !self.wanted {
            // If the thread has ended, `recv` returns `None`.
            let _ = self.want.send(());
            self.wanted = true;
        }
        let line = self.lines.recv().await;
        self.wanted = false;
        line
    }

    /// Discards the input typed so far.
    pub(crate) fn discard(&mut self) {
        while self.lines.try_recv().is_ok() {
            self.wanted = false;
        }
        // Fails without a terminal; then there is nothing to discard.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
    }
}

/// Whether this program is in the foreground. Otherwise the input is for another program, and the system stops a background program
/// that touches it.
pub(crate) fn is_foreground() -> bool {
    tcgetpgrp(std::io::stdin()).is_ok_and(|group| group == getpgrp())
}
