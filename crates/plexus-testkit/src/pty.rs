//! A program in a pseudo-terminal: its output so far, and keys to press. Dropping it ends the program.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use tokio::sync::watch;

/// The time limit for output, and for the exit.
const LIMIT: Duration = Duration::from_secs(30);
/// Ctrl-C.
pub const CTRL_C: &str = "\u{3}";
/// Ctrl-D.
pub const CTRL_D: &str = "\u{4}";

/// A program in a terminal.
pub struct Pty {
    keys: File,
    shown: watch::Receiver<String>,
    /// The end of the output that was already expected.
    seen: usize,
    child: Child,
}

impl Pty {
    /// Starts a program with exactly this environment.
    ///
    /// # Errors
    /// If no terminal can be opened, or the program cannot be started.
    pub fn start(
        program: &Path,
        args: &[&str],
        dir: &Path,
        env: &[(String, String)],
    ) -> anyhow::Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let side =
            || ioctl_tiocgptpeer(&master, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC);
        // The program gets the terminal as its controlling terminal, so that Ctrl-C reaches it.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).arg(program).args(args).current_dir(dir).env_clear();
        command.envs(env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::from(side()?)).stdout(Stdio::from(side()?)).stderr(Stdio::from(side()?));
        let child = command.spawn().context("setsid")?;
        drop(command);
        let keys = File::from(master);
        let mut screen = keys.try_clone()?;
        let (tell, shown) = watch::channel(String::new());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Reading fails when no process has the other side of the terminal open.
            while let Ok(read @ 1..) = screen.read(&mut bytes) {
                tell.send_modify(|text| text.push_str(&String::from_utf8_lossy(&bytes[..read])));
            }
        });
        Ok(Self { keys, shown, seen: 0, child })
    }

    /// Waits until this text is shown, after the text that was expected before.
    ///
    /// # Errors
    /// If it is not shown in time. The message contains the whole output.
    pub async fn expect(&mut self, text: &str) -> anyhow::Result<()> {
        let waited = tokio::time::timeout(LIMIT, async {
            loop {
                let found = self.shown.borrow_and_update().get(self.seen..).and_then(|rest| rest.find(text));
                if let Some(place) = found {
                    self.seen += place + text.len();
                    return true;
                }
                if self.shown.changed().await.is_err() {
                    return false;
                }
            }
        });
        match waited.await {
            Ok(true) => Ok(()),
            _ => bail!("`{text}` is not on the screen, which shows:\n{}", self.shown()),
        }
    }

    /// The output so far.
    #[must_use]
    pub fn shown(&self) -> String {
        self.shown.borrow().clone()
    }

    /// Presses these keys.
    ///
    /// # Errors
    /// If the terminal is closed.
    pub fn press(&mut self, keys: &str) -> anyhow::Result<()> {
        Ok(self.keys.write_all(keys.as_bytes())?)
    }

    /// Waits for the program's exit. Returns its exit code.
    ///
    /// # Errors
    /// If it does not exit in time, or was killed.
    pub async fn end(&mut self) -> anyhow::Result<i32> {
        // Only the program has the terminal open, so the end of the output is its exit.
        let gone = async { while self.shown.changed().await.is_ok() {} };
        if tokio::time::timeout(LIMIT, gone).await.is_err() {
            bail!("it does not end; this is shown:\n{}", self.shown());
        }
        self.child.wait()?.code().context("it was killed")
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
