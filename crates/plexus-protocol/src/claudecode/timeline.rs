//! The types of `claudecode.timeline`: when sessions worked and for whom they waited, one lane per session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ApprovalId, ApprovalStatus, SessionId, SessionName, UnixSeconds};

/// Parameters of `claudecode.timeline`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimelineParams {
    /// Only this session and all below it, by id.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Only this session and all below it, by name.
    #[serde(default)]
    pub name: Option<String>,
    /// The start of the window, in seconds since 1970; default: an hour before its end.
    #[serde(default)]
    pub from: Option<UnixSeconds>,
    /// The end of the window; default: now.
    #[serde(default)]
    pub to: Option<UnixSeconds>,
    /// The length of one interval in seconds; default and minimum: a thousandth of the window.
    #[serde(default)]
    pub resolution_secs: Option<u64>,
    /// Maximum number of lanes, up to 200; default 200.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// Result of `claudecode.timeline`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TimelineResult {
    /// The sessions that were active in the window, and their ancestors.
    Ok {
        /// The start of the window.
        from: UnixSeconds,
        /// Its end.
        to: UnixSeconds,
        /// The current time of the hub, where the lanes end.
        now: UnixSeconds,
        /// The length of one interval; longer than requested if the window would have more than 1000 of them.
        resolution_secs: u64,
        /// A parent before its children; siblings in the order of creation.
        lanes: Vec<Lane>,
        /// The number of active sessions without a lane. The most recently active sessions have lanes.
        #[serde(default, skip_serializing_if = "is_zero")]
        more_lanes: u64,
        /// Whether the window has more turns or approvals than one call reads, so that its beginning is incomplete.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        incomplete: bool,
    },
}

/// A session on the timeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lane {
    /// The session.
    pub session_id: SessionId,
    /// Its name.
    pub session_name: SessionName,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The names from the topmost session that you see down to this one.
    pub path: String,
    /// The number of levels below the topmost session that you see.
    pub depth: u32,
    /// Its states, in order. Between the spans it was idle.
    pub spans: Vec<LaneSpan>,
    /// Its approvals, in the order of their requests.
    pub marks: Vec<LaneMark>,
    /// The number of earlier approvals that are left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_marks: u64,
}

/// A period in which a session had one state. Of several states in one interval, the later variant of [`LaneState`] is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LaneSpan {
    /// The state.
    pub state: LaneState,
    /// When it started.
    pub from: UnixSeconds,
    /// When it ended.
    pub to: UnixSeconds,
}

/// The state of a session on the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LaneState {
    /// A turn was in progress, and no approval was open.
    Working,
    /// It waited for a decision of an agent.
    WaitingForAgent,
    /// It waited for a decision of a person.
    WaitingForPerson,
}

/// An approval on the timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LaneMark {
    /// The approval.
    pub approval_id: ApprovalId,
    /// The tool. Written by the child: do not trust it.
    pub tool_name: String,
    /// When it was requested.
    pub asked_at: UnixSeconds,
    /// Who was asked last.
    pub asked_of: Asked,
    /// Its status.
    pub status: ApprovalStatus,
    /// When it was resolved; omitted while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<UnixSeconds>,
    /// Who resolved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AnsweredBy>,
}

/// Who is asked for a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// The operator, or the holder of a token.
    Person,
    /// A session, or an agent outside the hub.
    Agent,
}

/// Who or what resolved an approval, or answered a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    /// A rule.
    Rule,
    /// The operator, or the holder of a token.
    Person,
    /// A session, or an agent outside the hub.
    Agent,
    /// The hub: the approval expired, was withdrawn, or could not be shown.
    Hub,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
