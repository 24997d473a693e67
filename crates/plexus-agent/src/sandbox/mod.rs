//! The sandbox of a child. For the child and its descendants the data directory is an empty folder with the few files they
//! need, and they cannot undo that (`docs/design/13-a-wall.md`). This module owns what to hide and the reported result;
//! `raise` creates the sandbox, and `paths` finds every path that leads to the directory.

mod enclosure;
mod filter;
mod hubs;
mod paths;
mod processes;
mod protection;
mod raise;
mod scope;

use std::collections::BTreeSet;
use std::ffi::CString;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::io::read;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use serde::{Deserialize, Serialize};

pub use self::enclosure::SandboxPart;
pub(crate) use self::enclosure::{Enclosure, Failed, Fault};
use self::filter::Filter;
pub use self::hubs::list_data_dir;
pub use self::paths::Inode;
use self::processes::Leash;
pub(crate) use self::processes::{Handle, Init};
pub use self::protection::{Protection, Tracing};
use self::raise::{Ids, Step};
use crate::run_dir::{RunDir, create_new};

/// What a child is not to see, as it stands in `launch.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// A directory: the hub's data.
    pub hide: PathBuf,
    /// A file in it that stays, to be read.
    pub show: Option<PathBuf>,
    /// Parts of the sandbox without which no child is started. Other parts are left out where the system refuses them; where
    /// none is required, so is the whole.
    pub required: BTreeSet<SandboxPart>,
    /// Which directory that was when the hub locked it. Where another one stands there now, that one is not hidden in
    /// its place: no child is started.
    #[serde(default)]
    pub inode: Option<Inode>,
    /// The list of all hubs' data directories, which are hidden as well, as far as there are any when the sandbox is created.
    #[serde(default)]
    pub hubs: Option<PathBuf>,
}

/// What stands between a child and the hub's data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "wall", rename_all = "snake_case")]
pub enum SandboxState {
    /// A mount namespace in which it is hidden, and a user namespace that cannot change that.
    Namespaces {
        /// The parts that the system granted.
        #[serde(default)]
        parts: BTreeSet<SandboxPart>,
        /// Processes outside, which it cannot signal.
        #[serde(default = "Protection::unknown")]
        signals: Protection,
        /// The user's terminals, which it cannot write to.
        #[serde(default = "Protection::unknown")]
        terminals: Protection,
        /// The descriptors of Claude Code, which its tools cannot take.
        #[serde(default = "Protection::unknown")]
        descriptors: Protection,
        /// The memory of Claude Code, which its tools cannot write.
        #[serde(default = "Protection::unknown")]
        memory: Protection,
    },
    /// Nothing.
    None {
        /// Why.
        reason: String,
    },
}

impl SandboxState {
    pub(crate) fn write(&self, dir: &RunDir) -> io::Result<()> {
        create_new(&dir.sandbox())?.write_all(&serde_json::to_vec(self)?)
    }
}

/// What stands around the child of a run, as its keeper has said; `None` where it has said nothing.
pub fn read_sandbox(dir: &RunDir) -> Option<SandboxState> {
    serde_json::from_slice(&std::fs::read(dir.sandbox()).ok()?).ok()
}

/// From here on nobody but root can trace this process, read its memory or go through its `/proc` entry, and it leaves no
/// core file. For all that hold what a child must not have; a program that is started from here begins anew.
pub fn forbid_tracing() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Tries whether this system grants a sandbox around `dir`, in a process that ends at once; if not, says why.
pub fn try_hiding(dir: &Path) -> Result<(), String> {
    match try_sandbox(dir, Tracing::Denied, &BTreeSet::new()) {
        SandboxState::Namespaces { .. } => Ok(()),
        SandboxState::None { reason } => Err(reason),
    }
}

/// Tries what this system grants around `dir`, in processes that end at once. Where it refuses a required part, it counts as
/// granting none.
pub fn try_sandbox(dir: &Path, tracing: Tracing, required: &BTreeSet<SandboxPart>) -> SandboxState {
    let sandbox = Sandbox { hide: dir.to_owned(), show: None, required: required.clone(), inode: None, hubs: None };
    let tried = Enclosure::all(tracing, required).attempt(|enclosure| {
        let plan = Plan::of(&sandbox, Path::new("/")).and_then(|plan| enclosure.add_to(plan));
        let (plan, _handle) = plan.map_err(Failed::files)?;
        let mut nothing = Command::new("/");
        let raising = plan.enclose(&mut nothing, Then::GiveUp).map_err(Failed::files)?;
        match nothing.spawn() {
            Err(error) => raising.failed(&error).map_or(Ok(()), |fault| Err(Failed::Sandbox(fault))),
            Ok(mut child) => {
                let _ = child.wait();
                Err(Failed::files("what tried it did not come back"))
            }
        }
    });
    match tried {
        Ok(((), walled)) => walled,
        Err(Failed::Sandbox(fault)) => SandboxState::None { reason: fault.reason },
        Err(Failed::Start(error)) => SandboxState::None { reason: error.to_string() },
    }
}

