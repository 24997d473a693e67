//! A person at the console: a world, a browser window, and the steps that all tests share: sign in, wait for an approval, open it,
//! answer it.

use std::io::Write as _;

use anyhow::{Context as _, ensure};
use plexus_e2e::browser::{Look, Window};
use plexus_e2e::{World, text};
use plexus_testkit::binaries;
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};
use tokio::process::Command;

/// A world, and a window that shows its console.
pub(crate) struct ConsolePage {
    pub(crate) world: World,
    pub(crate) window: Window,
}

impl ConsolePage {
    /// Opens a window and signs in. `None` if there is no browser.
    pub(crate) async fn open(world: World, test: &str, look: Look) -> anyhow::Result<Option<Self>> {
        let Some(window) = Window::open(test, &[world.hub.url()], look).await? else { return Ok(None) };
        let console = Self { world, window };
        console.sign_in(0).await?;
        Ok(Some(console))
    }

    /// Signs in on the page with this number, with a link of `plexus console`.
    pub(crate) async fn sign_in(&self, page: usize) -> anyhow::Result<()> {
        let code = "await page.goto(args); await page.locator('[data-state=live]').waitFor()";
        self.window.run_in(page, code, json!(link(&self.world).await?)).await.map(drop)
    }

    /// Runs code in the first page.
    pub(crate) async fn run(&self, code: &str, args: Value) -> anyhow::Result<Value> {
        self.window.run(code, args).await
    }

    /// Opens a view by its address, without a reload.
    pub(crate) async fn go(&self, hash: &str) -> anyhow::Result<()> {
        self.run("await page.evaluate((hash) => { location.hash = hash; }, args)", json!(hash))
            .await
            .map(drop)
    }

    /// Waits until an approval with this text is shown and can be answered. An answer right after it appears is ignored.
    pub(crate) async fn shows_approval(&self, says: &str) -> anyhow::Result<()> {
        let code = "await page.locator('article[data-status=pending][data-ready=true]').filter({hasText: args}).waitFor()";
        self.run(code, json!(says)).await.map(drop)
    }

    /// Clicks the button with this name.
    pub(crate) async fn click(&self, button: &str) -> anyhow::Result<()> {
        let code = "await page.getByRole('button', {name: args, exact: true}).click()";
        self.run(code, json!(button)).await.map(drop)
    }

    /// Presses these keys in order.
    pub(crate) async fn press(&self, keys: &[&str]) -> anyhow::Result<()> {
        self.run("for (const key of args) await page.keyboard.press(key)", json!(keys)).await.map(drop)
    }

    /// Waits until no approval is open.
    pub(crate) async fn shows_no_approvals(&self) -> anyhow::Result<()> {
        self.run("await page.getByText('No open approvals.').waitFor()", json!({})).await.map(drop)
    }
}

/// Prints a figure even if the test's output is captured.
pub(crate) fn print_figure(figure: &str) {
    let _ = writeln!(std::io::stderr(), "console: {figure}");
}

/// The output of `plexus console --print`.
pub(crate) async fn link(world: &World) -> anyhow::Result<String> {
    let mut command = Command::new(binaries::plexus()?);
    command.args(["console", "--print", "--data-dir"]).arg(world.hub.data_dir());
    command.env_clear().env("HOME", &world.home).kill_on_drop(true);
    let output = command.output().await.context("plexus console")?;
    ensure!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout)?;
    Ok(printed.trim().to_owned())
}

/// A session whose approvals an agent above it is asked first. Returns it when it has started its prompt.
pub(crate) async fn child_of_an_agent(world: &World, prompt: &str) -> anyhow::Result<String> {
    let lead = world.create("lead", json!({"hub_tools": true, "approve_scope": ["*"]})).await?;
    let given = world.call("loopback.configure", json!({"session_id": lead})).await?;
    let header = text(&given["mcp_config"]["mcpServers"]["plexus"]["headers"]["Authorization"]);
    // The call also shows that the agent is present.
    let agent = Rpc::new(world.hub.url(), header.trim_start_matches("Bearer "));
    let child =
        json!({"name": "child", "working_dir": world.work, "prompt": prompt, "escalate_after_secs": 3600});
    Ok(text(&agent.call("claudecode.create", child).await?["id"]))
}

/// Declares one test of an `async fn(&mut ConsolePage) -> anyhow::Result<()>` per pinned CLI, on the control channel.
macro_rules! over_clis {
    ($($name:ident),* $(,)?) => {$(
        mod $name {
            #[tokio::test]
            #[ignore = "slow: the console depends on the hub, not on the CLI version"]
            async fn cli_197() -> anyhow::Result<()> {
                $crate::console::signed_in_page::with_cli("2.1.197", concat!(stringify!($name), "::cli_197"), super::$name).await
            }
            #[tokio::test]
            async fn cli_325() -> anyhow::Result<()> {
                $crate::console::signed_in_page::with_cli("2.1.325", concat!(stringify!($name), "::cli_325"), super::$name).await
            }
        }
    )*};
}
pub(crate) use over_clis;

/// Runs a test with this CLI, and checks that its pages reported no error.
pub(crate) async fn with_cli(
    version: &'static str,
    test: &str,
    does: impl AsyncFnOnce(&mut ConsolePage) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    use plexus_e2e::{Channel, DoorKind, Setup};
    let Some(world) = Setup::cli(version, Channel::Control, DoorKind::Rpc).world(test).await? else {
        return Ok(());
    };
    let Some(mut console) = ConsolePage::open(world, test, Look::WIDE).await? else { return Ok(()) };
    does(&mut console).await?;
    console.window.close().await
}
