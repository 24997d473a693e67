//! Reads input from the terminal on a thread that can be stopped reliably, because only the editor may read while it is open. `decode`
//! interprets the bytes.

use std::io::{self, stdin};
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::retry_on_intr;
use tokio::sync::mpsc::UnboundedSender;

use super::decode::{Decoder, Input};

/// How long an escape may start a sequence; after that it is the Esc key.
const ESCAPE_WITHIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// How long a terminal may pause within a sequence.
const SEQUENCE_WITHIN: Duration = Duration::from_secs(1);

/// An input and its time, which determines what was on the screen.
pub(crate) type Typed = (Instant, Input);

/// The reading thread; dropping this stops it.
pub(crate) struct Keys {
    /// Closing it stops the thread.
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Keys {
    /// Starts to send input to `events`.
    pub(crate) fn read(events: UnboundedSender<io::Result<Typed>>) -> io::Result<Self> {
        let (stopped, stop) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let thread = std::thread::spawn(move || {
            if let Err(error) = read_until(&stopped, &events) {
                let _ = events.send(Err(error));
            }
        });
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn read_until(stopped: &OwnedFd, events: &UnboundedSender<io::Result<Typed>>) -> io::Result<()> {
    let stdin = stdin();
    let (mut decoder, mut last, mut bytes) = (Decoder::default(), Instant::now(), [0; 4096]);
    loop {
        let mut ready = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        let within = decoder.ends_with_escape().then_some(&ESCAPE_WITHIN);
        let found = retry_on_intr(|| rustix::event::poll(&mut ready, within))?;
        if !ready[1].revents().is_empty() {
            return Ok(());
        }
        let now = Instant::now();
        let inputs = if found == 0 {
            decoder.escape()
        } else {
            let read = match ready[0].revents().contains(PollFlags::IN) {
                true => retry_on_intr(|| rustix::io::read(&stdin, &mut bytes))?,
                false => 0,
            };
            let Some(read) = bytes.get(..read).filter(|read| !read.is_empty()) else {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the terminal was closed"));
            };
            if now.saturating_duration_since(last) > SEQUENCE_WITHIN {
                decoder.abandon();
            }
            last = now;
            decoder.feed(read)
        };
        for input in inputs {
            if events.send(Ok((now, input))).is_err() {
                return Ok(());
            }
        }
    }
}