/// Puts the calling process behind a sandbox, as a child is, or says why not; what depends on it is the caller's to decide.
/// The process must have one thread. The directory is empty for it afterwards; this is checked.
pub fn enter_sandbox(sandbox: &Sandbox) -> Result<(), String> {
    let said = |error: io::Error| error.to_string();
    let plan = Plan::of(sandbox, Path::new("/")).map_err(said)?;
    let (heard, say) =
        pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).map_err(|error| error.to_string())?;
    let raising = Raising { said: heard };
    let failed =
        |error: io::Error| raising.failed(&error).map_or_else(|| error.to_string(), |fault| fault.reason);
    plan.raise(&say, Then::GoOn).map_err(failed)?;
    match std::fs::read_dir(&sandbox.hide).map_err(said)?.next() {
        None => Ok(()),
        Some(_) => Err("the data directory can still be seen".to_owned()),
    }
}

/// What a process does once the sandbox stands around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// It becomes the program it is to be.
    GoOn,
    /// It tries to take the sandbox down, and ends without having become anything.
    GiveUp,
}

/// A sandbox, thought through: all that a process needs to know that can neither allocate nor ask.
pub(crate) struct Plan {
    /// Where the hidden directory can be reached; its own path first.
    covers: Vec<CString>,
    /// The folders on the way to it, which are not to be moved away and others put in their place, outermost first.
    fastened: Vec<CString>,
    show: Option<Shown>,
    ids: Ids,
    /// Where the process is in the end.
    cwd: CString,
    /// For a PID namespace, the pipes to its process 1.
    leash: Option<Leash>,
    signals: Signals,
    filter: Option<Filter>,
    /// Where the terminals of this user can be reached; each place gets terminals of its own.
    terminals: Vec<CString>,
}

/// Whether Landlock is to hold back signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signals {
    Scoped,
    Free,
}

/// A file that stays, and the folders on the way to it.
struct Shown {
    file: CString,
    folders: Vec<CString>,
}

impl Plan {
    pub(crate) fn of(sandbox: &Sandbox, cwd: &Path) -> io::Result<Self> {
        let leading = paths::leading_to(&sandbox.hide)?;
        if let (Some(expected), Some(dir)) = (sandbox.inode, leading.first())
            && Inode::of(dir)? != expected
        {
            return Err(exchanged(&sandbox.hide));
        }
        let mut fastened: BTreeSet<PathBuf> =
            leading.first().map(|dir| paths::above(dir)).into_iter().flatten().collect();
        let others = match &sandbox.hubs {
            Some(list) => hubs::others(list, &leading)?,
            None => BTreeSet::new(),
        };
        fastened.extend(others.iter().flat_map(|other| paths::above(other)));
        let c_paths = |paths: &mut dyn Iterator<Item = &PathBuf>| {
            paths.map(|path| c_path(path)).collect::<io::Result<_>>()
        };
        let show = sandbox.show.as_ref().map(|file| Shown::of(file, &sandbox.hide)).transpose()?;
        Ok(Self {
            covers: c_paths(&mut leading.iter().chain(&others))?,
            // In this order each folder comes after those around it.
            fastened: c_paths(&mut fastened.iter())?,
            show,
            ids: Ids::of_this_process()?,
            cwd: c_path(cwd)?,
            leash: None,
            signals: Signals::Free,
            filter: None,
            terminals: Vec::new(),
        })
    }

    /// Has `command` raise the sandbox around itself before it becomes its program. What is set up after this for the
    /// time before the program is done inside.
    pub(crate) fn enclose(self, command: &mut Command, then: Then) -> io::Result<Raising> {
        let (said, say) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let prepare = move || {
            self.raise(&say, then)?;
            if then == Then::GiveUp {
                return Err(self.tear(&say).into());
            }
            Ok(())
        };
        // SAFETY: between fork and exec the closure makes system calls on memory that is its own and was prepared before;
        // it takes no lock and allocates nothing. Forking a helper is the one thing more, which a fork of one thread may.
        unsafe { command.pre_exec(prepare) };
        Ok(Raising { said })
    }
}

impl Shown {
    fn of(file: &Path, below: &Path) -> io::Result<Self> {
        let outside =
            || io::Error::new(io::ErrorKind::InvalidInput, "what is to stay is not in what is hidden");
        let inside = file.strip_prefix(below).map_err(|_| outside())?;
        let mut folders = Vec::new();
        let mut folder = below.to_owned();
        for name in inside.parent().into_iter().flat_map(Path::components) {
            folder.push(name);
            folders.push(c_path(&folder)?);
        }
        Ok(Self { file: c_path(file)?, folders })
    }
}

/// How far a process has come with its sandbox; to be asked after it was started, or could not be.
pub(crate) struct Raising {
    said: OwnedFd,
}

impl Raising {
    /// Why the sandbox does not stand; `None` where it does, and a start that failed did so for another reason.
    pub(crate) fn failed(&self, error: &io::Error) -> Option<Fault> {
        let mut steps = [0; 64];
        // It has ended, or become its program: what it said is there.
        let count = read(&self.said, &mut steps).unwrap_or(0);
        let step = steps[..count].last().copied().and_then(Step::named);
        let part = match step {
            Some(Step::Done) => return None,
            Some(Step::Terminals) => SandboxPart::Terminals,
            Some(Step::Processes) => SandboxPart::Processes,
            Some(Step::Scope) => SandboxPart::Signals,
            Some(Step::Filter) => SandboxPart::Descriptors,
            _ => SandboxPart::Files,
        };
        let reason =
            step.map_or_else(|| format!("it was not begun: {error}"), |step| format!("{step}: {error}"));
        Some(Fault { part, reason })
    }
}

fn exchanged(dir: &Path) -> io::Error {
    let message = format!("{} is another directory than the one that the hub has locked", dir.display());
    io::Error::other(message)
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}
