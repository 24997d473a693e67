//! Conformance of our MCP server. The inspector uses the hub's tools over HTTP and through the relay. The server scenarios of the
//! conformance suite pass with the suite's own tools (`plexus-conformance`), and with the hub's where they need no tools.
//! `tests/conformance/` lists the expected failures with reasons. A test fails if a scenario newly fails or newly passes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use anyhow::{Context as _, bail, ensure};
use plexus_e2e::mcp_tools::McpTools;
use plexus_e2e::{LIMIT, Setup, World};
use plexus_testkit::binaries;
use plexus_testkit::forward::Forwarder;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// The exit code of the inspector after a tool call that failed.
const FAILED: i32 = 5;

/// How the inspector reaches the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    /// Streamable HTTP, with the operator's token.
    Http,
    /// `plexus mcp` on stdio, which finds `hub.sock` itself.
    Stdio,
}

/// The inspector, connected to a hub.
struct Inspector<'a> {
    tools: &'a McpTools,
    world: &'a World,
    way: Transport,
    /// `legacy` starts with `initialize`, `modern` with `server/discover`.
    era: &'a str,
}

impl Inspector<'_> {
    async fn run(&self, args: &[&str]) -> anyhow::Result<Output> {
        let hub = &self.world.hub;
        let mut all = vec!["--protocol-era", self.era, "--format", "json", "--quiet"];
        all.extend(args);
        let url = format!("{}/mcp", hub.url());
        let token = format!("Authorization: Bearer {}", hub.token()?);
        let (plexus, data_dir) = (binaries::plexus()?, hub.data_dir());
        match self.way {
            Transport::Http => all.extend(["--transport", "http", "--header", &token, "--", &url]),
            Transport::Stdio => {
                let [plexus, data_dir] =
                    [&plexus, data_dir].map(|path: &Path| path.to_str().unwrap_or_default());
                all.extend(["--transport", "stdio", "--", plexus, "mcp", "--data-dir", data_dir]);
                all.extend(["--as", "inspector"]);
            }
        }
        self.tools.inspector(&self.world.home, &all).await
    }

    async fn list(&self) -> anyhow::Result<Vec<String>> {
        let listed = result(&self.run(&["--method", "tools/list", "--strict"]).await?, 0)?;
        let tools = listed["tools"].as_array().context("tools")?;
        Ok(tools.iter().map(|tool| plexus_e2e::text(&tool["name"])).collect())
    }

    /// Calls a tool. Returns its text as JSON.
    async fn call(&self, tool: &str, params: Value) -> anyhow::Result<Value> {
        self.call_to(tool, params, 0).await
    }

    /// Calls a tool that fails.
    async fn fail(&self, tool: &str, params: Value) -> anyhow::Result<Value> {
        self.call_to(tool, params, FAILED).await
    }

    async fn call_to(&self, tool: &str, params: Value, code: i32) -> anyhow::Result<Value> {
        let params = params.to_string();
        let args = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", &params];
        let called = result(&self.run(&args).await?, code)?;
        assert_eq!(called["isError"], code == FAILED, "{called}");
        Ok(serde_json::from_str(called["content"][0]["text"].as_str().context("a text")?)?)
    }
}

/// The result in the inspector's output.
fn result(output: &Output, code: i32) -> anyhow::Result<Value> {
    ensure!(output.status.code() == Some(code), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).with_context(|| format!("{output:?}"))?;
    Ok(said["result"].clone())
}

