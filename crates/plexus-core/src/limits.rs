//! How much there may be of everything, so that neither one agent nor many can use the hub up. The settings, and the
//! two counts that are needed before something is stored; each limit is enforced where what it limits comes from.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plexus_protocol::{ApprovalId, Error, ErrorKind, Object, SessionId};
use serde_json::Value;

/// How much there may be of everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Living sessions.
    pub sessions: usize,
    /// Open approvals of all sessions together.
    pub open_approvals: usize,
    /// Bytes of what they ask about, together.
    pub open_approvals_bytes: usize,
    /// Open approvals of one session.
    pub open_approvals_per_session: usize,
    /// Questions of one session in a minute, and at once after a quiet one.
    pub asks_per_minute: u32,
    /// Bytes of one event; what is larger is cut.
    pub event_bytes: usize,
    /// Bytes that a child may write in one run.
    pub journal_bytes: u64,
    /// Bytes of the disk that are kept for decisions.
    pub reserve_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 1000,
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

/// A limit that was reached, by the name of its setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    Sessions,
    OpenApprovals,
    OpenApprovalsBytes,
    OpenApprovalsPerSession,
    AsksPerMinute,
    Journal,
    Reserve,
}

impl Limit {
    pub(crate) const ALL: [Self; 7] = [
        Self::Sessions,
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
            Self::OpenApprovals => "open_approvals",
            Self::OpenApprovalsBytes => "open_approvals_mb",
            Self::OpenApprovalsPerSession => "open_approvals_per_session",
            Self::AsksPerMinute => "asks_per_minute",
            Self::Journal => "journal_mb",
            Self::Reserve => "reserve_mb",
        }
    }

    /// What an agent is told whose question was not even asked.
    pub(crate) fn to_agent(self, limits: &Limits) -> String {
        let why: &dyn fmt::Display = match self {
            Self::OpenApprovals => {
                &format_args!("{} questions of all agents are open", limits.open_approvals)
            }
            Self::OpenApprovalsBytes => &"too much is being asked about at once, of all agents together",
            Self::OpenApprovalsPerSession => {
                &format_args!("{} questions of this session are open", limits.open_approvals_per_session)
            }
            _ => &format_args!("this session asks more than {} times a minute", limits.asks_per_minute),
        };
        format!(
            "Nobody was asked about this call, because {why}; so it did not run. This is no refusal: wait until some \
             are answered, or for a while, and then try again."
        )
    }
}

/// What is counted before it is stored. Ids, so that nothing counts twice however often it is told.
#[derive(Debug, Default)]
pub(crate) struct Room {
    sessions: Mutex<HashSet<SessionId>>,
    open: Mutex<OpenBook>,
}

#[derive(Debug, Default)]
struct OpenBook {
    /// How much each asks about.
    bytes: HashMap<ApprovalId, usize>,
    in_all: usize,
}

impl Room {
    /// Makes room for a session that is about to be stored.
    pub(crate) fn admit(&self, session: SessionId, limits: &Limits) -> Result<(), Error> {
        let most = limits.sessions;
        let mut sessions = locked(&self.sessions);
        if sessions.len() < most {
            sessions.insert(session);
            return Ok(());
        }
        let message = format!(
            "there are {most} sessions, and more are not allowed: delete some with claudecode.delete, or raise \
             `sessions` under [limits] in plexus.toml"
        );
        Err(Error::new(ErrorKind::LimitReached, message)
            .with("limit", Limit::Sessions.name())
            .with("most", most))
    }

    /// A session is there from before.
    pub(crate) fn lives(&self, session: SessionId) {
        locked(&self.sessions).insert(session);
    }

    /// A session is gone, or did not come to be.
    pub(crate) fn leaves(&self, session: SessionId) {
        locked(&self.sessions).remove(&session);
    }

    /// Makes room for an approval that is about to be stored and asks about so many bytes.
    pub(crate) fn ask(&self, approval: ApprovalId, bytes: usize, limits: &Limits) -> Result<(), Limit> {
        let mut open = locked(&self.open);
        if open.bytes.len() >= limits.open_approvals {
            return Err(Limit::OpenApprovals);
        }
        // A single one always fits: what is too large for anyone to look at was denied before.
        if open.in_all > 0 && open.in_all + bytes > limits.open_approvals_bytes {
            return Err(Limit::OpenApprovalsBytes);
        }
        open.insert(approval, bytes);
        Ok(())
    }

    /// An approval is open from before.
    pub(crate) fn is_open(&self, approval: ApprovalId, bytes: usize) {
        locked(&self.open).insert(approval, bytes);
    }

    /// An approval has come to its end.
    pub(crate) fn resolved(&self, approval: ApprovalId) {
        let mut open = locked(&self.open);
        let bytes = open.bytes.remove(&approval).unwrap_or(0);
        open.in_all -= bytes;
    }
}

impl OpenBook {
    fn insert(&mut self, approval: ApprovalId, bytes: usize) {
        self.in_all += bytes;
        self.in_all -= self.bytes.insert(approval, bytes).unwrap_or(0);
    }
}

fn locked<T>(counted: &Mutex<T>) -> MutexGuard<'_, T> {
    counted.lock().unwrap_or_else(PoisonError::into_inner)
}

/// About how many bytes an input takes.
pub(crate) fn weight(input: &Object) -> usize {
    fn of(value: &Value) -> usize {
        match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(of).sum::<usize>() + items.len(),
            Value::Object(fields) => weight(fields),
            Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        }
    }
    input.iter().map(|(name, value)| name.len() + 8 + of(value)).sum()
}

/// A token bucket: so many a minute on the long run, and as many at once after a quiet minute.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// When the bucket will be full again, if nothing is taken.
    full_at: Option<Instant>,
}

impl Pace {
    /// Takes one now, if there is one.
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
    fn a_pace_allows_a_burst_and_then_one_after_the_other() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let mut free_after = |millis| {
            let now = start + Duration::from_millis(millis);
            (0..100).filter(|_| pace.take(now, 60)).count()
        };
        assert_eq!(free_after(0), 60);
        assert_eq!(free_after(0), 0);
        assert_eq!(free_after(2500), 2);
        assert_eq!(free_after(3_600_000), 60, "an hour is no more than a minute");
    }

    #[test]
    fn room_is_counted_once_however_often_it_is_told() {
        let limits = Limits { open_approvals: 2, open_approvals_bytes: 100, ..Limits::default() };
        let room = Room::default();
        let [one, two, three] = [(); 3].map(|()| ApprovalId::random());
        room.is_open(one, 60);
        room.is_open(one, 60);
        assert_eq!(room.ask(two, 50, &limits), Err(Limit::OpenApprovalsBytes));
        assert_eq!(room.ask(two, 40, &limits), Ok(()));
        assert_eq!(room.ask(three, 0, &limits), Err(Limit::OpenApprovals));
        for _ in 0..2 {
            room.resolved(one);
            room.resolved(two);
        }
        assert_eq!(room.ask(three, 1000, &limits), Ok(()), "one alone always fits");
    }
}
