//! The sandbox of a child. The child and its descendants see the data directory as an empty folder with the few files
//! they need, and they cannot undo that (`docs/design/13-the-sandbox.md`). This module owns what to hide and the
//! reported result; `mounts` creates the sandbox, and `paths` finds every path that leads to the directory.

mod filter;
mod granted_parts;
mod hubs;
mod mounts;
mod paths;
mod processes;
mod protection;
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

use self::filter::Filter;
pub use self::granted_parts::SandboxPart;
pub(crate) use self::granted_parts::{Enclosure, Failed, Fault};
pub use self::hubs::list_data_dir;
use self::mounts::{Ids, Step};
pub use self::paths::Inode;
use self::processes::Leash;
pub(crate) use self::processes::{Handle, Init};
pub use self::protection::{Protection, Tracing};
use crate::run_dir::{RunDir, create_new};

/// The sandbox settings in `launch.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// The directory to hide: the hub's data directory.
    pub hide: PathBuf,
    /// A file in it that stays readable.
    pub show: Option<PathBuf>,
    /// The parts of the sandbox that a child requires to start. Other parts are omitted if the system denies them; if
    /// no part is required, the whole sandbox may be omitted.
    pub required: BTreeSet<SandboxPart>,
    /// The inode of the directory when the hub locked it. If another directory has replaced it, that one is not hidden
    /// in its place: no child is started.
    #[serde(default)]
    pub inode: Option<Inode>,
    /// The list of all hubs' data directories. Those that exist when the sandbox is created are hidden as well.
    #[serde(default)]
    pub hubs: Option<PathBuf>,
}

/// The state of a child's sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "wall", rename_all = "snake_case")]
pub enum SandboxState {
    /// A mount namespace hides the data directory, and a user namespace prevents the child from changing that.
    Namespaces {
        /// The parts that the system granted.
        #[serde(default)]
        parts: BTreeSet<SandboxPart>,
        /// Whether processes outside are protected from the child's signals.
        #[serde(default = "Protection::unknown")]
        signals: Protection,
        /// Whether the user's terminals are protected from the child's writes.
        #[serde(default = "Protection::unknown")]
        terminals: Protection,
        /// Whether Claude Code's descriptors are protected from its tools.
        #[serde(default = "Protection::unknown")]
        descriptors: Protection,
        /// Whether Claude Code's memory is protected from writes by its tools.
        #[serde(default = "Protection::unknown")]
        memory: Protection,
    },
    /// The child runs without a sandbox.
    None {
        /// Why no sandbox was created.
        reason: String,
    },
}

impl SandboxState {
    pub(crate) fn write(&self, dir: &RunDir) -> io::Result<()> {
        create_new(&dir.sandbox())?.write_all(&serde_json::to_vec(self)?)
    }
}

/// The sandbox state of a run's child, as its keeper reported it; `None` without a report.
pub fn read_sandbox(dir: &RunDir) -> Option<SandboxState> {
    serde_json::from_slice(&std::fs::read(dir.sandbox()).ok()?).ok()
}

/// From now on only root can trace this process, read its memory or access its `/proc` entry, and it leaves no core
/// file. Every process that holds data a child must not have calls this. A program executed from here does not inherit
/// it.
pub fn forbid_tracing() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Tests in a short-lived process whether this system grants a sandbox around `dir`; if not, returns the reason.
pub fn try_hiding(dir: &Path) -> Result<(), String> {
    match try_sandbox(dir, Tracing::Denied, &BTreeSet::new()) {
        SandboxState::Namespaces { .. } => Ok(()),
        SandboxState::None { reason } => Err(reason),
    }
}

/// Tests in short-lived processes which parts this system grants around `dir`. If it denies a required part, the result
/// is no sandbox.
pub fn try_sandbox(dir: &Path, tracing: Tracing, required: &BTreeSet<SandboxPart>) -> SandboxState {
    let sandbox =
        Sandbox { hide: dir.to_owned(), show: None, required: required.clone(), inode: None, hubs: None };
    let tried = Enclosure::all(tracing, required).attempt(|enclosure| {
        let plan = Plan::of(&sandbox, Path::new("/")).and_then(|plan| enclosure.add_to(plan));
        let (plan, _handle) = plan.map_err(Failed::files)?;
        let mut nothing = Command::new("/");
        let creation = plan.enclose(&mut nothing, AfterCreation::Exit).map_err(Failed::files)?;
        match nothing.spawn() {
            Err(error) => creation.failed(&error).map_or(Ok(()), |fault| Err(Failed::Sandbox(fault))),
            Ok(mut child) => {
                let _ = child.wait();
                Err(Failed::files("the process that tested the sandbox did not exit"))
            }
        }
    });
    match tried {
        Ok(((), state)) => state,
        Err(Failed::Sandbox(fault)) => SandboxState::None { reason: fault.reason },
        Err(Failed::Start(error)) => SandboxState::None { reason: error.to_string() },
    }
}

