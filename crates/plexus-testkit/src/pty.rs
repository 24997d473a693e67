//! A program at a terminal: a pseudo-terminal with the program as its foreground, what it shows so far, and keys to
//! press. It ends the program when it is dropped.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use tokio::sync::watch;

/// How long anything may take to be shown, or to end.
const LIMIT: Duration = Duration::from_secs(30);
/// Ctrl-C.
pub const CTRL_C: &str = "\u{3}";
/// Ctrl-D.
pub const CTRL_D: &str = "\u{4}";

/// A program at a terminal.
pub struct Pty {
    keys: File,
    shown: watch::Receiver<String>,
    /// Up to where it was waited for.
    seen: usize,
    child: Child,
}

impl Pty {
    /// Starts a program with exactly this environment.
    ///
    /// # Errors
    /// When there is no terminal to be had, or the program cannot be started.
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
        // Makes the terminal its own, so that Ctrl-C there means it.
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
            // The terminal is gone once nobody has its other side any more.
            while let Ok(read @ 1..) = screen.read(&mut bytes) {
                tell.send_modify(|text| text.push_str(&String::from_utf8_lossy(&bytes[..read])));
            }
        });
        Ok(Self { keys, shown, seen: 0, child })
    }

    /// Waits until this is shown, after what was waited for before.
    ///
    /// # Errors
    /// When it is not; the message holds all that was shown.
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
            _ => bail!("`{text}` is not shown; this is:\n{}", self.shown()),
        }
    }

    /// All that was shown so far.
    #[must_use]
    pub fn shown(&self) -> String {
        self.shown.borrow().clone()
    }

    /// Presses these keys.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn press(&mut self, keys: &str) -> anyhow::Result<()> {
        Ok(self.keys.write_all(keys.as_bytes())?)
    }

    /// Waits for the program's end; its exit code.
    ///
    /// # Errors
    /// When it does not end, or was killed.
    pub async fn end(&mut self) -> anyhow::Result<i32> {
        // The reader's end is the program's: nobody else has the terminal.
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
