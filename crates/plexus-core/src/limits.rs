//! Hub-wide limits, so that neither one agent nor many can exhaust the hub. This module owns the settings and the two
//! counts that are checked before a session or an approval is stored. Each limit is enforced where its resource is
//! created.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plexus_protocol::{ApprovalId, AskedOf, Error, ErrorKind, Object, SessionId};
use serde_json::Value;

use crate::tree::MAX_DEPTH;

/// The hub-wide limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Living sessions.
    pub sessions: usize,
    /// Levels of sessions below the root of a tree.
    pub depth: usize,
    /// Existing descendants of any one agent, at any depth.
    pub descendants: usize,
    /// Open approvals of all sessions together.
    pub open_approvals: usize,
    /// Total bytes of their inputs.
    pub open_approvals_bytes: usize,
    /// Open approvals of one session.
    pub open_approvals_per_session: usize,
    /// Approval requests of one session per minute; also the burst after a quiet minute.
    pub asks_per_minute: u32,
    /// Bytes of one event; a larger one is truncated.
    pub event_bytes: usize,
    /// Bytes that a child may write in one run.
    pub journal_bytes: u64,
    /// Free bytes on the disk that are reserved for decisions.
    pub reserve_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 1000,
            depth: 5,
            descendants: 100,
            open_approvals: 5000,
            open_approvals_bytes: 64 * 1024 * 1024,
            open_approvals_per_session: 1000,
            asks_per_minute: 6000,
            event_bytes: 8 * 1024 * 1024,
            journal_bytes: 4096 * 1024 * 1024,
            reserve_bytes: 256 * 1024 * 1024,
        }
    }
}

/// A limit that was reached, identified by its setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    Sessions,
    Depth,
    Descendants,
    OpenApprovals,
    OpenApprovalsBytes,
    OpenApprovalsPerSession,
    AsksPerMinute,
    Journal,
    Reserve,
}

impl Limit {
    pub(crate) const ALL: [Self; 9] = [
        Self::Sessions,
        Self::Depth,
        Self::Descendants,
        Self::OpenApprovals,
        Self::OpenApprovalsBytes,
        Self::OpenApprovalsPerSession,
        Self::AsksPerMinute,
        Self::Journal,
        Self::Reserve,
    ];

    /// The name of its setting.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Depth => "depth",
            Self::Descendants => "descendants",
            Self::OpenApprovals => "open_approvals",
            Self::OpenApprovalsBytes => "open_approvals_mb",
            Self::OpenApprovalsPerSession => "open_approvals_per_session",
            Self::AsksPerMinute => "asks_per_minute",
            Self::Journal => "journal_mb",
            Self::Reserve => "reserve_mb",
        }
    }

    /// The error for a caller whose session was not created.
    pub(crate) fn refusal(self, limits: &Limits) -> Error {
        let name = self.name();
        let (most, why) = match self {
            Self::Depth => (
                limits.depth,
                format!(
                    "a tree has at most {} levels below its first session: let a session at a higher level \
                     create this one",
                    limits.depth
                ),
            ),
            Self::Descendants => (
                limits.descendants,
                format!(
                    "a session can have at most {} sessions below it: delete some with claudecode.delete",
                    limits.descendants
                ),
            ),
            _ => (
                limits.sessions,
                format!(
                    "the hub has {} sessions, which is the limit: delete some with claudecode.delete",
                    limits.sessions
                ),
            ),
        };
        let message = format!("{why}, or raise `{name}` under [limits] in plexus.toml");
        Error::new(ErrorKind::LimitReached, message).with("limit", name).with("most", most)
    }

    /// The message to an agent whose approval request was rejected before anyone saw it.
    pub(crate) fn to_agent(self, limits: &Limits) -> String {
        let why: &dyn fmt::Display = match self {
            Self::OpenApprovals => &format_args!(
                "{} approvals of all agents together are open, which is the limit",
                limits.open_approvals
            ),
            Self::OpenApprovalsBytes => &"the open approvals of all agents together are too large",
            Self::OpenApprovalsPerSession => &format_args!(
                "{} approvals of this session are open, which is the limit",
                limits.open_approvals_per_session
            ),
            _ => &format_args!(
                "this session requested more than {} approvals in a minute",
                limits.asks_per_minute
            ),
        };
        format!(
            "This call did not run, because no approval could be requested: {why}. This is not a denial: \
             wait until some approvals are answered, then try again."
        )
    }
}

/// Counts what is about to be stored. It counts ids, so that repeated reports of one item count once.
#[derive(Debug, Default)]
pub(crate) struct Reservations {
    /// The existing sessions of this host, and the parent of each.
    sessions: Mutex<HashMap<SessionId, AskedOf>>,
    /// Those of other hosts, when they were last read.
    elsewhere: Mutex<HashMap<SessionId, AskedOf>>,
    open: Mutex<OpenApprovals>,
}

