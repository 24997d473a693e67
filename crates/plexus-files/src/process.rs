//! The helper process, `plexus files`. It drops every privilege that the hub has and an agent lacks, reads one request
//! from the socket on its stdin, performs it and writes the answer. It knows nothing of sessions or approvals.

use std::fs::{File, FileTimes};
use std::io::{self, Read as _, Seek as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::SystemTime;

use plexus_agent::Sandbox;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::process::{Resource, Rlimit, geteuid, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use serde::{Deserialize, Serialize};

use crate::HelperError;
use crate::frame;
use crate::request::{Input, Request};

/// The request message of the hub.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Envelope {
    /// The sandbox of the agents, which hides the data directory; `None` if agents have no sandbox.
    pub(crate) hide: Option<Sandbox>,
    /// The modification time of the body, which is a copy of a file.
    pub(crate) body_modified: Option<SystemTime>,
    pub(crate) request: Request,
}

/// Why a helper process exited without an answer.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The stdin is not the hub's socket, or the hub has disconnected.
    #[error("only the hub runs `plexus files`: {0}")]
    Socket(#[from] io::Error),
}

impl From<rustix::io::Errno> for ServeError {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Socket(error.into())
    }
}

/// Serves one request: the whole of `plexus files`. Call it on the main thread, before any other thread starts: the
/// kernel lets only a single-threaded process enter a user namespace.
///
/// # Errors
/// When there is no request, or the answer cannot be sent.
pub fn serve() -> Result<(), ServeError> {
    plexus_agent::forbid_tracing()?;
    close_inherited()?;
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (json, length) = frame::read_head(&mut socket)?;
    let Envelope { hide, body_modified, request } = serde_json::from_slice(&json).map_err(io::Error::from)?;
    let body = (length > 0).then(|| body(&mut socket, length, body_modified)).transpose()?;
    // SAFETY: this process has one thread so far, and none has used libgit2.
    unsafe { plexus_worktree::read_repository_configuration_only() }.map_err(io::Error::other)?;
    let answer = match enclose(hide.as_ref(), request.kind().memory()) {
        Err(reason) => Err(HelperError::NoSandbox(reason)),
        Ok(()) => {
            end_with(&socket)?;
            let path = body.as_ref().map(|body| format!("/proc/self/fd/{}", body.as_raw_fd()).into());
            Ok(request.perform(Input(path))?)
        }
    };
    let (head, output) = match answer {
        Ok((json, output)) => {
            (format!(r#"{{"Ok":{}}}"#, String::from_utf8_lossy(&json)).into_bytes(), output)
        }
        Err(error) => {
            (serde_json::to_vec(&Err::<(), _>(error)).map_err(io::Error::from)?, Default::default())
        }
    };
    let mut content = output.content.unwrap_or_else(|| Box::new(io::empty()));
    frame::write(&mut socket, &head, &mut content, output.length)?;
    // Exits explicitly because the thread that watches the hub still runs.
    std::process::exit(0)
}

/// Closes all inherited files. A link in an agent's directory can name `/proc/self/fd/N`, so no file of the hub may be
/// open there, not even its log. For the same reason stdout and stderr are `/dev/null`, and stdin is a socket, which
/// cannot be opened by path.
fn close_inherited() -> io::Result<()> {
    // SAFETY: this process has opened nothing yet. No value in it owns an inherited descriptor above 2.
    match unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Enters the agents' sandbox and limits the memory of this process.
fn enclose(hide: Option<&Sandbox>, memory: u64) -> Result<(), String> {
    let text = |error: rustix::io::Errno| error.to_string();
    if let Some(hide) = hide {
        plexus_agent::enter_sandbox(hide)?;
        // A process that enters a new user namespace gets all capabilities in it. An agent loses them at `exec`, unless
        // it is root. A helper calls no `exec`, so it drops them here.
        if !geteuid().is_root() {
            let none = CapabilitySet::empty();
            set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
                .map_err(text)?;
        }
        plexus_agent::forbid_tracing().map_err(|error| error.to_string())?;
    }
    setrlimit(Resource::Data, Rlimit { current: Some(memory), maximum: Some(memory) }).map_err(text)
}

/// Exits when the hub closes its end: the next hub must not meet a helper that still writes.
fn end_with(socket: &UnixStream) -> io::Result<()> {
    let mut socket = socket.try_clone()?;
    let watch = move || {
        // The hub sends nothing more, so this read ends only when the hub closes the socket.
        let _ = socket.read(&mut [0]);
        std::process::exit(1)
    };
    std::thread::Builder::new().name("hub".to_owned()).spawn(watch).map(drop)
}

/// Copies the body of the request to a sealed file in memory.
fn body(socket: &mut UnixStream, length: u64, modified: Option<SystemTime>) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("body", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    if io::copy(&mut socket.take(length), &mut file)? != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    file.rewind()?;
    if let Some(modified) = modified {
        file.set_times(FileTimes::new().set_modified(modified))?;
    }
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(file.into())
}
