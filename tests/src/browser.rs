//! A browser for the tests of the web console: Chromium, driven by `tests/browser/driver.mjs` with the Playwright that `cargo xtask
//! test` fetches. All tests of a program share one browser, and each has its own [`Window`]. A window reports pages that send requests
//! to other hosts or violate their content security policy. The tests decide what to do and to check.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::cached;
use crate::mcp_tools::McpTools;

const LOCK_FILE: &str = include_str!("../browser/package-lock.json");
const DRIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/browser/driver.mjs");
/// The time limit for code in a page. It is longer than any wait in such code.
const LIMIT: Duration = Duration::from_secs(120);
const CHROMIUM: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Value>>>>;

/// The driver of this program. It exits when its stdin is closed, which happens when this program exits.
struct Driver {
    stdin: Mutex<ChildStdin>,
    waiting: Waiting,
    number: AtomicU64,
}

/// The driver. `None` if something that it needs is missing.
fn driver() -> anyhow::Result<Option<&'static Driver>> {
    static DRIVER: OnceLock<Result<Option<Driver>, String>> = OnceLock::new();
    let driver = DRIVER.get_or_init(|| Driver::start().map_err(|error| format!("{error:#}")));
    driver.as_ref().map(Option::as_ref).map_err(|error| anyhow::anyhow!("no browser: {error}"))
}

impl Driver {
    fn start() -> anyhow::Result<Option<Self>> {
        let modules = cached::modules("PLEXUS_BROWSER_CACHE", "browser", LOCK_FILE);
        let node = McpTools::find().map(|tools| tools.node()).or_else(|| on_path("node"));
        let (Some(modules), Some(node), Some(chromium)) = (modules, node, chromium()) else {
            return Ok(None);
        };
        let mut command = Command::new(node);
        command.arg(DRIVER).args([modules, chromium]);
        command.env_clear().env("HOME", std::env::temp_dir()).current_dir(std::env::temp_dir());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("node")?;
        let stdin = Mutex::new(child.stdin.take().context("stdin")?);
        let stdout = child.stdout.take().context("stdout")?;
        let waiting = Waiting::default();
        let answered = Arc::clone(&waiting);
        thread::spawn(move || {
            hand_out(stdout, &answered);
            // Dropping the senders fails all requests that still wait.
            answered.lock().unwrap_or_else(PoisonError::into_inner).clear();
            let _ = child.wait();
        });
        Ok(Some(Self { stdin, waiting, number: AtomicU64::new(0) }))
    }

    /// Sends a request. The channel returns the response.
    fn send(&self, mut request: Value) -> anyhow::Result<oneshot::Receiver<Value>> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        request["id"] = json!(number);
        let (answer, answered) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(number, answer);
        let mut stdin = self.stdin.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(stdin, "{request}").context("the driver of the browser has ended")?;
        Ok(answered)
    }

    async fn ask(&self, request: Value) -> anyhow::Result<Value> {
        let answered = tokio::time::timeout(LIMIT, self.send(request)?).await;
        let mut answer = answered
            .context("the browser does not answer")?
            .context("the driver of the browser has ended")?;
        if let Some(error) = answer["error"].as_str() {
            bail!("{error}");
        }
        Ok(answer["ok"].take())
    }
}

fn hand_out(stdout: ChildStdout, waiting: &Waiting) {
    for line in BufReader::new(stdout).lines() {
        let Ok(answer) =
            line.map_err(anyhow::Error::from).and_then(|line| Ok(serde_json::from_str::<Value>(&line)?))
        else {
            return;
        };
        let number = answer["id"].as_u64().unwrap_or(u64::MAX);
        let asked = waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        if let Some(asked) = asked {
            let _ = asked.send(answer);
        }
    }
}

/// The path of Chromium: `$PLEXUS_CHROMIUM`, else a program in `PATH`.
fn chromium() -> Option<PathBuf> {
    let chosen = std::env::var_os("PLEXUS_CHROMIUM").filter(|path| !path.is_empty()).map(PathBuf::from);
    chosen.or_else(|| CHROMIUM.iter().find_map(|name| on_path(name)))
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| Path::is_file(file))
}