async fn the_inspector_uses_the_tools(test: &str, way: Transport, era: &str) -> anyhow::Result<()> {
    let Some(tools) = McpTools::require(test) else { return Ok(()) };
    let world = Setup::scripted().world(test).await?.context("a world")?;
    let inspector = Inspector { tools: &tools, world: &world, way, era };
    let names = inspector.list().await?;
    for name in ["claudecode_create", "claudecode_list", "loopback_pending", "loopback_respond"] {
        assert!(names.iter().any(|listed| listed == name), "{name} in {names:?}");
    }
    assert!(!names.iter().any(|name| name == "loopback_permit"), "that tool is for children: {names:?}");

    let created =
        inspector.call("claudecode_create", json!({"name": "a", "working_dir": world.work})).await?;
    assert_eq!(created["type"], "created");
    let listed = inspector.call("claudecode_list", json!({})).await?;
    assert_eq!(listed["sessions"][0]["id"], created["id"], "{listed}");
    let pending = inspector.call("loopback_pending", json!({})).await?;
    assert_eq!(pending, json!({"type": "ok", "approvals": []}));
    let failed = inspector.fail("claudecode_get", json!({"name": "nobody"})).await?;
    assert_eq!(failed["type"], "session_not_found");
    Ok(())
}

#[tokio::test]
async fn the_inspector_uses_the_tools_over_http() -> anyhow::Result<()> {
    the_inspector_uses_the_tools("the_inspector_uses_the_tools_over_http", Transport::Http, "legacy").await
}

#[tokio::test]
async fn the_inspector_uses_the_tools_over_http_without_initialize() -> anyhow::Result<()> {
    let name = "the_inspector_uses_the_tools_over_http_without_initialize";
    the_inspector_uses_the_tools(name, Transport::Http, "modern").await
}

#[tokio::test]
async fn the_inspector_uses_the_tools_through_the_relay() -> anyhow::Result<()> {
    the_inspector_uses_the_tools("the_inspector_uses_the_tools_through_the_relay", Transport::Stdio, "legacy")
        .await
}

#[tokio::test]
async fn the_inspector_uses_the_tools_through_the_relay_without_initialize() -> anyhow::Result<()> {
    let name = "the_inspector_uses_the_tools_through_the_relay_without_initialize";
    the_inspector_uses_the_tools(name, Transport::Stdio, "modern").await
}

/// A server with the hub's MCP door and the suite's own tools.
struct ConformanceHub {
    forwarder: Forwarder,
    home: TempDir,
    /// It exits when its stdin is closed, which happens when this is dropped.
    _process: Child,
}

impl ConformanceHub {
    async fn start() -> anyhow::Result<Self> {
        let home = TempDir::new()?;
        let data_dir = home.path().join("data");
        let mut command = Command::new(env!("CARGO_BIN_EXE_plexus-conformance"));
        command.arg(&data_dir).env_clear().env("HOME", home.path()).kill_on_drop(true);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(process.stdout.take().context("stdout")?).lines();
        let ready = timeout(LIMIT, lines.next_line()).await??.context("it ended")?;
        let url = ready.strip_prefix("plexus listening on ").with_context(|| ready.clone())?;
        let token = std::fs::read_to_string(data_dir.join("operator.token"))?;
        let forwarder = Forwarder::start(url, token.trim()).await?;
        Ok(Self { forwarder, home, _process: process })
    }
}

/// The results of one run of the suite.
#[derive(Debug, PartialEq, Eq)]
struct Figures {
    passed: usize,
    failed_as_expected: BTreeSet<String>,
}

