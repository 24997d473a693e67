//! A real `claude` as the parent: it has Plexus as an MCP server, over `plexus mcp`, and supervises a real child of
//! the same version through it. Its model is scripted like a supervisor: whatever the last tool told decides what it
//! does next.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, bail};
use plexus_e2e::{Channel, DoorKind, LIMIT, Setup, World, events, is_alive, text, until};
use plexus_testkit::hubproc::{HubOptions, HubProcess};
use plexus_testkit::model::{ScriptedModel, Step, tool_results};
use plexus_testkit::{binaries, clean_env, require_claude};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// Where a parent works and what it talks to.
struct Place<'a> {
    claude: PathBuf,
    home: &'a Path,
    work: &'a Path,
    data: &'a Path,
    model: &'a ScriptedModel,
}

impl<'a> Place<'a> {
    fn of(world: &'a World, test: &str) -> anyhow::Result<Self> {
        let version = world.setup.cli.context("a real CLI")?;
        Ok(Self {
            claude: require_claude(version, test).context("it was there a moment ago")?,
            home: &world.home,
            work: &world.work,
            data: world.hub.data_dir(),
            model: &world.model,
        })
    }
}

/// A `claude -p` that has the tools of the hub, may use them unasked, and nothing else.
struct Parent {
    process: Child,
}

impl Parent {
    fn start(place: &Place<'_>, prompt: &str) -> anyhow::Result<Self> {
        let server = json!({
            "type": "stdio",
            "command": binaries::plexus()?,
            "args": ["mcp", "--data-dir", place.data],
        });
        let mut command = Command::new(&place.claude);
        command.args(["-p", prompt, "--output-format", "stream-json", "--verbose", "--setting-sources="]);
        command.args(["--strict-mcp-config", "--allowedTools", "mcp__plexus"]);
        command.arg("--mcp-config").arg(json!({"mcpServers": {"plexus": server}}).to_string());
        command.env_clear().envs(clean_env(place.home, &place.model.url())).current_dir(place.work);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        Ok(Self { process: command.spawn()? })
    }

    /// Waits for its end; all it wrote.
    async fn ended(mut self) -> anyhow::Result<Vec<Value>> {
        let stdout = self.process.stdout.take().context("stdout")?;
        let mut stderr = self.process.stderr.take().context("stderr")?;
        let reading = async {
            let mut lines = BufReader::new(stdout).lines();
            let mut told = Vec::new();
            while let Some(line) = lines.next_line().await? {
                told.push(serde_json::from_str::<Value>(&line)?);
            }
            anyhow::Ok(told)
        };
        let mut complaints = String::new();
        let (told, _) = tokio::time::timeout(LIMIT, async {
            tokio::join!(reading, stderr.read_to_string(&mut complaints))
        })
        .await
        .context("the parent does not end")?;
        let told = told?;
        if !self.process.wait().await?.success() {
            bail!("the parent failed: {complaints}\n{told:#?}");
        }
        Ok(told)
    }
}

/// What the supervisor answers to each question of its child.
#[derive(Debug, Clone, Copy)]
enum Verdict {
    Allow,
    Deny,
}

/// A question as the parent got it, and whether the file of the child's command was there by then.
#[derive(Debug, Clone)]
struct Asked {
    approval: Value,
    had_run: bool,
}

/// The script of a parent, and what it saw.
struct Supervisor {
    verdict: Verdict,
    create: Value,
    prompt: String,
    file: PathBuf,
    asked: Mutex<Vec<Asked>>,
}

impl Supervisor {
    fn new(verdict: Verdict, work: &Path, channel: Channel) -> Arc<Self> {
        let channel = if channel == Channel::Control { "control" } else { "mcp" };
        Arc::new(Self {
            verdict,
            create: json!({"name": "child", "working_dir": work, "channel": channel}),
            prompt: "CHILD-WORK: make the file".to_owned(),
            file: work.join("made.txt"),
            asked: Mutex::default(),
        })
    }

    /// One answer of the parent's model, as often as it takes.
    fn script(self: &Arc<Self>) -> Vec<Step> {
        let supervisor = Arc::clone(self);
        vec![Step::from_fn(move |request| supervisor.next(request)); 30]
    }

