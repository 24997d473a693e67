//! The entries of the feed: a durable, numbered list that `wait` and other readers follow.

use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::{ApprovalId, ApprovalStatus, Decider, SessionId, SessionName};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, json};

use super::TurnStatus;

/// The kind of a feed entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedKind {
    /// An approval was requested.
    Asked,
    /// An approval was resolved.
    Resolved,
    /// A turn ended.
    Finished,
    /// Something else.
    Notice,
}

/// One entry of the feed.
#[derive(Debug, Clone, PartialEq)]
pub struct FeedRow {
    /// Its number, from 1, over all addressees.
    pub number: u64,
    /// The key of its addressee ([`plexus_protocol::AskedOf::key`]).
    pub to: String,
    /// The session it is about.
    pub session: SessionId,
    /// What happened.
    pub entry: FeedEntry,
}

impl FeedRow {
    /// The kind of the entry.
    pub fn kind(&self) -> FeedKind {
        self.entry.kind()
    }

    /// The approval that the entry is about, if it is about one.
    pub fn approval(&self) -> Option<ApprovalId> {
        match self.entry {
            FeedEntry::Asked { approval, .. } | FeedEntry::Resolved { approval, .. } => Some(approval),
            FeedEntry::Finished { .. } | FeedEntry::BudgetLow(_) | FeedEntry::Notice(_) => None,
        }
    }
}

/// What a feed entry reports.
#[derive(Debug, Clone, PartialEq)]
pub enum FeedEntry {
    /// An approval is addressed to the addressee of the entry.
    Asked {
        /// The approval.
        approval: ApprovalId,
        /// Its turn; 0 outside any.
        turn: u64,
    },
    /// An approval of this addressee is resolved.
    Resolved {
        /// The approval.
        approval: ApprovalId,
        /// Its turn; 0 outside any.
        turn: u64,
        /// Its result. Early versions did not store it.
        resolution: Option<Resolution>,
    },
    /// A turn ended.
    Finished {
        /// The turn.
        turn: u64,
        /// How it ended.
        status: TurnStatus,
        /// Its result, or what went wrong.
        summary: Option<String>,
    },
    /// Most of a budget is used.
    BudgetLow(BudgetNotice),
    /// A notice of the hub, as it goes to clients.
    Notice(Value),
}

/// How an approval was resolved, and by whom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resolution {
    /// Its final status.
    pub status: ApprovalStatus,
    /// Who resolved it.
    pub by: Decider,
}

/// The state of a budget that is mostly used. Amounts are in dollars, seconds or counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BudgetNotice {
    /// The session with the budget.
    pub session_id: SessionId,
    /// Its name at that time.
    pub session_name: SessionName,
    /// The limit.
    pub limit: BudgetLimit,
    /// What was granted.
    pub granted: Number,
    /// What is used.
    pub used: Number,
    /// What is left.
    pub left: Number,
}

/// The columns of a feed entry. Their contents are the format of stored data.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FeedColumns {
    pub(crate) kind: FeedKind,
    pub(crate) approval: Option<ApprovalId>,
    pub(crate) turn: Option<u64>,
    pub(crate) data: Value,
}

impl FeedEntry {
    /// Its kind.
    pub fn kind(&self) -> FeedKind {
        match self {
            Self::Asked { .. } => FeedKind::Asked,
            Self::Resolved { .. } => FeedKind::Resolved,
            Self::Finished { .. } => FeedKind::Finished,
            Self::BudgetLow(_) | Self::Notice(_) => FeedKind::Notice,
        }
    }

    pub(crate) fn columns(&self) -> FeedColumns {
        let kind = self.kind();
        let (approval, turn, data) = match self {
            Self::Asked { approval, turn } => (Some(*approval), Some(*turn), json!({})),
            Self::Resolved { approval, turn, resolution } => {
                (Some(*approval), Some(*turn), json!(resolution))
            }
            Self::Finished { turn, status, summary } => {
                (None, Some(*turn), json!({"status": status, "summary": summary}))
            }
            Self::BudgetLow(notice) => (None, None, notice.to_json()),
            Self::Notice(data) => (None, None, data.clone()),
        };
        FeedColumns { kind, approval, turn, data }
    }
}

