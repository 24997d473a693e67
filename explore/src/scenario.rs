//! What is tried in each schedule, and what has to hold at its end: rules 2 and 3 of the design. That everyone comes to
//! an end is asserted by shuttle itself: a waiter that missed its signal is a deadlock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plexus_protocol::claudecode::Channel;
use plexus_protocol::{
    Approval, ApprovalId, ApprovalKind, ApprovalStatus, AskedOf, Decider, Decision, NodeId, Object, Right,
    SessionId, SessionName, TreeId,
};
use plexus_store::{
    ApprovalRow, Begins, Change, FeedKind, FeedRow, Ledger as _, NewApproval, NewSession, StoreError,
};
use shuttle::rand::Rng as _;
use tokio::time::{Duration, Instant};

use crate::hub::{Hub, World};
use plexus_book::now;
use plexus_book::{News, Resolved};

/// What all schedules together have gone through.
#[derive(Debug, Default)]
pub struct Tried {
    /// Schedules.
    pub schedules: AtomicU64,
    /// Hubs that were killed.
    pub kills: AtomicU64,
    /// Calls that were cut off, by a kill or by their caller.
    pub cut_off: AtomicU64,
    /// Commits and reads that failed.
    pub failures: AtomicU64,
    /// Approvals that someone answered.
    pub answered: AtomicU64,
    /// Approvals that expired.
    pub expired: AtomicU64,
    /// Approvals that were withdrawn.
    pub withdrawn: AtomicU64,
}

/// How one approval is dealt with.
#[derive(Debug, Clone)]
struct Plan {
    id: ApprovalId,
    /// In so many seconds.
    expires: Option<u64>,
    withdrawn: bool,
    decided: bool,
    /// Its deadline, if it has one, is moved.
    extended: bool,
}

impl Plan {
    fn by_chance(id: u32) -> Self {
        let mut chance = shuttle::rand::thread_rng();
        let id = named(id);
        // Something has to bring it to its end, and often more than one thing does.
        let mut plan = match chance.gen_range(0..4) {
            0 => Self {
                id,
                expires: Some(chance.gen_range(1..8)),
                withdrawn: false,
                decided: false,
                extended: false,
            },
            1 => Self { id, expires: None, withdrawn: true, decided: false, extended: false },
            _ => Self { id, expires: None, withdrawn: false, decided: true, extended: false },
        };
        plan.decided |= chance.gen_ratio(1, 2);
        plan.withdrawn |= chance.gen_ratio(1, 5);
        if chance.gen_ratio(1, 3) {
            plan.expires = Some(chance.gen_range(1..40));
        }
        plan.extended = plan.expires.is_some() && chance.gen_ratio(1, 2);
        plan
    }
}

