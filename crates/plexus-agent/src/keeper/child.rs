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
use crate::wall::{Plan, Then, Wall, WallNeed, Walled};

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
}

/// A child that was started, and what stands around it where something was to.
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) ends: Ends,
    pub(super) walled: Option<Walled>,
}

/// Why there is no child.
enum Failed {
    /// The wall around it, in words.
    Wall(String),
    /// Anything else.
    Start(io::Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Start(error)
    }
}

impl From<Errno> for Failed {
    fn from(error: Errno) -> Self {
        Self::Start(error.into())
    }
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
            Failed::Wall(reason) => {
                format!("there is no wall around it, and one is required in plexus.toml ({reason})")
            }
        };
        let Some(wall) = &launch.wall else {
            let (child, ends) = spawn(launch, None).map_err(said)?;
            return Ok(Started { child, ends, walled: None });
        };
        let ((child, ends), walled) = match spawn(launch, Some(wall)) {
            Err(Failed::Wall(reason)) if wall.need == WallNeed::Wanted => {
                (spawn(launch, None).map_err(said)?, Walled::None { reason })
            }
            started => (started.map_err(said)?, Walled::Namespaces),
        };
        Ok(Started { child, ends, walled: Some(walled) })
    }

    /// Takes in what has ended: the child, and orphans that were handed to us. Tells whether any are left.
    pub(super) fn reap(&mut self) -> Left {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.pid => self.ended = Some(status),
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

fn spawn(launch: &Launch, wall: Option<&Wall>) -> Result<(Child, Ends), Failed> {
    let keeper = getpid();
    let mut command = Command::new(&launch.program);
    command.args(&launch.args).current_dir(&launch.cwd);
    let ends = match launch.streams {
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
    let raising = wall.map(|wall| Plan::of(wall, &launch.cwd)?.enclose(&mut command, Then::GoOn)).transpose();
    let raising = raising.map_err(|error: io::Error| Failed::Wall(error.to_string()))?;
    let prepare = move || {
        // A child without its keeper could be neither answered nor stopped.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() != Some(keeper) {
            return Err(Errno::SRCH.into());
        }
        setsid()?;
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes three system calls and nothing else: it takes no
    // lock, allocates nothing and touches no memory but its own copy of `keeper`.
    unsafe { command.pre_exec(prepare) };
    let child = command.spawn().map_err(|error| match raising.and_then(|wall| wall.fault(&error)) {
        Some(reason) => Failed::Wall(reason),
        None => Failed::Start(error),
    })?;
    let pid = Pid::from_child(&child);
    Ok((Child { pid, ended: None }, ends))
}
