//! The scenario of each schedule, and the assertions at its end: an approval is resolved once, and no waiting task misses
//! it. Shuttle itself detects a task that never ends: a waiter that missed its signal is a deadlock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plexus_protocol::claudecode::Channel;
use plexus_protocol::{
    Approval, ApprovalId, ApprovalKind, ApprovalStatus, AskedOf, Decider, Decision, NodeId, Object, Right,
    SessionId, SessionName, TreeId,
};
use plexus_store::{
    ApprovalRow, Change, ConversationStart, FeedKind, FeedRow, Ledger as _, NewApproval, NewSession,
    StoreError,
};
use shuttle::rand::Rng as _;
use tokio::time::{Duration, Instant};

use crate::disk::Host;
use crate::hub::{Caller, Hub, Place, World, any_host};
use plexus_book::now;
use plexus_book::{NewEntries, Resolved};

/// The totals over all schedules.
#[derive(Debug, Default)]
pub struct Totals {
    /// Schedules.
    pub schedules: AtomicU64,
    /// Hubs that were killed.
    pub kills: AtomicU64,
    /// Calls that were cancelled, by a kill or by their caller.
    pub cancelled_calls: AtomicU64,
    /// Commits and reads that failed.
    pub failures: AtomicU64,
    /// Approvals that were answered.
    pub answered: AtomicU64,
    /// Approvals that expired.
    pub expired: AtomicU64,
    /// Approvals that were withdrawn.
    pub withdrawn: AtomicU64,
}

/// What happens to one approval.
#[derive(Debug, Clone)]
struct Plan {
    id: ApprovalId,
    /// Seconds until it expires.
    expires: Option<u64>,
    withdrawn: bool,
    decided: bool,
    /// Its deadline, if it has one, is moved.
    extended: bool,
}

impl Plan {
    fn random(id: u32) -> Self {
        let mut rng = shuttle::rand::thread_rng();
        let id = approval_id(id);
        // At least one cause must resolve it; often there are several.
        let mut plan = match rng.gen_range(0..4) {
            0 => Self {
                id,
                expires: Some(rng.gen_range(1..8)),
                withdrawn: false,
                decided: false,
                extended: false,
            },
            1 => Self { id, expires: None, withdrawn: true, decided: false, extended: false },
            _ => Self { id, expires: None, withdrawn: false, decided: true, extended: false },
        };
        plan.decided |= rng.gen_ratio(1, 2);
        plan.withdrawn |= rng.gen_ratio(1, 5);
        if rng.gen_ratio(1, 3) {
            plan.expires = Some(rng.gen_range(1..40));
        }
        plan.extended = plan.expires.is_some() && rng.gen_ratio(1, 2);
        plan
    }
}