/// One schedule: two approvals are asked, two deciders answer both at once, one listens, and the hub is killed up to
/// twice.
pub async fn scenario(tried: &Tried) {
    let world = World::new().await;
    let plans: Vec<Plan> = (1..=2).map(Plan::by_chance).collect();
    let kills = shuttle::rand::thread_rng().gen_range(0..=2);

    let agents: Vec<_> =
        plans.iter().map(|plan| tokio::spawn(agent(Arc::clone(&world), plan.clone()))).collect();
    let deciders: Vec<_> = [("first", true), ("second", false)]
        .map(|(name, approve)| tokio::spawn(decider(Arc::clone(&world), plans.clone(), name, approve)))
        .into();
    let meddling = tokio::spawn(meddler(Arc::clone(&world), plans.clone()));
    let listener = tokio::spawn(listener(Arc::clone(&world), plans.iter().map(|plan| plan.id).collect()));
    let killer = tokio::spawn({
        let world = Arc::clone(&world);
        async move {
            for _ in 0..kills {
                for _ in 0..shuttle::rand::thread_rng().gen_range(0..40) {
                    tokio::task::yield_now().await;
                }
                world.kill();
                world.restart().await;
            }
        }
    });

    let mut heard = Vec::new();
    for agent in agents {
        heard.push(agent.await.expect("an agent"));
    }
    let mut acknowledged = Vec::new();
    for decider in deciders {
        acknowledged.extend(decider.await.expect("a decider"));
    }
    meddling.await.expect("the meddler");
    listener.await.expect("the listener");
    killer.await.expect("the killer");
    world.kill();

    for (plan, heard) in plans.iter().zip(heard) {
        let row = world.look(|disk| disk.approval(plan.id)).expect("it was asked");
        assert_ne!(row.approval.status, ApprovalStatus::Pending);
        assert_eq!(ending(&heard), ending(&row), "what the agent was told is what was decided");
        assert!(row.approval.delivered_at.is_some(), "that the answer was passed on is noted");
        let mine = acknowledged.iter().filter(|said| said.approval == plan.id);
        let counted = mine.clone().filter(|said| said.counts).count();
        assert!(counted <= 1, "an approval is decided once");
        for said in mine {
            assert_eq!(said.ending, ending(&row), "what {} was told is what was decided", said.by);
            if said.counts {
                assert_eq!(row.approval.decision.as_ref().map(|d| &d.by), Some(&known_as(said.by)));
            }
        }
        let counter = match row.approval.status {
            ApprovalStatus::Expired => &tried.expired,
            ApprovalStatus::Withdrawn => &tried.withdrawn,
            _ => &tried.answered,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
    tried.schedules.fetch_add(1, Ordering::Relaxed);
    tried.kills.fetch_add(kills, Ordering::Relaxed);
    tried.cut_off.fetch_add(world.cut_off().into(), Ordering::Relaxed);
    tried.failures.fetch_add(world.look(|disk| disk.failures()).into(), Ordering::Relaxed);
}

/// Asks, and waits for the answer; asks again wherever it was cut off.
async fn agent(world: Arc<World>, plan: Plan) -> ApprovalRow {
    let mut heard: Option<ApprovalRow> = None;
    // Whoever asks again after the answer is told the same.
    for _ in 0..shuttle::rand::thread_rng().gen_range(1..=2) {
        let ask = |hub: Arc<Hub>| {
            let plan = plan.clone();
            async move {
                // The session's owner asks: it sees that through, even if the agent hangs up meanwhile.
                let owner = tokio::spawn(ask(Arc::clone(&hub), plan.clone()));
                hub.own(&owner.abort_handle());
                owner.await.ok()?;
                hub.book.answer_of(plan.id).await
            }
        };
        let answer = loop {
            if let Some(answer) = world.call(true, ask).await {
                break answer;
            }
        };
        if let Some(before) = heard.replace(answer) {
            assert_eq!(ending(&before), heard.as_ref().map(ending).expect("just put there"));
        }
    }
    heard.expect("asked at least once")
}

async fn ask(hub: Arc<Hub>, plan: Plan) {
    let _owner = hub.owner.lock().await;
    let asked = hub.commits.retry(|| hub.connection.approval(plan.id)).await;
    if asked.is_none() {
        let change = Change::Ask(Box::new(question(&plan)));
        hub.commits.retry(|| hub.commits.commit(vec![change.clone()])).await;
    }
}

/// What a decider was told.
struct Said {
    by: &'static str,
    approval: ApprovalId,
    counts: bool,
    ending: Ending,
}

async fn decider(world: Arc<World>, plans: Vec<Plan>, name: &'static str, approve: bool) -> Vec<Said> {
    let mut to_do: BTreeSet<ApprovalId> =
        plans.iter().filter(|plan| plan.decided).map(|plan| plan.id).collect();
    let mut said = Vec::new();
    let mut cursor = 0;
    while !to_do.is_empty() {
        let news = news(&world, cursor, |row| row.kind() != FeedKind::Asked).await;
        cursor = news.newest;
        for approval in news.rows.iter().filter_map(FeedRow::approval) {
            if to_do.remove(&approval) {
                said.push(decide(&world, approval, name, approve).await);
            }
        }
    }
    said
}

async fn decide(world: &World, approval: ApprovalId, name: &'static str, approve: bool) -> Said {
    let status = if approve { ApprovalStatus::Allowed } else { ApprovalStatus::Denied };
    let decision = decision(approve, known_as(name), Right::Ancestor);
    loop {
        let resolve = |hub: Arc<Hub>| {
            let decision = decision.clone();
            async move { hub.book.resolve(approval, status, decision, Vec::new()).await }
        };
        match world.call(true, resolve).await {
            Ok(Resolved::Now(_)) => {
                let ending = (status, Some(known_as(name)));
                return Said { by: name, approval, counts: true, ending };
            }
            Ok(Resolved::Before(row)) => {
                return Said { by: name, approval, counts: false, ending: ending(&row) };
            }
            Err(StoreError::Unavailable(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Withdraws what is to be withdrawn, and moves deadlines, once it is asked.
async fn meddler(world: Arc<World>, plans: Vec<Plan>) {
    let mut to_do: BTreeMap<ApprovalId, Plan> = plans
        .into_iter()
        .filter(|plan| plan.withdrawn || plan.extended)
        .map(|plan| (plan.id, plan))
        .collect();
    let mut cursor = 0;
    while !to_do.is_empty() {
        let news = news(&world, cursor, |row| row.kind() != FeedKind::Asked).await;
        cursor = news.newest;
        for approval in news.rows.iter().filter_map(FeedRow::approval) {
            let Some(plan) = to_do.remove(&approval) else { continue };
            let mut changes = Vec::new();
            if plan.extended {
                let expires_at = now() + shuttle::rand::thread_rng().gen_range(1..20);
                changes.push(Change::Extend { approval, expires_at });
            }
            if plan.withdrawn {
                let decision = Box::new(decision(false, Decider::Hub, Right::Withdrawal));
                let status = ApprovalStatus::Withdrawn;
                changes.push(Change::ResolveIfPending { approval, status, decision });
            }
            for change in changes {
                let meddle = |hub: Arc<Hub>| {
                    let change = change.clone();
                    async move {
                        // It may be resolved by now: then the change is refused.
                        while let Err(StoreError::Unavailable(_)) =
                            hub.commits.commit(vec![change.clone()]).await
                        {}
                    }
                };
                world.call(false, meddle).await;
            }
        }
    }
}

/// Hears of each question once and of each end once, the question first.
async fn listener(world: Arc<World>, approvals: BTreeSet<ApprovalId>) {
    let (mut asked, mut resolved) = (BTreeSet::new(), BTreeSet::new());
    let mut cursor = 0;
    while resolved != approvals {
        let news = news(&world, cursor, |_| false).await;
        for row in news.rows {
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

async fn news(world: &World, after: u64, passed_over: fn(&FeedRow) -> bool) -> News {
    let far = Instant::now() + Duration::from_secs(86_400);
    loop {
        let wait = move |hub: Arc<Hub>| async move {
            hub.commits.news(&AskedOf::Operator.key(), after, far, passed_over).await
        };
        match world.call(true, wait).await {
            Ok(news) => return news,
            Err(StoreError::Unavailable(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// How an approval ended, and by whom.
type Ending = (ApprovalStatus, Option<Decider>);

fn ending(row: &ApprovalRow) -> Ending {
    (row.approval.status, row.approval.decision.as_ref().map(|decision| decision.by.clone()))
}

fn known_as(name: &str) -> Decider {
    Decider::Parent { id: name.to_owned() }
}

fn decision(approve: bool, by: Decider, right: Right) -> Decision {
    Decision {
        approve,
        message: None,
        updated_input: None,
        mode: None,
        interrupt: false,
        rule: None,
        by,
        right,
    }
}

/// The same in every run of a schedule.
fn named(id: u32) -> ApprovalId {
    format!("00000000-0000-4000-8000-{id:012}").parse().expect("a uuid")
}

fn session() -> SessionId {
    "00000000-0000-4000-8000-00000000cafe".parse().expect("a uuid")
}

/// The session that asks.
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
        begins: Begins::NewTree,
    }
}

fn question(plan: &Plan) -> NewApproval {
    let approval = Approval {
        id: plan.id,
        session_id: session(),
        session_name: SessionName::try_from("explored".to_owned()).expect("a name"),
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