impl Figures {
    /// Parses the suite's output. Fails if a result differs from the baseline.
    fn of(output: &Output) -> anyhow::Result<Self> {
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(
            output.status.success(),
            "{}\n{said}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        let passed = said.lines().find_map(passed_in).with_context(|| format!("no figures in:\n{said}"))?;
        let failed = said.lines().filter_map(|line| line.strip_prefix("  ~ ")).map(str::to_owned);
        Ok(Self { passed, failed_as_expected: failed.collect() })
    }

    #[expect(clippy::print_stdout, reason = "the test prints its figures")]
    fn show(&self, of_what: &str) {
        let expected = self.failed_as_expected.len();
        println!("conformance {of_what}: {} checks passed, {expected} failed as expected", self.passed);
    }
}

/// `Total: 5 passed, 0 failed` of a suite, `Passed: 5/5, 0 failed, 0 warnings` of a scenario.
fn passed_in(line: &str) -> Option<usize> {
    let figure = line.strip_prefix("Total: ").or_else(|| line.strip_prefix("Passed: "))?;
    figure.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn baseline(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance").join(format!("{name}.yml"))
}

/// The entries of a baseline.
fn expected(name: &str) -> anyhow::Result<BTreeSet<String>> {
    let text = std::fs::read_to_string(baseline(name))?;
    Ok(text.lines().filter_map(|line| line.strip_prefix("  - ")).map(str::to_owned).collect())
}

/// Runs every scenario of one version of the protocol against the suite's own tools.
async fn suite(test: &str, version: &str, passed: usize) -> anyhow::Result<()> {
    let Some(tools) = McpTools::require(test) else { return Ok(()) };
    let hub = ConformanceHub::start().await?;
    let url = format!("{}/mcp", hub.forwarder.url());
    let baseline = baseline(version);
    let args = ["--url", &url, "--suite", "all", "--spec-version", version, "--expected-failures"];
    let args = [&args[..], &[baseline.to_str().context("a path")?]].concat();
    let figures = Figures::of(&tools.conformance(hub.home.path(), &args).await?)?;
    figures.show(version);
    // The suite counts a removed check as an expected failure, so the list of failures is compared, too.
    assert_eq!(figures, Figures { passed, failed_as_expected: expected(version)? });
    Ok(())
}

#[tokio::test]
async fn the_door_conforms_to_the_protocol_with_initialize() -> anyhow::Result<()> {
    suite("the_door_conforms_to_the_protocol_with_initialize", "2025-11-25", 63).await
}

#[tokio::test]
async fn the_door_conforms_to_the_protocol_without_initialize() -> anyhow::Result<()> {
    suite("the_door_conforms_to_the_protocol_without_initialize", "2026-07-28", 153).await
}

/// The scenarios that do not need the suite's own tools.
const WITHOUT_FIXTURES: [(&str, &str); 10] = [
    ("2025-11-25", "server-initialize"),
    ("2025-11-25", "ping"),
    ("2025-11-25", "tools-list"),
    ("2025-11-25", "dns-rebinding-protection"),
    ("2026-07-28", "server-stateless"),
    ("2026-07-28", "tools-list"),
    ("2026-07-28", "server-sse-multiple-streams"),
    ("2026-07-28", "http-header-validation"),
    ("2026-07-28", "dns-rebinding-protection"),
    ("2026-07-28", "input-required-result-unsupported-methods"),
];

#[tokio::test]
async fn the_hub_itself_conforms() -> anyhow::Result<()> {
    let Some(tools) = McpTools::require("the_hub_itself_conforms") else { return Ok(()) };
    let world = Setup::scripted().world("").await?.context("a world")?;
    let forwarder = Forwarder::start(world.hub.url(), &world.hub.token()?).await?;
    let url = format!("{}/mcp", forwarder.url());
    let baseline = baseline("hub");
    let baseline = baseline.to_str().context("a path")?;
    let mut all = Figures { passed: 0, failed_as_expected: BTreeSet::new() };
    for (version, scenario) in WITHOUT_FIXTURES {
        let args = ["--url", &url, "--scenario", scenario, "--spec-version", version];
        let args = [&args[..], &["--expected-failures", baseline]].concat();
        let output = tools.conformance(&world.home, &args).await?;
        let figures = Figures::of(&output).with_context(|| format!("{scenario} of {version}"))?;
        if figures.passed == 0 {
            bail!("{scenario} of {version} looked at nothing: {output:?}");
        }
        all.passed += figures.passed;
        all.failed_as_expected.extend(figures.failed_as_expected);
    }
    all.show("of the hub itself");
    assert_eq!(all.failed_as_expected, expected("hub")?);
    Ok(())
}
