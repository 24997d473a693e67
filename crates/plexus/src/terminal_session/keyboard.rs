//! The keyboard while a session is followed. It owns the mode of the terminal: the terminal does not assemble or echo lines (`line` and
//! `screen` do), so that a half-typed line can be set aside. The mode is restored for an editor, after Ctrl-Z and at the end.

use std::io::{self, stdin};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcsetattr,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::screen::OutputMode;
use crate::typed::is_foreground;
use crate::watch::decode::{Decoder, Input};
use crate::watch::input::{Keys, Typed};

/// The keyboard.
pub(super) struct Keyboard {
    sender: UnboundedSender<io::Result<Typed>>,
    inputs: UnboundedReceiver<io::Result<Typed>>,
    taken: Option<Taken>,
}

/// The terminal while its keys are read.
struct Taken {
    keys: Option<Keys>,
    /// The mode to restore.
    before: Termios,
}

impl Keyboard {
    /// Takes the keyboard, if a user is at a terminal.
    pub(super) fn new(output_mode: OutputMode) -> Self {
        let (sender, inputs) = unbounded_channel();
        let mut keyboard = Self { sender, inputs, taken: None };
        if output_mode == OutputMode::Terminal {
            keyboard.take();
        }
        keyboard
    }

    /// Starts to read keys. In the background this does nothing, because the input is for another program.
    pub(super) fn take(&mut self) {
        if self.taken.is_some() || !is_foreground() {
            return;
        }
        let Ok(before) = tcgetattr(stdin()) else { return };
        let mut mode = before.clone();
        mode.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        mode.special_codes[SpecialCodeIndex::VMIN] = 1;
        mode.special_codes[SpecialCodeIndex::VTIME] = 0;
        if tcsetattr(stdin(), OptionalActions::Now, &mode).is_ok() {
            self.taken = Some(Taken { keys: Keys::read(self.sender.clone()).ok(), before });
        }
    }

    /// Leaves the terminal to another program.
    pub(super) fn lend(&mut self) {
        let Some(taken) = self.taken.take() else { return };
        drop(taken.keys);
        // The system stops a background program that changes the mode.
        if is_foreground() {
            let _ = tcsetattr(stdin(), OptionalActions::Now, &taken.before);
        }
    }

    /// After Ctrl-Z: the shell has changed the mode, and the program may continue in the background.
    pub(super) fn continued(&mut self) {
        // The mode of the shell is not the one to restore.
        let before = self.taken.take().map(|taken| taken.before);
        self.take();
        if let (Some(taken), Some(before)) = (&mut self.taken, before) {
            taken.before = before;
        }
    }

    /// The next input; `None` if the terminal was closed. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Input> {
        let (_, input) = self.inputs.recv().await?.ok()?;
        Some(input)
    }

    /// Whether more input has arrived.
    pub(super) fn has_more(&self) -> bool {
        !self.inputs.is_empty()
    }

    /// All input typed so far.
    pub(super) fn drain(&mut self) -> Vec<Input> {
        let Some(taken) = &mut self.taken else { return Vec::new() };
        // Without the other reader, what the terminal still holds was typed before now.
        drop(taken.keys.take());
        let mut inputs = Vec::new();
        while let Ok(Ok((_, input))) = self.inputs.try_recv() {
            inputs.push(input);
        }
        inputs.extend(Decoder::default().feed(&waiting_bytes()));
        taken.keys = Keys::read(self.sender.clone()).ok();
        inputs
    }

    /// Discards the input typed for this program, so that the shell does not run it, and leaves the terminal to the shell.
    pub(super) fn end(&mut self) {
        if is_foreground() && self.taken.is_some() {
            let _ = tcflush(stdin(), QueueSelector::IFlush);
        }
        self.lend();
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.end();
    }
}

/// The bytes that the terminal holds.
fn waiting_bytes() -> Vec<u8> {
    let stdin = stdin();
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut all = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
        let found = poll(&mut ready, Some(&now)).is_ok_and(|count| count > 0);
        if !found || ready[0].revents() != PollFlags::IN {
            return all;
        }
        match rustix::io::read(&stdin, &mut bytes) {
            Ok(read @ 1..) => all.extend_from_slice(bytes.get(..read).unwrap_or_default()),
            _ => return all,
        }
    }
}
