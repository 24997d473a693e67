//! A data directory with the history of many agents, written through the store before a hub starts: trees of sessions, turns of the last
//! hour, approvals that a person answered, and calls that a rule allowed. A hub would need hours to collect as much.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use plexus_protocol::{
    ApprovalStatus, AskedOf, Decision, Event, Object, SessionId, SessionName, UnixSeconds,
};
use plexus_store::{
    CallRow, Change, Durability, Ledger as _, NewApproval, NewSession, RunKey, RunState, SqlStore,
    TurnStatus, Verdict, samples,
};
use serde_json::json;

pub(crate) const SESSIONS: usize = 1_000;
/// How many of them worked in the last hour. It is the largest number of lanes that the hub returns.
pub(crate) const WORKING: usize = 200;
pub(crate) const ENTRIES: usize = 10_000;

/// The turns of each working session. Each has one approval.
const TURNS: usize = 20;
/// The seconds from one turn of a session to its next.
const TURN_SECS: u64 = 170;
/// Changes in one commit.
const AT_ONCE: usize = 1_000;

/// A change, and its time.
type Dated = (UnixSeconds, Change);

/// Creates the store in an empty directory.
pub(crate) async fn fill(dir: &Path) -> anyhow::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let start = now - TURNS as u64 * TURN_SECS - 60;
    let ids: Vec<SessionId> = (0..SESSIONS).map(|_| SessionId::random()).collect();
    let mut changes: Vec<Dated> = Vec::new();
    for at in 0..SESSIONS {
        changes.push((start - 100, Change::CreateSession(Box::new(session(at, &ids)?))));
    }
    // Each session and each answered approval has an audit entry. Calls that a rule allowed are the rest.
    let calls = ENTRIES - SESSIONS - WORKING * TURNS;
    for (at, id) in ids.iter().take(WORKING).enumerate() {
        let key = RunKey { session: *id, run: 1 };
        changes.push((start - 90, Change::StartRun { key, state: RunState::Starting, token_hash: None }));
        let own = calls / WORKING + usize::from(at < calls % WORKING);
        for turn in 0..TURNS {
            let begins = start + turn as u64 * TURN_SECS + (at % 6) as u64 * 20;
            let own_calls = own / TURNS + usize::from(turn < own % TURNS);
            changes.extend(one_turn(key, turn as u64 + 1, begins, own_calls)?);
        }
        changes.push((now - 10, Change::EndRun(key, json!({"code": 0}))));
    }
    // The order of a session's own changes stays.
    changes.sort_by_key(|(at, _)| *at);
    let store = SqlStore::sqlite(&dir.join("plexus.db"), Durability::Normal)?;
    let mut pending: Vec<Dated> = Vec::new();
    for change in changes {
        let is_next = pending.last().is_some_and(|(at, _)| *at != change.0) || pending.len() == AT_ONCE;
        if is_next {
            commit(&store, std::mem::take(&mut pending)).await?;
        }
        pending.push(change);
    }
    commit(&store, pending).await
}

async fn commit(store: &SqlStore, changes: Vec<Dated>) -> anyhow::Result<()> {
    if let Some((at, _)) = changes.first() {
        store.commit(*at, changes.into_iter().map(|(_, change)| change).collect()).await?;
    }
    Ok(())
}

/// The sessions form trees of ten: a lead, six children, and three grandchildren.
fn session(at: usize, ids: &[SessionId]) -> anyhow::Result<NewSession> {
    let lead = at - at % 10;
    let answers_to = match at % 10 {
        0 => AskedOf::Operator,
        1..=6 => AskedOf::Session { id: ids[lead] },
        _ => AskedOf::Session { id: ids[at - 5] },
    };
    let name = SessionName::try_from(format!("agent-{at}")).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let mut session = samples::session(name);
    session.id = ids[at];
    session.answers_to = answers_to;
    session.config.working_dir = format!("/usr/share/project-{}", lead / 100);
    session.config.model = Some("a-model".to_owned());
    Ok(session)
}

/// A turn: calls that a rule allows, one call that a person allows or denies, and a text.
fn one_turn(key: RunKey, turn: u64, begins: UnixSeconds, calls: usize) -> anyhow::Result<Vec<Dated>> {
    let session = key.session;
    let prompt = format!("Check part {turn} of the price list");
    let mut changes = vec![(begins, Change::StartTurn { session, turn, prompt, woken_to: None })];
    for call in 0..calls {
        let row = CallRow {
            key,
            turn,
            tool_use_id: format!("toolu_{turn}_{call}"),
            tool_name: "Bash".to_owned(),
            digest: format!("digest-{turn}-{call}"),
            request_id: format!("request-{turn}-{call}"),
            verdict: Verdict::Allow { reason: "rule 1: npm test may run".to_owned() },
            summary: format!("npm test part-{turn}"),
        };
        let input = object(json!({"command": format!("npm test part-{turn}")})).into();
        changes.push((begins + 5, Change::Call(Box::new(row), input)));
    }
    let asked = approval(key, turn, begins + 20)?;
    let (approval, approve) = (asked.approval.id, !turn.is_multiple_of(4));
    let message = (!approve).then(|| "not this one".to_owned());
    let decision = Decision { approve, message, ..samples::allow() };
    let status = if approve { ApprovalStatus::Allowed } else { ApprovalStatus::Denied };
    let text = format!("Part {turn} is checked.");
    let said = Event::Content { text: text.clone(), parent_tool_use_id: None, truncated: None };
    changes.extend([
        (begins + 20, Change::Ask(Box::new(asked))),
        (begins + 50, Change::Resolve { approval, status, decision: Box::new(decision) }),
        (
            begins + 80,
            Change::EndTurn {
                session,
                turn,
                status: TurnStatus::Complete,
                last: Box::new(said),
                summary: Some(text),
                cost_usd: 0.01,
            },
        ),
    ]);
    Ok(changes)
}

fn approval(key: RunKey, turn: u64, at: UnixSeconds) -> anyhow::Result<NewApproval> {
    let name = SessionName::try_from("agent".to_owned()).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let mut new = samples::approval(key, name, &format!("toolu_asked_{turn}"), at);
    new.turn = turn;
    new.approval.input =
        object(json!({"command": format!("./publish --part {turn}"), "description": "Publish it"}));
    new.approval.cwd = "/usr/share".to_owned();
    Ok(new)
}

fn object(value: serde_json::Value) -> Object {
    value.as_object().cloned().unwrap_or_default()
}
