//! Keys from the terminal, read by a thread of its own that can be ended for certain: while the user's editor has the
//! terminal, nobody else reads from it.

use std::io::{self, stdin};
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossterm::event::{Event as Input, poll, read};
use rustix::event::{PollFd, PollFlags};
use rustix::io::retry_on_intr;
use tokio::sync::mpsc::UnboundedSender;

/// Something typed, and when: what stood on the screen then is what it was meant for.
pub(crate) type Typed = (Instant, Input);

/// Someone reads keys, until this is dropped.
pub(crate) struct Keys {
    /// Closed to end the thread.
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Keys {
    /// Keys go to `tell` from now on.
    pub(crate) fn read(tell: UnboundedSender<io::Result<Typed>>) -> io::Result<Self> {
        let (stopped, stop) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let thread = std::thread::spawn(move || {
            if let Err(error) = read_until(&stopped, &tell) {
                let _ = tell.send(Err(error));
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

fn read_until(stopped: &OwnedFd, tell: &UnboundedSender<io::Result<Typed>>) -> io::Result<()> {
    let stdin = stdin();
    loop {
        let mut ready = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        retry_on_intr(|| rustix::event::poll(&mut ready, None))?;
        if !ready[1].revents().is_empty() {
            return Ok(());
        }
        if !ready[0].revents().contains(PollFlags::IN) {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the terminal is gone"));
        }
        // It is readable, so this comes back at once; the wait only keeps a strange terminal from using up a processor.
        while poll(Duration::from_millis(10))? {
            if tell.send(Ok((Instant::now(), read()?))).is_err() {
                return Ok(());
            }
        }
    }
}