/// Moves the calling process into a sandbox, as for a child, or returns the reason for the failure; the caller decides
/// how to handle it. The process must have one thread. Afterwards the directory is empty for it, which is verified.
pub fn enter_sandbox(sandbox: &Sandbox) -> Result<(), String> {
    let text = |error: io::Error| error.to_string();
    let plan = Plan::of(sandbox, Path::new("/")).map_err(text)?;
    let (steps, report) =
        pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).map_err(|error| error.to_string())?;
    let creation = Creation { steps };
    let failed =
        |error: io::Error| creation.failed(&error).map_or_else(|| error.to_string(), |fault| fault.reason);
    plan.create(&report, AfterCreation::Continue).map_err(failed)?;
    match std::fs::read_dir(&sandbox.hide).map_err(text)?.next() {
        None => Ok(()),
        Some(_) => Err("the data directory is still visible".to_owned()),
    }
}

/// What a process does once its sandbox is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterCreation {
    /// It executes its program.
    Continue,
    /// It tries to undo the sandbox, and exits without executing a program.
    Exit,
}

/// A prepared sandbox: all data for a process that can neither allocate nor query anything.
pub(crate) struct Plan {
    /// The paths that lead to the hidden directory; its own path first.
    covers: Vec<CString>,
    /// The ancestors of the directory, outermost first. They must not be moved away and replaced.
    pinned: Vec<CString>,
    show: Option<VisibleFile>,
    ids: Ids,
    /// The final working directory of the process.
    cwd: CString,
    /// For a PID namespace, the pipes to its process 1.
    leash: Option<Leash>,
    signals: Signals,
    filter: Option<Filter>,
    /// The paths that lead to the user's terminals. A separate set of terminals is mounted at each.
    terminals: Vec<CString>,
}

/// Whether Landlock blocks signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signals {
    Scoped,
    Free,
}

/// A file that stays visible, and the folders on its path.
struct VisibleFile {
    file: CString,
    folders: Vec<CString>,
}

impl Plan {
    pub(crate) fn of(sandbox: &Sandbox, cwd: &Path) -> io::Result<Self> {
        let leading = paths::leading_to(&sandbox.hide)?;
        if let (Some(expected), Some(dir)) = (sandbox.inode, leading.first())
            && Inode::of(dir)? != expected
        {
            return Err(replaced_dir(&sandbox.hide));
        }
        let mut pinned: BTreeSet<PathBuf> =
            leading.first().map(|dir| paths::above(dir)).into_iter().flatten().collect();
        let others = match &sandbox.hubs {
            Some(list) => hubs::others(list, &leading)?,
            None => BTreeSet::new(),
        };
        pinned.extend(others.iter().flat_map(|other| paths::above(other)));
        let c_paths = |paths: &mut dyn Iterator<Item = &PathBuf>| {
            paths.map(|path| c_path(path)).collect::<io::Result<_>>()
        };
        let show = sandbox.show.as_ref().map(|file| VisibleFile::of(file, &sandbox.hide)).transpose()?;
        Ok(Self {
            covers: c_paths(&mut leading.iter().chain(&others))?,
            // In this order each folder follows its ancestors.
            pinned: c_paths(&mut pinned.iter())?,
            show,
            ids: Ids::of_this_process()?,
            cwd: c_path(cwd)?,
            leash: None,
            signals: Signals::Free,
            filter: None,
            terminals: Vec::new(),
        })
    }

    /// Makes `command` create the sandbox around itself before it executes its program. Any `pre_exec` step added after
    /// this one runs inside the sandbox.
    pub(crate) fn enclose(self, command: &mut Command, then: AfterCreation) -> io::Result<Creation> {
        let (steps, report) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let prepare = move || {
            self.create(&report, then)?;
            if then == AfterCreation::Exit {
                return Err(self.try_to_undo(&report).into());
            }
            Ok(())
        };
        // SAFETY: between fork and exec the closure makes system calls on its own memory, prepared beforehand; it takes
        // no lock and allocates nothing. In addition it forks a helper, which a single-threaded fork may do.
        unsafe { command.pre_exec(prepare) };
        Ok(Creation { steps })
    }
}

impl VisibleFile {
    fn of(file: &Path, below: &Path) -> io::Result<Self> {
        let outside = || {
            io::Error::new(io::ErrorKind::InvalidInput, "the visible file is not inside the hidden directory")
        };
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

/// The progress of a process that creates its sandbox. Query it after the start succeeded or failed.
pub(crate) struct Creation {
    steps: OwnedFd,
}

impl Creation {
    /// Why the sandbox was not created; `None` if it was, in which case a failed start has another cause.
    pub(crate) fn failed(&self, error: &io::Error) -> Option<Fault> {
        let mut steps = [0; 64];
        // The process has ended or executed its program, so its reports are complete.
        let count = read(&self.steps, &mut steps).unwrap_or(0);
        let step = steps[..count].last().copied().and_then(Step::named);
        let part = match step {
            Some(Step::Done) => return None,
            Some(Step::Terminals) => SandboxPart::Terminals,
            Some(Step::Processes) => SandboxPart::Processes,
            Some(Step::Scope) => SandboxPart::Signals,
            Some(Step::Filter) => SandboxPart::Descriptors,
            _ => SandboxPart::Files,
        };
        let reason = step.map_or_else(
            || format!("cannot start creating the sandbox: {error}"),
            |step| format!("{step}: {error}"),
        );
        Some(Fault { part, reason })
    }
}

fn replaced_dir(dir: &Path) -> io::Error {
    let message = format!("{} is not the directory that the hub has locked", dir.display());
    io::Error::other(message)
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}