#[derive(Debug, Default)]
struct OpenApprovals {
    /// The bytes of each approval's input.
    bytes: HashMap<ApprovalId, usize>,
    total: usize,
}

impl Reservations {
    /// Reserves a slot for a session that is about to be stored.
    pub(crate) fn reserve_session(
        &self,
        session: SessionId,
        answers_to: &AskedOf,
        limits: &Limits,
    ) -> Result<(), Limit> {
        let elsewhere = lock(&self.elsewhere);
        let mut sessions = lock(&self.sessions);
        if sessions.len() >= limits.sessions {
            return Err(Limit::Sessions);
        }
        let tree = Tree { sessions: &sessions, elsewhere: &elsewhere };
        let above = tree.agents_above(answers_to);
        if above.iter().filter(|agent| matches!(agent, AskedOf::Session { .. })).count() > limits.depth {
            return Err(Limit::Depth);
        }
        if !above.is_empty() {
            let mut below = vec![0; above.len()];
            let all = sessions.values().chain(elsewhere.values());
            for agent in all.flat_map(|answers_to| tree.agents_above(answers_to)) {
                if let Some(at) = above.iter().position(|one| *one == agent) {
                    below[at] += 1;
                }
            }
            if below.iter().any(|count| *count >= limits.descendants) {
                return Err(Limit::Descendants);
            }
        }
        sessions.insert(session, answers_to.clone());
        Ok(())
    }

    /// Counts a session that an earlier hub stored.
    pub(crate) fn add_session(&self, session: SessionId, answers_to: AskedOf) {
        lock(&self.sessions).insert(session, answers_to);
    }

    /// Counts the sessions of other hosts, in place of those that were counted before.
    pub(crate) fn set_elsewhere(&self, sessions: impl Iterator<Item = (SessionId, AskedOf)>) {
        *lock(&self.elsewhere) = sessions.collect();
    }

    /// Releases the slot of a session that was deleted or could not be stored.
    pub(crate) fn release_session(&self, session: SessionId) {
        lock(&self.sessions).remove(&session);
    }

    /// Reserves a slot for an approval with an input of this size that is about to be stored.
    pub(crate) fn reserve_approval(
        &self,
        approval: ApprovalId,
        bytes: usize,
        limits: &Limits,
    ) -> Result<(), Limit> {
        let mut open = lock(&self.open);
        if open.bytes.len() >= limits.open_approvals {
            return Err(Limit::OpenApprovals);
        }
        // A single approval always fits: inputs that are too large to review were denied before.
        if open.total > 0 && open.total + bytes > limits.open_approvals_bytes {
            return Err(Limit::OpenApprovalsBytes);
        }
        open.insert(approval, bytes);
        Ok(())
    }

    /// Counts an open approval that an earlier hub stored.
    pub(crate) fn add_approval(&self, approval: ApprovalId, bytes: usize) {
        lock(&self.open).insert(approval, bytes);
    }

    /// Releases the slot of a resolved approval.
    pub(crate) fn release_approval(&self, approval: ApprovalId) {
        let mut open = lock(&self.open);
        let bytes = open.bytes.remove(&approval).unwrap_or(0);
        open.total -= bytes;
    }
}

impl OpenApprovals {
    fn insert(&mut self, approval: ApprovalId, bytes: usize) {
        self.total += bytes;
        self.total -= self.bytes.insert(approval, bytes).unwrap_or(0);
    }
}

/// The sessions of all hosts, and the parent of each.
struct Tree<'a> {
    sessions: &'a HashMap<SessionId, AskedOf>,
    elsewhere: &'a HashMap<SessionId, AskedOf>,
}

impl<'a> Tree<'a> {
    /// `answers_to` and the agents above it, nearest first, without the operator.
    fn agents_above(&self, answers_to: &'a AskedOf) -> Vec<&'a AskedOf> {
        let next = |agent: &&'a AskedOf| match agent {
            AskedOf::Session { id } => self.sessions.get(id).or_else(|| self.elsewhere.get(id)),
            AskedOf::Operator | AskedOf::Parent { .. } => None,
        };
        let above = std::iter::successors(Some(answers_to), next);
        above.filter(|agent| **agent != AskedOf::Operator).take(MAX_DEPTH).collect()
    }
}

fn lock<T>(counted: &Mutex<T>) -> MutexGuard<'_, T> {
    counted.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The approximate size of an input in bytes.
pub(crate) fn input_size(input: &Object) -> usize {
    fn of(value: &Value) -> usize {
        match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(of).sum::<usize>() + items.len(),
            Value::Object(fields) => input_size(fields),
            Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        }
    }
    input.iter().map(|(name, value)| name.len() + 8 + of(value)).sum()
}

