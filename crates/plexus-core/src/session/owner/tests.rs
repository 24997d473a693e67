//! The owner with a real store, run directory and process: a decision reaches the child only if it is stored.

use std::collections::{HashMap, HashSet};
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command as Program;

use plexus_agent::{Keeper, ProcessIdentity, RunDir};
use plexus_protocol::claudecode::PolicyName;
use plexus_protocol::{AskedOf, NodeId, SessionName, TreeId};
use plexus_store::{
    ConversationStart, Durability, EventsOfTurn, NewSession, RunKey, RunRow, RunState, SqlStore, TurnRow,
    TurnStatus,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::hub::{Hub, Registry};
use crate::processes::sandbox::SandboxSetup;
use crate::session::machine::{RecoveredRun, Snapshot};
use crate::test_support::{session_config, settings};
use crate::{Address, SandboxSetting, Settings};

const LIMIT: Duration = Duration::from_secs(10);
/// SIGTERM, which asks a keeper to stop its child.
const TERM: i32 = 15;

/// Whether the store has the row of the child's run. It refuses every batch of a run without one.
#[derive(PartialEq)]
enum RunInStore {
    Present,
    Missing,
}

/// An owner whose child is in the middle of a turn, under a policy that allows every call.
struct Working {
    owner: Owner,
    run: RunDir,
    keeper: StandIn,
    _hub: Arc<Hub>,
    _data: TempDir,
}

/// A process in place of the keeper. It ends with the test.
struct StandIn(std::process::Child);

impl Drop for StandIn {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Working {
    async fn new(in_store: RunInStore) -> Self {
        let data = tempfile::tempdir().unwrap();
        let settings =
            Settings { data_dir: data.path().to_owned(), sandbox: SandboxSetting::Off, ..settings() };
        let store = Arc::new(SqlStore::sqlite(&data.path().join("db"), Durability::Normal).unwrap());
        let address = Address { url: String::new(), hub_key: String::new(), operator_token: String::new() };
        let sandbox = SandboxSetup::tried(&settings).await;
        let hub = Hub::new(settings, address, store, Registry::default(), sandbox, Vec::new()).await.unwrap();
        let parts = Arc::clone(hub.shared_parts());

        let keeper = Program::new("sleep").arg("1000").env_clear().env("PATH", "/usr/bin:/bin").spawn();
        let keeper = StandIn(keeper.unwrap());
        let identity = ProcessIdentity::of(keeper.0.id().cast_signed()).unwrap();

        let session = SessionId::random();
        let key = RunKey { session, run: 1 };
        parts.commit(stored(key, &in_store)).await.unwrap();
        let run = RunDir::new(parts.settings.run_dir(key));
        run.create().unwrap();
        let (_, inbox) = mpsc::unbounded_channel();
        let mut owner = Owner::load(Arc::clone(&parts), session, inbox, &Mutex::default()).await.unwrap();
        let attached = Keeper::attach(&identity).unwrap();
        let (child, _) = Child::open(key, run.clone(), attached, 0, &parts.watch).unwrap();
        owner.child = Some(child);
        owner.step(Input::Recovered(Box::new(snapshot(key)))).await.unwrap();
        assert!(owner.child.as_ref().unwrap().outbox.is_some(), "nothing was refused yet");
        Self { owner, run, keeper, _hub: hub, _data: data }
    }

    /// The child brings a call to the gate, and the owner reads it.
    async fn call(&mut self, tool_use_id: &str) {
        let line = json!({"type": "control_request", "request_id": tool_use_id, "request": {
            "subtype": "hook_callback", "callback_id": "plexus_gate", "tool_use_id": tool_use_id,
            "input": {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": tool_use_id,
                      "tool_input": {"command": "ls"}, "cwd": "/w", "permission_mode": "default"}}});
        let mut journal = std::fs::File::options().append(true).open(self.run.journal()).unwrap();
        writeln!(journal, "{line}").unwrap();
        self.owner.read_all().await.unwrap();
    }

    /// The gate's answers in the outbox: the request and the decision.
    fn answers(&self) -> Vec<String> {
        let outbox = std::fs::read_to_string(self.run.outbox()).unwrap();
        let lines = outbox.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let answers = lines.filter(|line| line["type"] == "control_response");
        answers
            .map(|line| {
                let response = &line["response"];
                let decision = &response["response"]["hookSpecificOutput"]["permissionDecision"];
                format!("{}: {}", response["request_id"].as_str().unwrap(), decision.as_str().unwrap())
            })
            .collect()
    }
}

/// The session and its turn, as an earlier hub stored them.
fn stored(key: RunKey, in_store: &RunInStore) -> Vec<Change> {
    let config = plexus_store::SessionConfig { policy: PolicyName::AllowAll, ..session_config() };
    let new = NewSession {
        id: key.session,
        name: SessionName::try_from("worker".to_owned()).unwrap(),
        answers_to: AskedOf::Operator,
        config,
        tree: TreeId::random(),
        head: NodeId::random(),
        start: ConversationStart::NewTree,
        host: None,
    };
    let mut changes = vec![
        Change::CreateSession(Box::new(new)),
        Change::StartTurn { session: key.session, turn: 1, prompt: "go".to_owned(), woken_to: None },
    ];
    if *in_store == RunInStore::Present {
        changes.push(Change::StartRun { key, state: RunState::Starting, token_hash: None });
        changes.push(Change::RunProcess(key, None));
    }
    changes
}

fn snapshot(key: RunKey) -> Snapshot {
    let turn = TurnRow {
        session: key.session,
        turn: 1,
        status: TurnStatus::Running,
        run: Some(key.run),
        prompt: "go".to_owned(),
        prompt_uuid: String::new(),
        progress: json!({"ready": 1, "initialized": 1, "acknowledged": true}),
        started_at: 0,
        ended_at: None,
        events: EventsOfTurn::Kept,
        head: None,
        cost_usd: 0.0,
    };
    let row = RunRow { key, state: RunState::Running, process: None, journal_offset: 0, created_at: 0 };
    let run = RecoveredRun { row, calls: Vec::new(), approvals: Vec::new(), sent: HashSet::new() };
    Snapshot { turn: Some(turn), events: Vec::new(), runs: vec![run], unread_files: HashMap::new() }
}

#[tokio::test]
async fn a_stored_decision_is_sent_to_the_child() {
    let mut working = Working::new(RunInStore::Present).await;
    working.call("t").await;
    assert_eq!(working.answers(), ["t: allow"]);
    assert_eq!(working.keeper.0.try_wait().unwrap(), None, "the child still runs");
}

#[tokio::test]
async fn a_decision_that_the_store_refuses_never_reaches_the_child_and_the_child_is_stopped() {
    let mut working = Working::new(RunInStore::Missing).await;
    working.call("t").await;
    assert_eq!(working.answers(), [] as [&str; 0]);
    let child = working.owner.child.as_ref().unwrap();
    tokio::time::timeout(LIMIT, child.keeper.as_ref().unwrap().ended()).await.expect("the child is stopped");
    assert_eq!(working.keeper.0.wait().unwrap().signal(), Some(TERM));
    // Lines that it wrote before it ended are read, and not answered either.
    working.call("u").await;
    assert_eq!(working.answers(), [] as [&str; 0]);
}
