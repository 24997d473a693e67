//! The PID namespace of a child, in which it sees and can signal only its own processes. A namespace needs a process 1,
//! which adopts and reaps orphans; when it ends, the kernel kills every process of the namespace. Here it is a copy of
//! the keeper that closes all descriptors. It stays in the outer user namespace, where no process of the child can
//! reach it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read, retry_on_intr, write};
use rustix::mount::{MountFlags, mount};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, chdir, set_dumpable_behavior,
    set_parent_process_death_signal, wait, waitpid,
};
use rustix::thread::{UnshareFlags, set_name, unshare_unsafe};

use super::AfterCreation;

/// The numbers of the descriptors that process 1 keeps; all others are closed.
const LEASH: RawFd = 0;
const CHILD_SIGNALS: RawFd = 1;
const CONTROL: RawFd = 2;

/// The new processes' ends of two pipes. The first tells process 1 that the child has ended (a byte) or that the keeper
/// has ended (the pipe is closed). The second tells the keeper the child's PID.
pub(super) struct Leash {
    end: OwnedFd,
    report: OwnedFd,
}

/// The keeper's handle on process 1 while a child runs.
#[derive(Debug)]
pub(crate) struct Init {
    leash: OwnedFd,
}

impl Init {
    /// Tells process 1 that the child has ended. Process 1 exits as soon as no other process of the namespace is left.
    pub(crate) fn child_has_ended(&self) {
        // Fails only if process 1 has already ended.
        let _ = write(&self.leash, b".");
    }
}

impl Leash {
    pub(super) fn new() -> io::Result<(Self, Handle)> {
        let (end, leash) = pipe_with(PipeFlags::CLOEXEC)?;
        let (started, report) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok((Self { end, report }, Handle { leash, started }))
    }
}

/// The keeper's side of a [`Leash`].
pub(crate) struct Handle {
    leash: OwnedFd,
    started: OwnedFd,
}

impl Handle {
    /// The child's PID and the handle on process 1, once the child was started.
    pub(crate) fn started(self) -> io::Result<(Pid, Init)> {
        let mut pid = [0; 4];
        let count = retry_on_intr(|| read(&self.started, &mut pid))?;
        let pid = Pid::from_raw(i32::from_ne_bytes(pid)).filter(|_| count == 4);
        Ok((pid.ok_or(Errno::SRCH)?, Init { leash: self.leash }))
    }
}

/// The handle on process 1 in the process that creates the sandbox.
pub(super) struct Creating {
    pid: Pid,
    control: OwnedFd,
}

impl Creating {
    /// Creates the PID namespace and its process 1, in the current user namespace. All further children of this process
    /// live in it; this process itself does not.
    pub(super) fn start(leash: &Leash, then: AfterCreation) -> io::Result<Self> {
        // SAFETY: no file descriptors are unshared, and there is no other thread.
        unsafe { unshare_unsafe(UnshareFlags::NEWPID) }?;
        let (control, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let parent = match then {
            AfterCreation::Continue => Parent::Keeper,
            AfterCreation::Exit => Parent::This,
        };
        match fork(parent)? {
            Some(pid) => Ok(Self { pid, control }),
            None => {
                drop(control);
                run_init(&leash.end, &theirs)
            }
        }
    }

    /// Makes process 1 mount a `/proc` for the new namespace. The next process of the namespace gets the PID that
    /// process 1 has outside: Claude Code names files after its PID, and two agents may share a home directory.
    pub(super) fn mount_proc(&self) -> io::Result<()> {
        let mut answer = [0; 4];
        write(&self.control, &self.pid.as_raw_pid().to_ne_bytes())?;
        match retry_on_intr(|| read(&self.control, &mut answer))? {
            4 => match i32::from_ne_bytes(answer) {
                0 => Ok(()),
                error => Err(io::Error::from_raw_os_error(error)),
            },
            _ => Err(Errno::SRCH.into()),
        }
    }

    /// Continues as a process of the new namespace, whose parent is the keeper. The calling process exits.
    pub(super) fn become_member(&self, leash: &Leash) -> io::Result<()> {
        let Some(child) = fork(Parent::Keeper)? else { return Ok(()) };
        let reported = write(&leash.report, &child.as_raw_pid().to_ne_bytes());
        // SAFETY: this copy of the keeper has nothing left to do. Without a report the keeper drops the leash.
        unsafe { libc::_exit(i32::from(reported.is_err())) }
    }

    /// Ends process 1 and waits for its end.
    pub(super) fn give_up(self) {
        drop(self.control);
        let _ = rustix::process::kill_process(self.pid, Signal::KILL);
        let _ = retry_on_intr(|| waitpid(Some(self.pid), WaitOptions::empty()));
    }
}

/// The parent of a new process.
#[derive(Clone, Copy)]
enum Parent {
    This,
    /// The parent of this process.
    Keeper,
}

/// Forks; returns `None` in the new process.
fn fork(parent: Parent) -> io::Result<Option<Pid>> {
    let flags = match parent {
        Parent::This => 0,
        Parent::Keeper => libc::CLONE_PARENT,
    } | libc::SIGCHLD;
    // SAFETY: as `fork` in a process with one thread: no memory is shared, and the new process only makes system calls.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(i32::try_from(pid).ok().and_then(Pid::from_raw)),
    }
}