/// A token bucket: a rate per minute, with a burst of the same size after a quiet minute.
#[derive(Debug, Default)]
pub(crate) struct RateLimit {
    /// When the bucket will be full again if nothing is taken.
    full_at: Option<Instant>,
}

impl RateLimit {
    /// Takes a token if one is available; returns whether it did.
    pub(crate) fn take(&mut self, now: Instant, per_minute: u32) -> bool {
        let minute = Duration::from_secs(60);
        let full_at = self.full_at.filter(|at| *at > now).unwrap_or(now) + minute / per_minute.max(1);
        let free = full_at - now <= minute;
        if free {
            self.full_at = Some(full_at);
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_limit_allows_a_burst_and_then_one_at_a_time() {
        let (mut rate_limit, start) = (RateLimit::default(), Instant::now());
        let mut free_after = |millis| {
            let now = start + Duration::from_millis(millis);
            (0..100).filter(|_| rate_limit.take(now, 60)).count()
        };
        assert_eq!(free_after(0), 60);
        assert_eq!(free_after(0), 0);
        assert_eq!(free_after(2500), 2);
        assert_eq!(free_after(3_600_000), 60, "an hour allows no more than a minute");
    }

    #[test]
    fn sessions_of_other_hosts_count_in_their_trees() {
        let limits = Limits { depth: 2, descendants: 3, sessions: 2, ..Limits::default() };
        let reservations = Reservations::default();
        let ids = [(); 4].map(|()| SessionId::random());
        let below = |id| AskedOf::Session { id };
        let [top, child, grandchild, sibling] = ids;
        let family = [(top, AskedOf::Operator), (child, below(top)), (grandchild, below(child))];
        reservations.set_elsewhere(family.clone().into_iter());
        let reserve = |answers_to| reservations.reserve_session(SessionId::random(), &answers_to, &limits);
        assert_eq!(reserve(below(grandchild)), Err(Limit::Depth));
        assert_eq!(reserve(below(child)), Ok(()));
        assert_eq!(reserve(below(top)), Err(Limit::Descendants));
        reservations.set_elsewhere(family.into_iter().chain([(sibling, AskedOf::Operator)]));
        assert_eq!(
            reserve(below(sibling)),
            Ok(()),
            "only the sessions of this host count for the limit of the hub"
        );
        assert_eq!(reserve(AskedOf::Operator), Err(Limit::Sessions));
    }

    #[test]
    fn a_tree_grows_only_to_its_limits_of_depth_and_size() {
        let limits = Limits { depth: 2, descendants: 3, ..Limits::default() };
        let reservations = Reservations::default();
        let reserve_session = |answers_to: &AskedOf| {
            let id = SessionId::random();
            reservations.reserve_session(id, answers_to, &limits).map(|()| AskedOf::Session { id })
        };
        let outside = AskedOf::Parent { id: "outside".to_owned() };
        for above in [AskedOf::Operator, outside.clone()] {
            let top = reserve_session(&above).expect("a first one");
            let child = reserve_session(&top).expect("one below it");
            let grandchild = reserve_session(&child).expect("and one below that");
            assert_eq!(reserve_session(&grandchild), Err(Limit::Depth));
            // The external agent has three descendants by now, the top session two.
            let one_more = reserve_session(&top);
            if above == outside {
                assert_eq!(one_more, Err(Limit::Descendants));
            } else {
                let one_more = one_more.expect("a third");
                assert_eq!(
                    reserve_session(&one_more),
                    Err(Limit::Descendants),
                    "the limit applies at any depth"
                );
                reserve_session(&above).expect("the operator has no such limit");
            }
        }
        let another =
            reserve_session(&AskedOf::Parent { id: "another".to_owned() }).expect("a separate tree");
        let AskedOf::Session { id } = another else { panic!("{another:?}") };
        reservations.release_session(id);
        assert!(!lock(&reservations.sessions).contains_key(&id));
    }

    #[test]
    fn an_approval_reported_twice_is_counted_once() {
        let limits = Limits { open_approvals: 2, open_approvals_bytes: 100, ..Limits::default() };
        let reservations = Reservations::default();
        let [one, two, three] = [(); 3].map(|()| ApprovalId::random());
        reservations.add_approval(one, 60);
        reservations.add_approval(one, 60);
        assert_eq!(reservations.reserve_approval(two, 50, &limits), Err(Limit::OpenApprovalsBytes));
        assert_eq!(reservations.reserve_approval(two, 40, &limits), Ok(()));
        assert_eq!(reservations.reserve_approval(three, 0, &limits), Err(Limit::OpenApprovals));
        for _ in 0..2 {
            reservations.release_approval(one);
            reservations.release_approval(two);
        }
        assert_eq!(reservations.reserve_approval(three, 1000, &limits), Ok(()), "one alone always fits");
    }
}