/// One schedule: two approvals are created, two deciders answer both at once, one task checks the feed, and hubs are
/// killed up to twice.
pub async fn scenario(totals: &Totals) {
    let world = World::new().await;
    let plans: Vec<Plan> = (1..=2).map(Plan::random).collect();
    let kills = shuttle::rand::thread_rng().gen_range(0..=2);

    let agents: Vec<_> =
        plans.iter().map(|plan| tokio::spawn(agent(Arc::clone(&world), plan.clone()))).collect();
    let deciders: Vec<_> = [("first", ApprovalStatus::Allowed), ("second", ApprovalStatus::Denied)]
        .map(|(name, status)| tokio::spawn(decider(Arc::clone(&world), plans.clone(), name, status)))
        .into();
    let changes = tokio::spawn(change_approvals(Arc::clone(&world), plans.clone()));
    let feed = tokio::spawn(check_feed(Arc::clone(&world), plans.iter().map(|plan| plan.id).collect()));
    let killer = tokio::spawn({
        let world = Arc::clone(&world);
        async move {
            for _ in 0..kills {
                for _ in 0..shuttle::rand::thread_rng().gen_range(0..40) {
                    tokio::task::yield_now().await;
                }
                let host = any_host();
                world.kill(host);
                world.restart(host).await;
            }
        }
    });

    let mut answers = Vec::new();
    for agent in agents {
        answers.push(agent.await.expect("an agent"));
    }
    let mut acknowledged = Vec::new();
    for decider in deciders {
        acknowledged.extend(decider.await.expect("a decider"));
    }
    changes.await.expect("the changes of approvals");
    feed.await.expect("the check of the feed");
    killer.await.expect("the killer");
    world.kill(Host::Owner);
    world.kill(Host::Other);

    for (plan, answer) in plans.iter().zip(answers) {
        let row = world.inspect(|disk| disk.approval(plan.id)).expect("it was asked");
        assert_ne!(row.approval.status, ApprovalStatus::Pending);
        assert_eq!(outcome(&answer), outcome(&row), "what the agent was told is what was decided");
        assert!(row.approval.delivered_at.is_some(), "that the answer was passed on is noted");
        let mine = acknowledged.iter().filter(|reply| reply.approval == plan.id);
        let counted = mine.clone().filter(|reply| reply.counts).count();
        assert!(counted <= 1, "an approval is decided once");
        for reply in mine {
            assert_eq!(reply.outcome, outcome(&row), "what {} was told is what was decided", reply.by);
            if reply.counts {
                assert_eq!(row.approval.decision.as_ref().map(|d| &d.by), Some(&decider_named(reply.by)));
            }
        }
        let counter = match row.approval.status {
            ApprovalStatus::Expired => &totals.expired,
            ApprovalStatus::Withdrawn => &totals.withdrawn,
            _ => &totals.answered,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
    totals.schedules.fetch_add(1, Ordering::Relaxed);
    totals.kills.fetch_add(kills, Ordering::Relaxed);
    totals.cancelled_calls.fetch_add(world.cancelled_calls().into(), Ordering::Relaxed);
    totals.failures.fetch_add(world.inspect(|disk| disk.failures()).into(), Ordering::Relaxed);
}

/// Requests an approval and waits for the answer. It repeats the request whenever the call is cancelled.
async fn agent(world: Arc<World>, plan: Plan) -> ApprovalRow {
    let mut known: Option<ApprovalRow> = None;
    // A repeated request gets the same answer.
    for _ in 0..shuttle::rand::thread_rng().gen_range(1..=2) {
        let ask = |hub: Arc<Hub>| {
            let plan = plan.clone();
            async move {
                // The owner of the session creates the approval, even if the agent disconnects meanwhile.
                let owner = tokio::spawn(ask(Arc::clone(&hub), plan.clone()));
                hub.own(&owner.abort_handle());
                owner.await.ok()?;
                hub.book.answer_of(plan.id).await.map(Arc::unwrap_or_clone)
            }
        };
        let answer = loop {
            if let Some(answer) = world.call(Caller::MayDisconnect, Place::Owner, ask).await {
                break answer;
            }
        };
        if let Some(before) = known.replace(answer) {
            assert_eq!(outcome(&before), known.as_ref().map(outcome).expect("just put there"));
        }
    }
    known.expect("asked at least once")
}

async fn ask(hub: Arc<Hub>, plan: Plan) {
    let _owner = hub.owner.lock().await;
    let asked = hub.commits.retry(|| hub.connection.approval(plan.id)).await;
    if asked.is_none() {
        let change = Change::Ask(Box::new(new_approval(&plan)));
        hub.commits.retry(|| hub.commits.commit(vec![change.clone()])).await;
    }
}

/// The reply to a decider.
struct Reply {
    by: &'static str,
    approval: ApprovalId,
    counts: bool,
    outcome: Outcome,
}

async fn decider(
    world: Arc<World>,
    plans: Vec<Plan>,
    name: &'static str,
    status: ApprovalStatus,
) -> Vec<Reply> {
    let mut remaining: BTreeSet<ApprovalId> =
        plans.iter().filter(|plan| plan.decided).map(|plan| plan.id).collect();
    let mut replies = Vec::new();
    let mut cursor = 0;
    while !remaining.is_empty() {
        let entries = wait_for_entries(&world, cursor, |row| row.kind() != FeedKind::Asked).await;
        cursor = entries.newest;
        for approval in entries.rows.iter().filter_map(FeedRow::approval) {
            if remaining.remove(&approval) {
                replies.push(decide(&world, approval, name, status).await);
            }
        }
    }
    replies
}

async fn decide(world: &World, approval: ApprovalId, name: &'static str, status: ApprovalStatus) -> Reply {
    let decision = decision(status, decider_named(name), Right::Ancestor);
    loop {
        let resolve = |hub: Arc<Hub>| {
            let decision = decision.clone();
            async move { hub.book.resolve(approval, status, decision, Vec::new()).await }
        };
        // Any hub denies; only the one of the host allows.
        let place = if status == ApprovalStatus::Allowed { Place::Owner } else { Place::Any };
        match world.call(Caller::MayDisconnect, place, resolve).await {
            Ok(Resolved::Now(_)) => {
                let outcome = (status, Some(decider_named(name)));
                return Reply { by: name, approval, counts: true, outcome };
            }
            Ok(Resolved::Before(row)) => {
                return Reply { by: name, approval, counts: false, outcome: outcome(&row) };
            }
            Err(StoreError::Unavailable(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Withdraws approvals and moves deadlines, once they are created.
async fn change_approvals(world: Arc<World>, plans: Vec<Plan>) {
    let mut remaining: BTreeMap<ApprovalId, Plan> = plans
        .into_iter()
        .filter(|plan| plan.withdrawn || plan.extended)
        .map(|plan| (plan.id, plan))
        .collect();
    let mut cursor = 0;
    while !remaining.is_empty() {
        let entries = wait_for_entries(&world, cursor, |row| row.kind() != FeedKind::Asked).await;
        cursor = entries.newest;
        for approval in entries.rows.iter().filter_map(FeedRow::approval) {
            let Some(plan) = remaining.remove(&approval) else { continue };
            let mut changes = Vec::new();
            if plan.extended {
                let expires_at = now() + shuttle::rand::thread_rng().gen_range(1..20);
                changes.push(Change::Extend { approval, expires_at });
            }
            if plan.withdrawn {
                let decision = Box::new(decision(ApprovalStatus::Withdrawn, Decider::Hub, Right::Withdrawal));
                let status = ApprovalStatus::Withdrawn;
                changes.push(Change::ResolveIfPending { approval, status, decision });
            }
            for change in changes {
                let commit = |hub: Arc<Hub>| {
                    let change = change.clone();
                    async move {
                        // It may be resolved by now: then the change is refused.
                        while let Err(StoreError::Unavailable(_)) =
                            hub.commits.commit(vec![change.clone()]).await
                        {}
                    }
                };
                world.call(Caller::Waits, Place::Any, commit).await;
            }
        }
    }
}

/// Checks that the feed has one entry for the creation of each approval and then one for its end.
async fn check_feed(world: Arc<World>, approvals: BTreeSet<ApprovalId>) {
    let (mut asked, mut resolved) = (BTreeSet::new(), BTreeSet::new());
    let mut cursor = 0;
    while resolved != approvals {
        let entries = wait_for_entries(&world, cursor, |_| false).await;
        for row in entries.rows {
            assert_eq!(row.number, cursor + 1, "nothing is left out and nothing comes twice");
            cursor = row.number;
            let approval = row.approval().expect("all of this feed is about approvals");
            match row.kind() {
                FeedKind::Asked => assert!(asked.insert(approval), "asked twice"),
                FeedKind::Resolved => {
                    assert!(
                        asked.contains(&approval) && resolved.insert(approval),
                        "resolved twice, or unasked"
                    );
                }
                FeedKind::Finished | FeedKind::Notice => panic!("{row:?}"),
            }
        }
    }
}

async fn wait_for_entries(world: &World, after: u64, is_skipped: fn(&FeedRow) -> bool) -> NewEntries {
    let deadline = Instant::now() + Duration::from_secs(86_400);
    loop {
        let wait = move |hub: Arc<Hub>| async move {
            hub.commits.wait_for_entries(&AskedOf::Operator.key(), after, deadline, is_skipped).await
        };
        match world.call(Caller::MayDisconnect, Place::Any, wait).await {
            Ok(entries) => return entries,
            Err(StoreError::Unavailable(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// How an approval was resolved, and by whom.
type Outcome = (ApprovalStatus, Option<Decider>);

fn outcome(row: &ApprovalRow) -> Outcome {
    (row.approval.status, row.approval.decision.as_ref().map(|decision| decision.by.clone()))
}

fn decider_named(name: &str) -> Decider {
    Decider::Parent { id: name.to_owned() }
}

fn decision(status: ApprovalStatus, by: Decider, right: Right) -> Decision {
    Decision {
        approve: status == ApprovalStatus::Allowed,
        message: None,
        updated_input: None,
        mode: None,
        interrupt: false,
        rule: None,
        by,
        right,
    }
}

/// The same id in every run of a schedule.
fn approval_id(id: u32) -> ApprovalId {
    format!("00000000-0000-4000-8000-{id:012}").parse().expect("a uuid")
}

fn session() -> SessionId {
    "00000000-0000-4000-8000-00000000cafe".parse().expect("a uuid")
}

/// The session that requests approvals.
pub(crate) fn new_session() -> NewSession {
    let config = serde_json::json!({
        "working_dir": "/", "loopback_enabled": true, "channel": "mcp", "env": {}, "hub_tools": false,
    });
    NewSession {
        id: session(),
        name: SessionName::try_from("explored".to_owned()).expect("a name"),
        answers_to: AskedOf::Operator,
        config: serde_json::from_value(config).expect("a configuration"),
        tree: TreeId::random(),
        head: NodeId::random(),
        start: ConversationStart::NewTree,
        host: None,
    }
}

fn new_approval(plan: &Plan) -> NewApproval {
    let approval = Approval {
        id: plan.id,
        session_id: session(),
        session_name: SessionName::try_from("explored".to_owned()).expect("a name"),
        session_path: None,
        host: None,
        kind: ApprovalKind::Tool,
        tool_name: "Bash".to_owned(),
        tool_use_id: plan.id.to_string(),
        input: Object::new(),
        status: ApprovalStatus::Pending,
        created_at: now(),
        expires_at: plan.expires.map(|secs| now() + secs),
        asked_of: AskedOf::Operator,
        passed: Vec::new(),
        passes_on_at: None,
        reason: None,
        said: None,
        risks: None,
        suggestions: None,
        agent_id: None,
        blocked_path: None,
        requires_user_interaction: None,
        beyond_rules: false,
        cwd: "/".to_owned(),
        digest: None,
        truncated: false,
        delivered_at: None,
        resolved_at: None,
        decision: None,
    };
    NewApproval { approval, run: 1, turn: 1, channel: Channel::Mcp, request_id: None }
}