impl TryFrom<FeedColumns> for FeedEntry {
    type Error = &'static str;

    fn try_from(columns: FeedColumns) -> Result<Self, Self::Error> {
        let FeedColumns { kind, approval, turn, data } = columns;
        let approval = approval.ok_or("a feed entry names no approval");
        let turn = turn.unwrap_or(0);
        Ok(match kind {
            FeedKind::Asked => Self::Asked { approval: approval?, turn },
            FeedKind::Resolved => {
                Self::Resolved { approval: approval?, turn, resolution: serde_json::from_value(data).ok() }
            }
            FeedKind::Finished => Self::Finished {
                turn,
                status: TurnStatus::deserialize(&data["status"]).unwrap_or(TurnStatus::Failed),
                summary: data["summary"].as_str().map(str::to_owned),
            },
            FeedKind::Notice => match BudgetNotice::from_json(&data) {
                Some(notice) => Self::BudgetLow(notice),
                None => Self::Notice(data),
            },
        })
    }
}

impl BudgetNotice {
    const TYPE: &str = "budget";

    /// The notice as it goes to clients.
    pub fn to_json(&self) -> Value {
        let Self { session_id, session_name, limit, granted, used, left } = self;
        json!({
            "type": Self::TYPE,
            "session_id": session_id,
            "session_name": session_name,
            "limit": limit,
            "granted": granted,
            "used": used,
            "left": left,
        })
    }

    fn from_json(data: &Value) -> Option<Self> {
        if data.get("type")? != Self::TYPE {
            return None;
        }
        Self::deserialize(data).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_entries_are_read_as_they_were_written() {
        let approval = ApprovalId::random();
        let resolution = Resolution { status: ApprovalStatus::Denied, by: Decider::Operator };
        let budget = BudgetNotice {
            session_id: SessionId::random(),
            session_name: "a".to_owned().try_into().unwrap(),
            limit: BudgetLimit::CostUsd,
            granted: 10.into(),
            used: Number::from_f64(8.5).unwrap(),
            left: Number::from_f64(1.5).unwrap(),
        };
        let finished = |summary: Option<&str>| FeedEntry::Finished {
            turn: 3,
            status: TurnStatus::Interrupted,
            summary: summary.map(str::to_owned),
        };
        for (entry, data) in [
            (FeedEntry::Asked { approval, turn: 0 }, json!({})),
            (
                FeedEntry::Resolved { approval, turn: 2, resolution: Some(resolution) },
                json!({"status": "denied", "by": {"kind": "operator"}}),
            ),
            (FeedEntry::Resolved { approval, turn: 2, resolution: None }, Value::Null),
            (finished(Some("done")), json!({"status": "interrupted", "summary": "done"})),
            (finished(None), json!({"status": "interrupted", "summary": null})),
            (FeedEntry::BudgetLow(budget.clone()), budget.to_json()),
            (FeedEntry::Notice(json!({"type": "stalled"})), json!({"type": "stalled"})),
            (FeedEntry::Notice(json!({"type": "budget"})), json!({"type": "budget"})),
            (FeedEntry::Notice(json!("text")), json!("text")),
        ] {
            let columns = entry.columns();
            assert_eq!(columns.data.to_string(), data.to_string());
            assert_eq!(FeedEntry::try_from(columns), Ok(entry));
        }
    }

    #[test]
    fn an_unreadable_end_of_a_turn_is_a_failure() {
        let data = Value::Null;
        let columns = FeedColumns { kind: FeedKind::Finished, approval: None, turn: None, data };
        let entry = FeedEntry::try_from(columns).unwrap();
        assert_eq!(entry, FeedEntry::Finished { turn: 0, status: TurnStatus::Failed, summary: None });
    }
}
