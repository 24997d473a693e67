//! `plexus demo` at the terminal: leads through one turn of a scripted agent. It shows each event, shows each approval with the
//! command that answers it, and accepts an answer typed here. `show` formats events and approvals.

use std::io::IsTerminal as _;
use std::path::Path;

use serde_json::{Value, json};

use super::show::{Events, Request};
use super::{DemoHub, environment};
use crate::cli::DemoArgs;
use crate::error::{ExpectedError, system};
use crate::output::print;
use crate::review::Reviewed;
use crate::typed::Typed;

const PROMPT: &str = "Look around in this folder and leave me a note.";

/// Where the answers come from.
enum Answers {
    /// `--yes`.
    AlwaysYes,
    /// Typed at this terminal.
    Typed(Typed),
    /// Another client.
    FromElsewhere,
}

/// Leads through one turn of the agent.
pub(super) struct Guide<'a> {
    hub: &'a DemoHub,
    answers: Answers,
}

impl<'a> Guide<'a> {
    pub(super) fn new(hub: &'a DemoHub, args: &DemoArgs) -> Self {
        let answers = if args.yes {
            Answers::AlwaysYes
        } else if std::io::stdin().is_terminal() {
            Answers::Typed(Typed::new())
        } else {
            Answers::FromElsewhere
        };
        Self { hub, answers }
    }

    pub(super) async fn lead(&mut self, work: &Path) -> Result<(), ExpectedError> {
        print(&format!(
            "A hub is running on {}. Its agent is a script, and nothing leaves this machine.\n",
            self.hub.url
        ));
        let create = json!({"name": format!("demo-{}", std::process::id()), "working_dir": work, "prompt": PROMPT, "env": environment()});
        let created: Value = self.hub.call("claudecode.create", create).await?;
        let session = created["id"].clone();
        print(&format!("you    | {PROMPT}"));
        let mut asked: Vec<String> = Vec::new();
        let mut from = 0;
        let mut events = Events::default();
        loop {
            let poll = json!({"session_id": session, "turn": 1, "from_seq": from, "wait_ms": 1000});
            let seen: Value = self.hub.call("claudecode.poll", poll).await?;
            from = seen["read_position"].as_u64().unwrap_or(from);
            for event in seen["events"].as_array().into_iter().flatten() {
                if let Some(lines) = events.event(&event["event"]) {
                    print(&lines);
                }
            }
            match seen["status"].as_str() {
                Some("complete") => return Ok(()),
                Some("failed" | "interrupted") => {
                    return Err(ExpectedError::Refused("the turn of the demo failed".to_owned()));
                }
                _ => {}
            }
            for approval in seen["pending_approvals"].as_array().into_iter().flatten() {
                let id = approval["id"].as_str().unwrap_or_default().to_owned();
                if !asked.contains(&id) {
                    asked.push(id.clone());
                    self.ask(&id).await?;
                }
            }
        }
    }

    /// Shows an approval and answers it, unless the answer comes from elsewhere.
    async fn ask(&mut self, id: &str) -> Result<(), ExpectedError> {
        let found = self.hub.call("loopback.get", json!({"approval_id": id, "context": true})).await?;
        let reviewed = Reviewed::read(found).map_err(system)?;
        let allow = crate::approve::allow(&reviewed.approval);
        print(&Request::new(&reviewed, self.hub).to_string());
        match &mut self.answers {
            Answers::AlwaysYes => {
                print("you    | yes (--yes)");
                self.hub.respond(allow).await
            }
            Answers::FromElsewhere => {
                print("       | (waiting for that command: stdin is not a terminal)");
                Ok(())
            }
            Answers::Typed(lines) => {
                // Input that was typed before the call was shown does not answer it.
                lines.discard();
                print("Type y to allow it, n to deny it, or n and a reason:");
                let answer = tokio::select! {
                    answer = typed_answer(lines, id, allow) => answer,
                    () = decided_elsewhere(self.hub, id) => None,
                };
                match answer {
                    Some(answer) => self.hub.respond(answer).await,
                    None => Ok(()),
                }
            }
        }
    }
}

/// Ends when another client has resolved the approval.
async fn decided_elsewhere(hub: &DemoHub, id: &str) {
    let mut cursor = Value::Null;
    loop {
        let open = hub.call("loopback.get", json!({"approval_id": id})).await;
        if !open.is_ok_and(|found: Value| found["approval"]["status"] == "pending") {
            return;
        }
        let wait = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor, "timeout_ms": 60_000}) };
        match hub.call::<Value>("loopback.wait", wait).await {
            Ok(news) => cursor = news["cursor"].clone(),
            Err(_) => return,
        }
    }
}

/// The answer that is typed; `None` if the terminal is closed. Then another client can still answer.
async fn typed_answer(lines: &mut Typed, id: &str, allow: Value) -> Option<Value> {
    loop {
        let line = lines.line().await?;
        let (word, reason) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        match (&*word.to_ascii_lowercase(), reason) {
            ("y" | "yes", "") => return Some(allow),
            ("n" | "no", "") => return Some(json!({"approval_id": id, "approve": false})),
            ("n" | "no", reason) => {
                return Some(json!({"approval_id": id, "approve": false, "message": reason.trim()}));
            }
            _ => print("Please type y, n, or n and a reason:"),
        }
    }
}