    fn next(&self, request: &Value) -> Step {
        let results: Vec<Value> = tool_results(request)
            .iter()
            .map(|result| serde_json::from_str(&result.text).unwrap_or_else(|_| json!({"text": result.text})))
            .collect();
        let Some(last) = results.last() else { return call("claudecode_create", self.create.clone()) };
        if let Some(finished) = last["finished"].get(0) {
            return Step::text(format!(
                "My child {} said: {}",
                text(&finished["status"]),
                text(&finished["result"])
            ));
        }
        if let Some(approval) = last["approvals"].get(0) {
            let asked = Asked { approval: approval.clone(), had_run: self.file.exists() };
            self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
            let approval_id = &approval["id"];
            return call(
                "loopback_respond",
                match self.verdict {
                    Verdict::Allow => json!({"approval_id": approval_id, "approve": true}),
                    Verdict::Deny => {
                        json!({"approval_id": approval_id, "approve": false, "message": "not today"})
                    }
                },
            );
        }
        match last["type"].as_str() {
            Some("created") => {
                call("claudecode_chat_async", json!({"session_id": last["id"], "prompt": self.prompt}))
            }
            // The first wait tells at once where things stand; the next ones wait for what is newer.
            Some("started") => call("loopback_wait", json!({})),
            Some("ok") => {
                let cursor = results.iter().rev().find_map(|result| result["cursor"].as_u64());
                call("loopback_wait", json!({"cursor": cursor, "timeout_ms": 30_000}))
            }
            _ => Step::text(format!("I do not understand: {last}")),
        }
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn call(tool: &str, input: Value) -> Step {
    Step::tool(format!("mcp__plexus__{tool}"), input)
}

fn said(told: &[Value]) -> String {
    text(&told.last().unwrap_or(&Value::Null)["result"])
}

/// The parent's own session, as its CLI names it.
fn session_of(told: &[Value]) -> Value {
    told.iter().find(|line| line["subtype"] == "init").map_or(Value::Null, |line| line["session_id"].clone())
}

fn child_script() -> Vec<Step> {
    let bash = json!({"command": "touch made.txt && echo made-it", "description": "make the file"});
    vec![Step::tool("Bash", bash), Step::text("The child is done.")]
}

#[tokio::test]
async fn explore() -> anyhow::Result<()> {
    for version in ["2.1.197", "2.1.325"] {
        let Some(world) = Setup::cli(version, Channel::Control, DoorKind::Rpc).world("explore").await? else {
            return Ok(());
        };
        let supervisor = Supervisor::new(Verdict::Allow, &world.work, Channel::Control);
        world.model.script("SUPERVISE", supervisor.script());
        world.model.script("CHILD-WORK", child_script());
        let told = Parent::start(&Place::of(&world, "explore")?, "SUPERVISE a child")?.ended().await?;
        for line in &told {
            let s = line.to_string();
            println!("{}", &s[..s.len().min(900)]);
        }
        println!("{:?} {} {}", supervisor.asked(), said(&told), session_of(&told));
    }
    Ok(())
}

#[tokio::test]
async fn explore_nohub() -> anyhow::Result<()> {
    for version in ["2.1.197", "2.1.325"] {
        for away in [1u64, 8, 40] {
            let dir = tempfile::TempDir::new()?;
            let [home, work, data] = ["home", "work", "data"].map(|name| dir.path().join(name));
            for folder in [&home, &work] {
                std::fs::create_dir(folder)?;
            }
            let model = ScriptedModel::start().await?;
            let claude = require_claude(version, "x").unwrap();
            model.script("CHILD-WORK", child_script());
            let supervisor = Supervisor::new(Verdict::Allow, &work, Channel::Control);
            model.script("SUPERVISE", supervisor.script());
            let place =
                Place { claude: claude.clone(), home: &home, work: &work, data: &data, model: &model };
            let t = std::time::Instant::now();
            let parent = Parent::start(&place, "SUPERVISE a child")?;
            let r = tokio::join!(
                parent.ended(),
                async {
                    tokio::time::sleep(std::time::Duration::from_secs(away)).await;
                    HubProcess::start(HubOptions {
                        data_dir: data.clone(),
                        claude: claude.clone(),
                        extra_args: vec![],
                        env: clean_env(&home, &model.url()),
                    })
                    .await
                },
                async {
                    for _ in 0..600 {
                        if !model.requests().is_empty() {
                            println!("{version} {away} first request at {:?}", t.elapsed());
                            break;
                        }
                        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                    }
                }
            );
            println!("{version} {away} {:?} {:?}", r.0.as_ref().map(|t| said(t)), t.elapsed());
            for q in model.requests() {
                println!(
                    "  req {:?} {} tools plexus={}",
                    q.marker,
                    q.step,
                    q.body["tools"].to_string().matches("mcp__plexus").count()
                );
            }
            if let Ok(told) = &r.0 {
                println!("   init {}", told[0]["mcp_servers"]);
            }
        }
    }
    Ok(())
}