/// The main function of process 1.
fn run_init(leash: &OwnedFd, control: &OwnedFd) -> ! {
    let code = match prepare_init(leash, control) {
        Ok(()) => {
            adopt_orphans();
            0
        }
        Err(_) => 1,
    };
    // SAFETY: no code of this copy of the keeper runs afterwards.
    unsafe { libc::_exit(code) }
}

fn prepare_init(leash: &OwnedFd, control: &OwnedFd) -> io::Result<()> {
    // The kernel kills process 1 when the keeper ends, and with it the whole namespace. If the keeper has already
    // ended, the closed leash reveals it.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let signals = only_child_signals()?;
    for (descriptor, number) in
        [(leash.as_raw_fd(), LEASH), (signals, CHILD_SIGNALS), (control.as_raw_fd(), CONTROL)]
    {
        // SAFETY: the three numbers hold streams of the child, which this process does not use.
        if unsafe { libc::dup2(descriptor, number) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: all other descriptors belong to the keeper and the child; this process does not use them again.
    if unsafe { libc::syscall(libc::SYS_close_range, CONTROL + 1, libc::c_uint::MAX, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let control = descriptor(&CONTROL);
    let mut outside = [0; 4];
    if retry_on_intr(|| read(control, &mut outside))? != 4 {
        return Err(Errno::CANCELED.into());
    }
    let mounted = new_proc(i32::from_ne_bytes(outside));
    let answer = mounted.map_or_else(Errno::raw_os_error, |()| 0);
    write(control, &answer.to_ne_bytes())?;
    mounted?;
    // SAFETY: no code uses the descriptor after this.
    unsafe { libc::close(CONTROL) };
    let _ = set_name(c"plexus-init");
    Ok(())
}

fn new_proc(next: i32) -> Result<(), Errno> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount(c"proc", c"/proc", c"proc", flags, None)?;
    chdir(c"/")?;
    // A kernel without checkpoint support lacks this file; PIDs then start at 2 in each namespace.
    if let Ok(last) = open(c"/proc/sys/kernel/ns_last_pid", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
        let mut digits = [0; 12];
        let _ = write(&last, decimal(next - 1, &mut digits));
    }
    Ok(())
}

/// Formats a number in decimal, without allocating.
fn decimal(number: i32, digits: &mut [u8; 12]) -> &[u8] {
    let mut rest = number.unsigned_abs();
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return &digits[start..];
        }
    }
}

/// Resets the keeper's signal handlers, and opens a descriptor that is readable when a child has ended. Process 1
/// ignores all other signals: the kernel drops those without a handler.
fn only_child_signals() -> io::Result<RawFd> {
    // SAFETY: a `sigset_t` of zeros is valid and is initialised by `sigemptyset`; the calls change only this process's
    // own signal handling, which has no handler left that could run.
    unsafe {
        for signal in 1..=64 {
            // Fails for signals that cannot have a handler.
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut child: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut child);
        libc::sigaddset(&raw mut child, libc::SIGCHLD);
        if libc::sigprocmask(libc::SIG_SETMASK, &raw const child, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        match libc::signalfd(-1, &raw const child, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(descriptor),
        }
    }
}

/// Reaps orphans of the namespace until the keeper has ended, or the child has ended and no process is left.
fn adopt_orphans() {
    let (leash, signals) = (descriptor(&LEASH), descriptor(&CHILD_SIGNALS));
    let mut child = ChildState::Runs;
    loop {
        let mut fds = [PollFd::new(&leash, PollFlags::IN), PollFd::new(&signals, PollFlags::IN)];
        // Without the leash, no process is left to wait for once the child has ended.
        let _ = retry_on_intr(|| poll(&mut fds, None));
        if !fds[0].revents().is_empty() {
            match retry_on_intr(|| read(leash, &mut [0; 8])) {
                Ok(1..) => child = ChildState::Ended,
                _ => return,
            }
        }
        let mut details = [0; 1024];
        while read(signals, &mut details).is_ok_and(|count| count > 0) {}
        let left = loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        if !left && child == ChildState::Ended {
            return;
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ChildState {
    Runs,
    Ended,
}

fn descriptor(number: &RawFd) -> BorrowedFd<'_> {
    // SAFETY: process 1 opened its three descriptors itself and keeps the first two open until it ends.
    unsafe { BorrowedFd::borrow_raw(*number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_decimal_digits() {
        for number in [0, 7, 10, 4_194_304, i32::MAX] {
            assert_eq!(decimal(number, &mut [0; 12]), number.to_string().as_bytes());
        }
    }
}
