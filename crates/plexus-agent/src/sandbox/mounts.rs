//! Creates the sandbox, in a process that is about to become a child. It consists of two nested user namespaces and a
//! mount namespace that belongs to the outer one. A process in the inner namespace cannot change those mounts, and a
//! mount namespace that it creates itself inherits them locked together. Nothing here allocates. Each step is reported
//! before it is attempted.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, mkdir, open, openat};
use rustix::io::{Errno, read, retry_on_intr, write};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount,
    mount_bind_recursive, mount_change, mount_remount, move_mount, open_tree, unmount,
};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    DumpableBehavior, Pid, WaitOptions, chdir, getegid, geteuid, set_dumpable_behavior, waitpid,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::processes::Creating;
use super::{AfterCreation, Plan, Signals, VisibleFile, scope};

/// Mount flags for a folder that stays empty.
const NOTHING_BUT_FILES: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV).union(MountFlags::NOEXEC);

/// The current step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Step {
    Outer = 1,
    Private,
    Cover,
    Show,
    Terminals,
    Inner,
    Processes,
    Scope,
    Filter,
    Hold,
    Done,
}

impl Step {
    pub(super) fn named(number: u8) -> Option<Self> {
        use Step::{Cover, Done, Filter, Hold, Inner, Outer, Private, Processes, Scope, Show, Terminals};
        [Outer, Private, Cover, Show, Terminals, Inner, Processes, Scope, Filter, Hold, Done]
            .into_iter()
            .find(|step| *step as u8 == number)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Outer => "cannot create a user and mount namespace",
            Self::Private => "cannot make the mounts private",
            Self::Cover => "cannot hide the data directory",
            Self::Show => "cannot make the agent's MCP config visible",
            Self::Terminals => "cannot create private terminals",
            Self::Inner => "cannot create a second user namespace",
            Self::Processes => "cannot create a PID namespace with a private /proc",
            Self::Scope => "Landlock cannot block signals",
            Self::Filter => "cannot install a system call filter",
            Self::Hold => "a process inside can undo the sandbox",
            Self::Done => "the sandbox is complete",
        })
    }
}

impl Plan {
    /// Creates the sandbox around this process. With a PID namespace, this call returns in a new process, and the
    /// calling process exits.
    pub(super) fn create(&self, report: &OwnedFd, then: AfterCreation) -> io::Result<()> {
        let at = |step: Step| write(report, &[step as u8]).map(drop);
        at(Step::Outer)?;
        self.ids.enter(UnshareFlags::NEWNS)?;
        at(Step::Private)?;
        // Otherwise later mounts outside, including mounts of the hidden directory, would appear here as well.
        mount_change(c"/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        self.hide(at)?;
        at(Step::Terminals)?;
        for mount_point in &self.terminals {
            // `/dev/ptmx` leads to the file system that is mounted beside it.
            let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
            mount(c"devpts", mount_point, c"devpts", flags, c"newinstance,ptmxmode=0666,mode=0620")?;
        }
        let creating = match &self.leash {
            Some(leash) => {
                at(Step::Processes)?;
                Some((Creating::start(leash, then)?, leash))
            }
            None => None,
        };
        at(Step::Inner)?;
        self.ids.enter(UnshareFlags::empty())?;
        if let Some((creating, leash)) = creating {
            at(Step::Processes)?;
            let mounted = creating.mount_proc();
            match then {
                AfterCreation::Continue => mounted.and_then(|()| creating.become_member(leash))?,
                AfterCreation::Exit => {
                    creating.give_up();
                    mounted?;
                }
            }
        }
        if self.signals == Signals::Scoped {
            at(Step::Scope)?;
            scope::restrict()?;
        }
        if let Some(filter) = &self.filter {
            at(Step::Filter)?;
            filter.install()?;
        }
        at(Step::Done)?;
        Ok(())
    }

    /// Covers the hidden directory at every path that leads to it.
    fn hide(&self, at: impl Fn(Step) -> Result<(), Errno>) -> io::Result<()> {
        at(Step::Cover)?;
        for folder in &self.pinned {
            // A mount point cannot be moved. Hard links across it become impossible too.
            mount_bind_recursive(folder, folder)?;
        }
        // Opened before the cover hides it.
        let held = match &self.show {
            Some(shown) => Some((shown, shown.open_detached()?)),
            None => None,
        };
        for cover in &self.covers {
            mount(c"plexus", cover, c"tmpfs", NOTHING_BUT_FILES, c"mode=0700,size=64k,nr_inodes=64")?;
        }
        at(Step::Show)?;
        if let Some((shown, held)) = held {
            shown.mount_at_path(&held)?;
        }
        for cover in &self.covers {
            mount_remount(cover, MountFlags::BIND | MountFlags::RDONLY | NOTHING_BUT_FILES, c"")?;
        }
        // Repeated, because the working directory may now lie below a cover.
        chdir(&self.cwd)?;
        Ok(())
    }

    /// Tries to undo the created sandbox. If that fails, the sandbox holds. The process exits in either case.
    pub(super) fn try_to_undo(&self, report: &OwnedFd) -> Errno {
        let _ = write(report, &[Step::Hold as u8]);
        for cover in &self.covers {
            for how in [UnmountFlags::empty(), UnmountFlags::DETACH] {
                if unmount(cover, how).is_ok() {
                    return Errno::PERM;
                }
            }
        }
        if self.leash.is_some() && unmount(c"/proc", UnmountFlags::DETACH).is_ok() {
            return Errno::PERM;
        }
        match write(report, &[Step::Done as u8]) {
            Ok(_) => Errno::CANCELED,
            Err(error) => error,
        }
    }
}

impl VisibleFile {
    /// Opens the file independently of its path.
    fn open_detached(&self) -> io::Result<OwnedFd> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        Ok(open_tree(CWD, &self.file, flags)?)
    }

