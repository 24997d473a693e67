//! A person at the console: a world, a window on it, and what a person does in each test alike: sign in, wait for a question,
//! look at it, answer.

use std::io::Write as _;

use anyhow::{Context as _, ensure};
use plexus_e2e::World;
use plexus_e2e::browser::{Look, Window};
use plexus_testkit::binaries;
use serde_json::{Value, json};
use tokio::process::Command;

/// A world and a window on it.
pub(crate) struct Desk {
    pub(crate) world: World,
    pub(crate) window: Window,
}

impl Desk {
    /// Opens a window and signs in; `None` where there is no browser.
    pub(crate) async fn open(world: World, test: &str, look: Look) -> anyhow::Result<Option<Self>> {
        let Some(window) = Window::open(test, &[world.hub.url()], look).await? else { return Ok(None) };
        let desk = Self { world, window };
        desk.sign_in(0).await?;
        Ok(Some(desk))
    }

    /// Signs the page with this number in, by a link of `plexus console`.
    pub(crate) async fn sign_in(&self, page: usize) -> anyhow::Result<()> {
        let code = "await page.goto(args); await page.locator('[data-state=live]').waitFor()";
        self.window.run_in(page, code, json!(link(&self.world).await?)).await.map(drop)
    }

    /// Runs code in the first page.
    pub(crate) async fn run(&self, code: &str, args: Value) -> anyhow::Result<Value> {
        self.window.run(code, args).await
    }

    /// Goes to a view, by its address, without loading the page again.
    pub(crate) async fn go(&self, hash: &str) -> anyhow::Result<()> {
        self.run("await page.evaluate((hash) => { location.hash = hash; }, args)", json!(hash))
            .await
            .map(drop)
    }

    /// Waits until a question that says this is shown, and looks at it: an answer that comes at once does not count.
    pub(crate) async fn look_at(&self, says: &str) -> anyhow::Result<()> {
        let code = "await page.locator('article[data-status=pending][data-ready=true]').filter({hasText: args}).waitFor()";
        self.run(code, json!(says)).await.map(drop)
    }

    /// Clicks the button of this name.
    pub(crate) async fn click(&self, button: &str) -> anyhow::Result<()> {
        let code = "await page.getByRole('button', {name: args, exact: true}).click()";
        self.run(code, json!(button)).await.map(drop)
    }

    /// Presses keys, one after the other.
    pub(crate) async fn press(&self, keys: &[&str]) -> anyhow::Result<()> {
        self.run("for (const key of args) await page.keyboard.press(key)", json!(keys)).await.map(drop)
    }

    /// Waits until nothing is asked.
    pub(crate) async fn nothing_open(&self) -> anyhow::Result<()> {
        self.run("await page.getByText('No open approvals.').waitFor()", json!({})).await.map(drop)
    }
}

/// Tells a figure to whoever runs the tests, also where their output is kept back.
pub(crate) fn tell(figure: &str) {
    let _ = writeln!(std::io::stderr(), "console: {figure}");
}

/// What `plexus console --print` prints.
pub(crate) async fn link(world: &World) -> anyhow::Result<String> {
    let mut command = Command::new(binaries::plexus()?);
    command.args(["console", "--print", "--data-dir"]).arg(world.hub.data_dir());
    command.env_clear().env("HOME", &world.home).kill_on_drop(true);
    let output = command.output().await.context("plexus console")?;
    ensure!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout)?;
    Ok(printed.trim().to_owned())
}

/// Makes one test of an `async fn(&mut Desk) -> anyhow::Result<()>` per pinned CLI, on the control channel.
macro_rules! over_clis {
    ($($name:ident),* $(,)?) => {$(
        mod $name {
            #[tokio::test]
            async fn cli_197() -> anyhow::Result<()> {
                $crate::desk::with_cli("2.1.197", concat!(stringify!($name), "::cli_197"), super::$name).await
            }
            #[tokio::test]
            async fn cli_325() -> anyhow::Result<()> {
                $crate::desk::with_cli("2.1.325", concat!(stringify!($name), "::cli_325"), super::$name).await
            }
        }
    )*};
}
pub(crate) use over_clis;

/// Does a test at a desk with this CLI, and sees to it that nothing was wrong with its pages.
pub(crate) async fn with_cli(
    version: &'static str,
    test: &str,
    does: impl AsyncFnOnce(&mut Desk) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    use plexus_e2e::{Channel, DoorKind, Setup};
    let Some(world) = Setup::cli(version, Channel::Control, DoorKind::Rpc).world(test).await? else {
        return Ok(());
    };
    let Some(mut desk) = Desk::open(world, test, Look::WIDE).await? else { return Ok(()) };
    does(&mut desk).await?;
    desk.window.close().await
}
