//! The supervised child: a real Claude Code, and a scripted model that repeats three calls: it reads a source file, edits the file, and runs
//! the tests. By default Claude Code's rules allow the reading; the other two need approval.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use plexus_testkit::clean_env;
use plexus_testkit::executable;
use plexus_testkit::hub_process::{HubOptions, HubProcess};
use plexus_testkit::model::{ScriptedModel, Step, Tool};
use plexus_testkit::rpc::{McpClient, Rpc};
use serde_json::{Value, json};

/// The text in the child's prompt that selects the script of the model.
const MARKER: &str = "SUPERVISED-CHILD";
/// The lines of a source file, about 9 KB.
const SOURCE_LINES: usize = 160;
/// The lines that the tests print, about 2 KB.
const TEST_LINES: usize = 30;

/// A hub, a model, and the directories of a child.
pub(super) struct Child {
    hub: HubProcess,
    /// Answers the child while it exists.
    _model: ScriptedModel,
    work: PathBuf,
}

impl Child {
    /// Prepares a child that makes this many calls.
    pub(super) async fn prepare(claude: PathBuf, dir: &Path, calls: usize) -> anyhow::Result<Self> {
        let [home, data_dir, work] = ["home", "data", "work"].map(|name| dir.join(name));
        for folder in [&home, &data_dir, &work] {
            std::fs::create_dir(folder)?;
        }
        std::fs::write(data_dir.join("plexus.toml"), "limits.asks_per_minute = 1000000\n")?;
        let tests = format!(
            "#!/bin/sh\nfor n in $(seq {TEST_LINES}); do echo \"test parser::record_$1::case_$n ... ok (0.0$n s, 12 assertions)\"; done\n"
        );
        executable::write(&work.join("run-tests"), &tests)?;
        let model = ScriptedModel::start().await?;
        let mut steps: Vec<Step> = Vec::new();
        for call in 0..calls {
            steps.push(step(&work, call)?);
        }
        steps.push(Step::text("All parts are changed and tested."));
        model.script(MARKER, steps);
        let env = clean_env(&home, &model.url());
        let hub = HubProcess::start(HubOptions { data_dir, claude, extra_args: Vec::new(), env }).await?;
        Ok(Self { hub, _model: model, work })
    }

    /// The MCP client of an agent that may create and supervise children.
    pub(super) async fn parent(&self) -> anyhow::Result<McpClient> {
        let rpc = Rpc::new(self.hub.url(), &self.hub.token()?);
        let create =
            json!({"name": "parent", "working_dir": self.work, "hub_tools": true, "approve_scope": ["*"]});
        let session = rpc.call("claudecode.create", create).await?["id"].clone();
        let configured = rpc.call("loopback.configure", json!({"session_id": session})).await?;
        let header = &configured["mcp_config"]["mcpServers"]["plexus"]["headers"]["Authorization"];
        let token = header.as_str().and_then(|header| header.strip_prefix("Bearer ")).context("a token")?;
        Ok(McpClient::connect(self.hub.url(), token).await?)
    }

    /// The arguments with which the parent creates the child.
    pub(super) fn create(&self) -> Value {
        json!({"name": "child", "working_dir": self.work, "prompt": format!("{MARKER}: change every part.")})
    }

    /// The lines that a host without Plexus would read from the child: its journal, without the callbacks of the gate and without the
    /// echoes of the hub's answers.
    pub(super) fn stream_json(&self, session: &str) -> anyhow::Result<String> {
        let journal = self.hub.data_dir().join("sessions").join(session).join("runs/1/journal.jsonl");
        let journal = std::fs::read_to_string(&journal).with_context(|| journal.display().to_string())?;
        let is_read = |line: &&str| {
            let line: Value = serde_json::from_str(line).unwrap_or_default();
            line["type"] != "control_response" && line["request"]["subtype"] != "hook_callback"
        };
        Ok(journal.lines().filter(is_read).flat_map(|line| [line, "\n"]).collect())
    }
}

/// The call with this number.
fn step(work: &Path, call: usize) -> anyhow::Result<Step> {
    let part = call / 3;
    let file = work.join(format!("part_{part}.rs"));
    Ok(match call % 3 {
        0 => {
            std::fs::write(&file, source(part))?;
            let read = Tool::new("Read", json!({"file_path": file}));
            Step::text_and_tools(format!("I read part {part} before I change it."), vec![read])
        }
        1 => {
            let input = json!({
                "file_path": file, "old_string": format!("const LIMIT_{part}: usize = 64;"),
                "new_string": format!("/// Longer records are rejected.\nconst LIMIT_{part}: usize = 4096;"),
            });
            Step::tool("Edit", input)
        }
        _ => Step::tool(
            "Bash",
            json!({"command": format!("./run-tests {part}"), "description": "Run the tests of the part"}),
        ),
    })
}

fn source(part: usize) -> String {
    let lines = (0..SOURCE_LINES)
        .map(|line| format!("    let field_{line} = reader.field({line})?.trim().to_owned();\n"));
    format!("const LIMIT_{part}: usize = 64;\n\n{}", lines.collect::<String>())
}