    /// Mounts the file at its original path, read-only.
    fn mount_at_path(&self, held: &OwnedFd) -> io::Result<()> {
        for folder in &self.folders {
            match mkdir(folder, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        drop(open(&self.file, flags, Mode::RUSR | Mode::WUSR)?);
        move_mount(held, c"", CWD, &self.file, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
        mount_remount(&self.file, MountFlags::BIND | MountFlags::RDONLY | NOTHING_BUT_FILES, c"")?;
        Ok(())
    }
}

/// The existing users and groups, each mapped to itself.
pub(super) struct Ids {
    users: Map,
    groups: Map,
}

/// The contents of `uid_map` or `gid_map`.
struct Map {
    /// All known ids. Files of other users keep their owners, and root can still change ownership to them. Requires
    /// privilege.
    all: Vec<u8>,
    /// The id of this process only.
    own: Vec<u8>,
}

impl Map {
    fn of(path: &str, own: u32) -> io::Result<Self> {
        let mut all = Vec::new();
        for line in std::fs::read_to_string(path)?.lines() {
            let mut fields = line.split_ascii_whitespace();
            if let (Some(first), Some(_), Some(count)) = (fields.next(), fields.next(), fields.next()) {
                all.extend_from_slice(format!("{first} {first} {count}\n").as_bytes());
            }
        }
        Ok(Self { all, own: format!("{own} {own} 1\n").into_bytes() })
    }
}

impl Ids {
    pub(super) fn of_this_process() -> io::Result<Self> {
        Ok(Self {
            users: Map::of("/proc/self/uid_map", geteuid().as_raw())?,
            groups: Map::of("/proc/self/gid_map", getegid().as_raw())?,
        })
    }

    /// Moves this process into a new user namespace, and into the namespaces in `more`. All ids stay the same inside.
    ///
    /// Only a process outside can map all ids, so a temporary helper that stays outside does it.
    fn enter(&self, more: UnshareFlags) -> io::Result<()> {
        let this = open(c"/proc/self", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let (receiver, sender) = pipe_with(PipeFlags::CLOEXEC)?;
        // SAFETY: this process is itself a fork with one thread. The helper makes system calls and leaves by `_exit`.
        let helper = match unsafe { libc::fork() } {
            0 => {
                drop(sender);
                let signal = read(&receiver, &mut [0; 1]);
                let code = match signal {
                    Ok(1) => self.write(&this).map_or_else(Errno::raw_os_error, |()| 0),
                    _ => Errno::CANCELED.raw_os_error(),
                };
                // SAFETY: no code of this copy of the keeper runs afterwards.
                unsafe { libc::_exit(code) }
            }
            -1 => return Err(io::Error::last_os_error()),
            pid => Pid::from_raw(pid).ok_or(Errno::SRCH)?,
        };
        // SAFETY: no file descriptors are unshared, and there is no other thread.
        let entered = unsafe { unshare_unsafe(UnshareFlags::NEWUSER | more) }
            // The keeper is not dumpable, and this process inherits that. The helper must write to this process's
            // `/proc` files.
            .and_then(|()| set_dumpable_behavior(DumpableBehavior::Dumpable))
            .and_then(|()| write(&sender, b".").map(drop));
        drop(sender);
        let ended = retry_on_intr(|| waitpid(Some(helper), WaitOptions::empty()))?;
        entered?;
        match ended.and_then(|(_, status)| status.exit_status()) {
            Some(0) => Ok(()),
            code => Err(io::Error::from_raw_os_error(code.unwrap_or(libc::ECANCELED))),
        }
    }

    /// Maps the ids of the process with this `/proc` directory: all of them if permitted, otherwise only our own.
    fn write(&self, process: &OwnedFd) -> Result<(), Errno> {
        let write_to = |file: &std::ffi::CStr, text: &[u8]| {
            let file = openat(process, file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
            write(&file, text).map(drop)
        };
        write_to(c"uid_map", &self.users.all).or_else(|_| write_to(c"uid_map", &self.users.own))?;
        write_to(c"gid_map", &self.groups.all).or_else(|_| {
            // A process that could drop a group there might gain access to files that deny that group here.
            write_to(c"setgroups", b"deny")?;
            write_to(c"gid_map", &self.groups.own)
        })
    }
}