/// The size and colour scheme of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Width and height of the window.
    pub size: (u32, u32),
    /// `light` or `dark`.
    pub scheme: &'static str,
}

impl Look {
    /// A wide window with the light scheme.
    pub const WIDE: Self = Self { size: (1280, 800), scheme: "light" };
    /// The window of a usual laptop.
    pub const LAPTOP: Self = Self { size: (1440, 900), scheme: "light" };
    /// A phone with the light scheme.
    pub const PHONE: Self = Self { size: (390, 844), scheme: "light" };

    /// The same size with the dark scheme.
    #[must_use]
    pub fn dark(self) -> Self {
        Self { scheme: "dark", ..self }
    }
}

/// Where a browser stores its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile<'a> {
    /// In memory, in a browser that is shared with other tests.
    Private,
    /// As `Private`, but without service workers, as in some private windows.
    WithoutWorkers,
    /// In this directory, with a separate browser.
    OnDisk(&'a Path),
}

/// A test's own browser context. It shares nothing with other tests. It starts with one page, and code may open more.
pub struct Window {
    driver: &'static Driver,
    name: String,
    closed: bool,
}

impl Window {
    /// Opens a window whose pages may send requests only to these origins. If there is no browser or no console, reports the test as skipped and returns `None`.
    ///
    /// # Errors
    /// If the browser cannot be started.
    pub async fn open(test: &str, origins: &[&str], look: Look) -> anyhow::Result<Option<Self>> {
        Self::open_with(test, origins, look, Profile::Private).await
    }

    /// As [`Window::open`], with this profile.
    ///
    /// # Errors
    /// As [`Window::open`].
    pub async fn open_with(
        test: &str,
        origins: &[&str],
        look: Look,
        profile: Profile<'_>,
    ) -> anyhow::Result<Option<Self>> {
        if let Some(why) = plexus_console::missing() {
            plexus_testkit::skip(test, &format!("web console: {why}"));
            return Ok(None);
        }
        let Some(driver) = driver()? else {
            plexus_testkit::skip(test, "Chromium, or the Playwright that drives it");
            return Ok(None);
        };
        let name = uuid::Uuid::new_v4().to_string();
        let (width, height) = look.size;
        let options = json!({
            "viewport": {"width": width, "height": height}, "colorScheme": look.scheme,
            "isMobile": width < 500, "hasTouch": width < 500, "reducedMotion": "reduce", "locale": "en-GB", "timezoneId": "UTC",
            "serviceWorkers": if profile == Profile::WithoutWorkers { "block" } else { "allow" },
        });
        let folder = if let Profile::OnDisk(folder) = profile { Some(folder) } else { None };
        let request =
            json!({"op": "open", "window": name, "origins": origins, "options": options, "profile": folder});
        driver.ask(request).await?;
        Ok(Some(Self { driver, name, closed: false }))
    }

    /// Runs code in the first page. The code is the body of an async function with `page`, `context`, `pages`,
    /// `args`, `axe` (its source), `hands` (keyboard or touch), `picture` (writes a file), `readable` (the text on the screen) and
    /// `tasks` (their CPU time) in scope.
    ///
    /// # Errors
    /// If the code throws. The error contains the text of the page.
    pub async fn run(&self, code: &str, args: Value) -> anyhow::Result<Value> {
        self.run_in(0, code, args).await
    }

    /// Runs code in the page with this number. Pages are numbered in the order in which they were opened.
    ///
    /// # Errors
    /// As [`Window::run`].
    pub async fn run_in(&self, page: usize, code: &str, args: Value) -> anyhow::Result<Value> {
        let request = json!({"op": "run", "window": self.name, "page": page, "code": code, "args": args});
        self.driver.ask(request).await.with_context(|| code.to_owned())
    }

    /// Closes the window.
    ///
    /// # Errors
    /// If a page sent a request to another host, violated its policy, threw an exception or opened a dialog.
    pub async fn close(mut self) -> anyhow::Result<()> {
        self.closed = true;
        let faults = self.driver.ask(json!({"op": "close", "window": self.name})).await?;
        ensure!(faults == json!([]), "{faults:#}");
        Ok(())
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if !self.closed {
            let _ = self.driver.send(json!({"op": "close", "window": self.name}));
        }
    }
}
