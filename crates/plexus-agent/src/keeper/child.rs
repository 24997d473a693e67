//! The child: how it is started so that nobody can talk in its place, and how its end is noticed, and that of
//! all that stems from it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, getppid, set_parent_process_death_signal, setsid, wait,
};

use crate::exit::Exit;
use crate::launch::{Launch, Streams};
use crate::sandbox::{Enclosure, Failed, Handle, Init, Plan, SandboxPart, Then, Sandbox, SandboxState};

/// Our ends of the child's streams; reading from one never waits.
pub(super) struct Ends {
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: Option<OwnedFd>,
    pub(super) stderr: OwnedFd,
}

/// The child, while it runs and after.
pub(super) struct Child {
    pid: Pid,
    ended: Option<WaitStatus>,
    /// Process 1 of its PID namespace, where it has one.
    init: Option<Init>,
}

/// A child that was started, and what stands around it where something was to.
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) ends: Ends,
    pub(super) walled: Option<SandboxState>,
}

impl Child {
    /// Starts it, or says in words why not.
    ///
    /// The streams of one that is spoken with are socketpairs: a pipe or a file could be opened once more
    /// through `/proc/<child>/fd` by any command of the child, and fed with answers that nobody gave.
    pub(super) fn start(launch: &Launch) -> Result<Started, String> {
        if !launch.cwd.is_dir() {
            return Err(format!("the working directory {} cannot be entered", launch.cwd.display()));
        }
        let said = |failed: Failed| match failed {
            Failed::Start(error) if error.kind() == io::ErrorKind::NotFound => {
                format!("{} cannot be found", launch.program.display())
            }
            Failed::Start(error) => format!("{} could not be started: {error}", launch.program.display()),
            Failed::Sandbox(fault) => {
                format!(
                    "its sandbox, which is required, was refused by the system ({}); `plexus doctor` says what to do",
                    fault.reason
                )
            }
        };
        let Some(sandbox) = &launch.sandbox else {
            let (child, ends) = spawn(launch, None).map_err(said)?;
            return Ok(Started { child, ends, walled: None });
        };
        let enclosure = Enclosure::all(launch.tracing, &sandbox.required);
        let started = enclosure.attempt(|enclosure| spawn(launch, Some((sandbox, enclosure))));
        let ((child, ends), walled) = match started {
            Err(Failed::Sandbox(fault)) if fault.part == SandboxPart::Files && sandbox.required.is_empty() => {
                (spawn(launch, None).map_err(said)?, SandboxState::None { reason: fault.reason })
            }
            started => started.map_err(said)?,
        };
        Ok(Started { child, ends, walled: Some(walled) })
    }

    /// Takes in what has ended: the child, and orphans that were handed to us. Tells whether any are left.
    pub(super) fn reap(&mut self) -> Left {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.pid => {
                    self.ended = Some(status);
                    self.init.iter().for_each(Init::child_has_ended);
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Left::Some,
                Err(_) => return Left::None,
            }
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// How it ended.
    pub(super) fn exit(&self) -> Exit {
        match self.ended {
            Some(status) => Exit::now(status.exit_status(), status.terminating_signal(), None),
            None => Exit::now(None, None, Some("it was killed and did not end".to_owned())),
        }
    }
}

/// Whether there are processes below us.
pub(super) enum Left {
    Some,
    None,
}

fn spawn(launch: &Launch, sandbox: Option<(&Sandbox, &Enclosure)>) -> Result<(Child, Ends), Failed> {
    let keeper = getpid();
    let mut command = Command::new(&launch.program);
    command.args(&launch.args).current_dir(&launch.cwd);
    let ends = streams(launch.streams, &mut command).map_err(Failed::Start)?;
    let (raising, handle) = match sandbox {
        None => (None, None),
        Some((sandbox, enclosure)) => {
            let plan = Plan::of(sandbox, &launch.cwd).and_then(|plan| enclosure.add_to(plan));
            let (plan, handle) = plan.map_err(Failed::files)?;
            (Some(plan.enclose(&mut command, Then::GoOn).map_err(Failed::files)?), handle)
        }
    };
    let prepare = move || {
        // A child without its keeper could be neither answered nor stopped.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // In a PID namespace of its own it cannot see its parent, and process 1 there ends it with the keeper.
        if getppid().is_some_and(|parent| parent != keeper) {
            return Err(Errno::SRCH.into());
        }
        setsid()?;
        close_on_exec();
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes system calls and nothing else: it takes no
    // lock, allocates nothing and touches no memory but its own copy of `keeper`.
    unsafe { command.pre_exec(prepare) };
    let spawned =
        command.spawn().map_err(|error| match raising.and_then(|raising| raising.failed(&error)) {
            Some(fault) => Failed::Sandbox(fault),
            None => Failed::Start(error),
        })?;
    // With a PID namespace, the process that was spawned has started the child and ended.
    let (pid, init) = match handle.map(Handle::started).transpose().map_err(Failed::Start)? {
        Some((pid, init)) => (pid, Some(init)),
        None => (Pid::from_child(&spawned), None),
    };
    Ok((Child { pid, ended: None, init }, ends))
}

/// Has the child's program start with its three streams only. The hub may itself have inherited others, from a shell or a
/// service manager; one that leads to the data directory would lead out of the sandbox.
fn close_on_exec() {
    const FIRST: libc::c_int = 3;
    // What a process may have open at most on a system without the call.
    const LAST: libc::c_int = 65_535;
    // SAFETY: the calls take numbers only; descriptors stay open until the process becomes its program.
    unsafe {
        if libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) != 0 {
            for descriptor in FIRST..=LAST {
                libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
            }
        }
    }
}

/// Connects the child's streams to us.
fn streams(streams: Streams, command: &mut Command) -> io::Result<Ends> {
    let ends = match streams {
        Streams::Lines => {
            let pair = || socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
            let (stdin, child_stdin) = pair()?;
            let (stdout, child_stdout) = pair()?;
            let (stderr, child_stderr) = pair()?;
            command.stdin(child_stdin).stdout(child_stdout).stderr(child_stderr);
            Ends { stdin: Some(stdin), stdout: Some(stdout), stderr }
        }
        Streams::Log => {
            // A pipe, as scripts open `/dev/stderr` to write to it, which a socket does not let them.
            let (log, child_log) = pipe_with(PipeFlags::CLOEXEC)?;
            command.stdin(Stdio::null()).stdout(child_log.try_clone()?).stderr(child_log);
            Ends { stdin: None, stdout: None, stderr: log }
        }
    };
    for end in ends.stdout.iter().chain([&ends.stderr]) {
        ioctl_fionbio(end, true)?;
    }
    Ok(ends)
}
