//! The hub's side: starts a helper process for one verb, sends the request, waits for the answer without blocking a
//! thread, and kills the process when its time is up.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::SystemTime;

use plexus_agent::Sandbox;
use serde::{Deserialize, Serialize};
use tokio::fs::File;
use tokio::io::AsyncWrite;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use crate::frame;
use crate::process::Envelope;
use crate::request::Verb;

/// `HOME` resolves `~/` in a repository's configuration. A helper gets no other variable.
const ENVIRONMENT: [&str; 1] = ["HOME"];

/// Why a helper process gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum HelperError {
    /// The sandbox could not be set up. The helper does nothing without it.
    #[error("the file helper cannot enter the sandbox: {0}")]
    NoSandbox(String),
    /// The helper exceeded its time limit and was killed.
    #[error("the file helper took too long")]
    TimedOut,
    /// The helper could not be started, exited without an answer, or answered with more than is allowed.
    #[error("the file helper failed: {0}")]
    Failed(String),
}

impl From<io::Error> for HelperError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Starts helper processes.
#[derive(Debug, Clone)]
pub struct Helper {
    program: PathBuf,
    hide: Option<Sandbox>,
}

impl Helper {
    /// Helpers of the program `plexus`. In the sandbox, they see the directory of `hide` as empty; if the sandbox
    /// fails, they do nothing. With `None` they run without a sandbox, for systems that provide none for agents either.
    pub fn new(program: PathBuf, hide: Option<Sandbox>) -> Self {
        Self { program, hide }
    }

    /// Performs a verb in a new process, and writes the body of its answer to `body`. The process is killed when its
    /// time is up or `give_up` completes. When this returns, the process has ended.
    ///
    /// # Errors
    /// When there is no answer. Errors of the work itself are part of the answer.
    pub async fn call<V: Verb>(
        &self,
        verb: V,
        input: Option<&Path>,
        body: &mut (impl AsyncWrite + Unpin),
        give_up: impl Future<Output = ()>,
    ) -> Result<V::Answer, HelperError> {
        let (mut child, socket) = self.start()?;
        let answered = tokio::select! {
            answered = self.exchange(verb, input, body, socket) => answered,
            () = tokio::time::sleep(V::KIND.within()) => Err(HelperError::TimedOut),
            () = give_up => Err(HelperError::TimedOut),
        };
        let _ = child.kill().await;
        answered
    }

    fn start(&self) -> Result<(Child, UnixStream), HelperError> {
        // A socket: a link to `/proc/self/fd/0` could reopen a pipe and forge answers.
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let child = Command::new(&self.program)
            .arg0("plexus")
            .arg("files")
            .current_dir("/")
            .env_clear()
            .envs(ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| HelperError::Failed(format!("{}: {error}", self.program.display())))?;
        Ok((child, UnixStream::from_std(ours)?))
    }

    async fn exchange<V: Verb>(
        &self,
        verb: V,
        input: Option<&Path>,
        body: &mut (impl AsyncWrite + Unpin),
        mut socket: UnixStream,
    ) -> Result<V::Answer, HelperError> {
        let mut envelope =
            Envelope { hide: self.hide.clone(), body_modified: None::<SystemTime>, request: verb.into() };
        match input {
            None => send(&mut socket, &envelope, &mut tokio::io::empty(), 0).await?,
            Some(path) => {
                let mut file = File::open(path).await?;
                let metadata = file.metadata().await?;
                envelope.body_modified = Some(metadata.modified()?);
                send(&mut socket, &envelope, &mut file, metadata.len()).await?;
            }
        }
        let (json, length) = frame::receive_head(&mut socket).await.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => HelperError::Failed("it exited without an answer".to_owned()),
            _ => error.into(),
        })?;
        if length > V::MAX_BODY {
            return Err(HelperError::Failed("its answer is too large".to_owned()));
        }
        let answer: Result<V::Answer, HelperError> =
            serde_json::from_slice(&json).map_err(|error| HelperError::Failed(error.to_string()))?;
        frame::receive_body(&mut socket, body, length).await?;
        answer
    }
}

async fn send(
    socket: &mut UnixStream,
    envelope: &Envelope,
    body: &mut (impl tokio::io::AsyncRead + Unpin),
    length: u64,
) -> Result<(), HelperError> {
    let json = serde_json::to_vec(envelope).map_err(|error| HelperError::Failed(error.to_string()))?;
    Ok(frame::send(socket, &json, body, length).await?)
}
