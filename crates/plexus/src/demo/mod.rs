//! `plexus demo`: a whole hub with a scripted agent in place of Claude Code, which needs no account and no network.
//! Within seconds the agent asks for permission, and the terminal shows how to answer. Everything it made is gone at
//! the end, also after Ctrl-C.

mod show;

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;

use plexus_core::{Caller, Door, Hub, ShutDown};
use plexus_protocol::Principal;
use plexus_server::{Config, Serving};
use serde_json::{Value, json};

use crate::cli::DemoArgs;
use crate::error::{ExpectedError, system};
use crate::output::print;
use crate::review::Reviewed;
use crate::serve::{Signals, log_to_stderr};
use crate::typed::Typed;
use show::{Events, Question};

const PROMPT: &str = "Look around in this folder and leave me a note.";

/// Shows the demo.
pub(crate) fn run(args: DemoArgs) -> Result<(), ExpectedError> {
    log_to_stderr("warn");
    let folder = tempfile::Builder::new().prefix("plexus-demo-").tempdir().map_err(system)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(system)?;
    let outcome = runtime.block_on(demo(&args, folder.path()));
    // A line may still be awaited on the terminal.
    runtime.shutdown_background();
    outcome
}

async fn demo(args: &DemoArgs, folder: &Path) -> Result<(), ExpectedError> {
    let mut signals = Signals::new()?;
    let work = folder.join("work");
    std::fs::create_dir(&work).map_err(system)?;
    let serving = Serving::start(config(args, folder)?).await?;
    let answers = if args.yes {
        Answers::AlwaysYes
    } else if std::io::stdin().is_terminal() {
        Answers::Typed(Typed::new())
    } else {
        Answers::FromElsewhere
    };
    let mut guide = Guide { hub: Arc::clone(serving.hub()), url: serving.url().to_owned(), answers };
    let outcome = tokio::select! {
        outcome = guide.lead(&work) => outcome,
        _ = signals.next() => {
            print("\nEnding the demo.");
            Ok(())
        }
    };
    drop(guide);
    serving.stop(ShutDown::EndChildren).await;
    outcome
}

fn config(args: &DemoArgs, folder: &Path) -> Result<Config, ExpectedError> {
    let data_dir = match &args.data_dir {
        Some(dir) => std::path::absolute(dir).map_err(system)?,
        None => folder.join("data"),
    };
    let mut config = Config::defaults(data_dir).map_err(system)?;
    let claude = folder.join("claude");
    std::os::unix::fs::symlink(&config.hub.plexus, &claude).map_err(system)?;
    config.listen = ([127, 0, 0, 1], 0).into();
    config.hub.claude = claude;
    config.hub.idle_after = None;
    Ok(config)
}

/// Where the answers come from.
enum Answers {
    /// `--yes`.
    AlwaysYes,
    /// The person at this terminal.
    Typed(Typed),
    /// The CLI or any other client.
    FromElsewhere,
}

/// Leads through one turn of the agent.
struct Guide {
    hub: Arc<Hub>,
    url: String,
    answers: Answers,
}

impl Guide {
    async fn lead(&mut self, work: &Path) -> Result<(), ExpectedError> {
        print(&format!(
            "A hub is running on {}. Its agent is a script; nothing leaves this machine.\n",
            self.url
        ));
        let create =
            json!({"name": format!("demo-{}", std::process::id()), "working_dir": work, "prompt": PROMPT});
        let created = self.call("claudecode.create", create).await?;
        let session = created["id"].clone();
        print(&format!("you    | {PROMPT}"));
        let mut asked: Vec<String> = Vec::new();
        let mut from = 0;
        let mut events = Events::default();
        loop {
            let poll = json!({"session_id": session, "turn": 1, "from_seq": from, "wait_ms": 1000});
            let seen = self.call("claudecode.poll", poll).await?;
            from = seen["read_position"].as_u64().unwrap_or(from);
            for event in seen["events"].as_array().into_iter().flatten() {
                if let Some(lines) = events.event(&event["event"]) {
                    print(&lines);
                }
            }
            match seen["status"].as_str() {
                Some("complete") => {
                    print("\nThat was the whole way of a tool call. Next: `plexus serve`, and the README.");
                    return Ok(());
                }
                Some("failed" | "interrupted") => {
                    return Err(ExpectedError::Refused("the demo's turn did not end well".to_owned()));
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

    /// Shows a question and sees to its answer, unless that comes from elsewhere.
    async fn ask(&mut self, id: &str) -> Result<(), ExpectedError> {
        let found = self.call("loopback.get", json!({"approval_id": id, "context": true})).await?;
        let reviewed = Reviewed::read(found).map_err(system)?;
        let allow = crate::approve::allow(&reviewed.approval);
        let settings = self.hub.settings();
        let question = Question {
            reviewed: &reviewed,
            program: &settings.plexus,
            data_dir: &settings.data_dir,
            url: &self.url,
        };
        print(&question.to_string());
        match &mut self.answers {
            Answers::AlwaysYes => {
                print("you    | yes (--yes)");
                self.respond(allow).await
            }
            Answers::FromElsewhere => {
                print("       | (waiting for one of these; there is no terminal here to type at)");
                Ok(())
            }
            Answers::Typed(lines) => {
                // What was typed before the call was shown does not answer it.
                lines.forget();
                print("Type y to allow it, n to deny it, or n and a reason:");
                let hub = Arc::clone(&self.hub);
                let answer = tokio::select! {
                    answer = typed_answer(lines, id, allow) => answer,
                    () = decided_elsewhere(&hub, id) => None,
                };
                match answer {
                    Some(answer) => self.respond(answer).await,
                    None => Ok(()),
                }
            }
        }
    }

    async fn respond(&self, answer: Value) -> Result<(), ExpectedError> {
        self.call("loopback.respond", answer).await.map(|_| ())
    }

    async fn call(&self, method: &str, params: Value) -> Result<Value, ExpectedError> {
        call(&self.hub, method, params).await
    }
}

async fn call(hub: &Arc<Hub>, method: &str, params: Value) -> Result<Value, ExpectedError> {
    let caller = Caller::of(Principal::Operator, Door::Http);
    hub.call(caller, method, params).await.map_err(|error| ExpectedError::Refused(error.to_string()))
}

/// Ends when the approval has been decided by someone else.
async fn decided_elsewhere(hub: &Arc<Hub>, id: &str) {
    let mut cursor = Value::Null;
    loop {
        let open = call(hub, "loopback.get", json!({"approval_id": id})).await;
        if !open.is_ok_and(|found| found["approval"]["status"] == "pending") {
            return;
        }
        let wait = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor, "timeout_ms": 60_000}) };
        match call(hub, "loopback.wait", wait).await {
            Ok(news) => cursor = news["cursor"].clone(),
            Err(_) => return,
        }
    }
}

/// The answer a person types; `None` when the terminal is closed, and then it may still come from elsewhere.
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
