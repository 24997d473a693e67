//! Starts the child so that no other process can impersonate it, and detects the end of the child and of its
//! descendants.

use std::fs::File;
use std::io::{self, Seek};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, getppid, set_parent_process_death_signal, setsid, wait,
};

use crate::command_line::{Launch, Streams};
use crate::exit::Exit;
use crate::sandbox::{
    AfterCreation, Enclosure, Failed, Handle, Init, Plan, Sandbox, SandboxPart, SandboxState,
};

/// The keeper's ends of the child's streams. Reading from them never blocks.
pub(super) struct ParentEnds {
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: Option<OwnedFd>,
    pub(super) stderr: OwnedFd,
}

/// The child, while it is running and afterwards.
pub(super) struct Child {
    pid: Pid,
    ended: Option<WaitStatus>,
    /// Process 1 of the child's PID namespace, if it has one.
    init: Option<Init>,
}

/// A started child, and its sandbox state if a sandbox was requested.
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) ends: ParentEnds,
    pub(super) sandbox: Option<SandboxState>,
}

impl Child {
    /// Starts the child, or returns the reason for the failure.
    ///
    /// A child with line streams gets socketpairs. Any command of the child could open a pipe or a file again through
    /// `/proc/<child>/fd` and inject forged answers.
    pub(super) fn start(launch: &Launch) -> Result<Started, String> {
        if !launch.cwd.is_dir() {
            return Err(format!(
                "the working directory {} does not exist or is not accessible",
                launch.cwd.display()
            ));
        }
        let reason_of = |failed: Failed| match failed {
            Failed::Start(error) if error.kind() == io::ErrorKind::NotFound => {
                format!("{} was not found", launch.program.display())
            }
            Failed::Start(error) => format!("cannot start {}: {error}", launch.program.display()),
            Failed::Sandbox(fault) => {
                format!(
                    "the system does not support the required sandbox ({}); `plexus doctor` says how to fix \
                     it",
                    fault.reason
                )
            }
        };
        let Some(sandbox) = &launch.sandbox else {
            let (child, ends) = spawn(launch, None).map_err(reason_of)?;
            return Ok(Started { child, ends, sandbox: None });
        };
        let enclosure = Enclosure::all(launch.tracing, &sandbox.required);
        let started = enclosure.attempt(|enclosure| spawn(launch, Some((sandbox, enclosure))));
        let ((child, ends), sandbox) = match started {
            Err(Failed::Sandbox(fault))
                if fault.part == SandboxPart::Files && sandbox.required.is_empty() =>
            {
                (spawn(launch, None).map_err(reason_of)?, SandboxState::None { reason: fault.reason })
            }
            started => started.map_err(reason_of)?,
        };
        Ok(Started { child, ends, sandbox: Some(sandbox) })
    }

    /// Reaps the child and adopted orphans that have ended. Returns whether any are left.
    pub(super) fn reap(&mut self) -> Descendants {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.pid => {
                    self.ended = Some(status);
                    self.init.iter().for_each(Init::child_has_ended);
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Descendants::Some,
                Err(_) => return Descendants::None,
            }
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// How the child ended.
    pub(super) fn exit(&self) -> Exit {
        match self.ended {
            Some(status) => Exit::now(status.exit_status(), status.terminating_signal(), None),
            None => Exit::now(None, None, Some("the process was killed but did not exit".to_owned())),
        }
    }
}

/// Whether this process still has descendants.
pub(super) enum Descendants {
    Some,
    None,
}

fn spawn(launch: &Launch, sandbox: Option<(&Sandbox, &Enclosure)>) -> Result<(Child, ParentEnds), Failed> {
    let keeper = getpid();
    let mut command = Command::new(&launch.program);
    command.args(&launch.args).current_dir(&launch.cwd);
    let ends = streams(&launch.streams, &mut command).map_err(Failed::Start)?;
    let (creation, handle) = match sandbox {
        None => (None, None),
        Some((sandbox, enclosure)) => {
            let plan = Plan::of(sandbox, &launch.cwd).and_then(|plan| enclosure.add_to(plan));
            let (plan, handle) = plan.map_err(Failed::files)?;
            (Some(plan.enclose(&mut command, AfterCreation::Continue).map_err(Failed::files)?), handle)
        }
    };
    let prepare = move || {
        // A child without its keeper could receive no answers and could not be stopped.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // In its own PID namespace the child cannot see its parent. There, process 1 ends it when the keeper ends.
        if getppid().is_some_and(|parent| parent != keeper) {
            return Err(Errno::SRCH.into());
        }
        setsid()?;
        close_on_exec();
        Ok(())
    };
    // SAFETY: between fork and exec the closure only makes system calls. It takes no lock, allocates nothing and
    // touches no memory but its own copy of `keeper`.
    unsafe { command.pre_exec(prepare) };
    let spawned =
        command.spawn().map_err(|error| match creation.and_then(|creation| creation.failed(&error)) {
            Some(fault) => Failed::Sandbox(fault),
            None => Failed::Start(error),
        })?;
    // With a PID namespace, the spawned process has started the child and exited.
    let (pid, init) = match handle.map(Handle::started).transpose().map_err(Failed::Start)? {
        Some((pid, init)) => (pid, Some(init)),
        None => (Pid::from_child(&spawned), None),
    };
    Ok((Child { pid, ended: None, init }, ends))
}

/// Closes all descriptors except the three standard streams when the child's program starts. The hub may have inherited
/// others from a shell or a service manager, and one that leads to the data directory would bypass the sandbox.
fn close_on_exec() {
    const FIRST: libc::c_int = 3;
    // The upper bound for descriptors on a system without the call.
    const LAST: libc::c_int = 65_535;
    // SAFETY: the calls take only numbers, and descriptors stay open until the process executes its program.
    unsafe {
        if libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) != 0 {
            for descriptor in FIRST..=LAST {
                libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
            }
        }
    }
}

/// Connects the child's streams to the keeper.
fn streams(streams: &Streams, command: &mut Command) -> io::Result<ParentEnds> {
    let pair = || socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let ends = match streams {
        Streams::Lines => {
            let (stdin, child_stdin) = pair()?;
            let (stdout, child_stdout) = pair()?;
            let (stderr, child_stderr) = pair()?;
            command.stdin(child_stdin).stdout(child_stdout).stderr(child_stderr);
            ParentEnds { stdin: Some(stdin), stdout: Some(stdout), stderr }
        }
        Streams::Log => {
            // A pipe, because scripts open `/dev/stderr` to write to it, which fails with a socket.
            let (log, child_log) = pipe_with(PipeFlags::CLOEXEC)?;
            command.stdin(Stdio::null()).stdout(child_log.try_clone()?).stderr(child_log);
            ParentEnds { stdin: None, stdout: None, stderr: log }
        }
        Streams::Captured { input } => {
            let (stdout, child_stdout) = pair()?;
            let (stderr, child_stderr) = pair()?;
            command.stdin(copy_of(input)?).stdout(child_stdout).stderr(child_stderr);
            ParentEnds { stdin: None, stdout: Some(stdout), stderr }
        }
    };
    for end in ends.stdout.iter().chain([&ends.stderr]) {
        ioctl_fionbio(end, true)?;
    }
    Ok(ends)
}

/// A copy of a file in memory. A descriptor of the file itself would lead from the sandbox to the data directory.
fn copy_of(path: &Path) -> io::Result<File> {
    let mut copy = File::from(memfd_create("input", MemfdFlags::CLOEXEC)?);
    io::copy(&mut File::open(path)?, &mut copy)?;
    copy.rewind()?;
    Ok(copy)
}
