//! `claudecode.timeline`: when sessions worked and whom they waited for. It reads the facts; `history` turns them into lanes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use plexus_book::now;
use plexus_protocol::claudecode::{Lane, TimelineParams, TimelineResult};
use plexus_protocol::{Error, SessionId, UnixSeconds};
use plexus_store::{ApprovalSpan, Period, TurnStatus};

use crate::Hub;
use crate::callers::access::{self, Admitted, Needs};
use crate::errors::store_error;
use crate::history::lanes::{Chosen, choose, subtree};
use crate::history::timeline::{TurnTimes, Window, marks, spans};
use crate::hub::Method;
use crate::method::Audience;
use crate::tree::VisibleSession;

const DEFAULT_WINDOW_SECS: u64 = 3600;
const MAX_LANES: u64 = 200;
/// The maximum number of turns, and of approvals, that one call reads.
const MAX_ROWS: u64 = 20_000;
/// The maximum number of approvals that one call returns.
const MAX_MARKS: usize = 4000;
/// An approval that was open at the end of the window is found if it was resolved at most this long after the window.
const RESOLVED_LATER_SECS: u64 = 86_400;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.timeline",
        "Shows when your sessions worked, when they waited for a person or an agent, and their approvals.",
        Audience::Programs,
        Needs::Read,
        timeline,
    )
    .repeatable()
}

async fn timeline(hub: Arc<Hub>, caller: Admitted, params: TimelineParams) -> Result<TimelineResult, Error> {
    let now = now();
    let (window, limit) = window(&params, now)?;
    let mut seen = access::visible_sessions(hub.store(), &caller).await?;
    if params.session_id.is_some() || params.name.is_some() {
        let found =
            access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
        seen = subtree(seen, found.id);
    }
    let period = Period { from: window.from, to: window.to };
    let turns = hub.store().ended_turns(period, MAX_ROWS).await.map_err(store_error)?;
    let until = Period { to: window.to.saturating_add(RESOLVED_LATER_SECS), ..period };
    let mut approvals = hub.store().resolved_approvals(until, MAX_ROWS).await.map_err(store_error)?;
    let incomplete = [turns.len(), approvals.len()].iter().any(|rows| *rows as u64 >= MAX_ROWS);
    // Oldest first, so that marks of the same second keep their order.
    approvals.reverse();
    approvals.extend(hub.store().open_approval_spans().await.map_err(store_error)?);

    let mut activity = WindowActivity::of(&seen);
    for turn in turns {
        activity.turn(
            &window,
            turn.session,
            TurnTimes { started_at: turn.started_at, ended_at: Some(turn.ended_at) },
        );
    }
    for one in &seen {
        if let Some(turn) = one.session.turn.as_ref().filter(|turn| turn.status == TurnStatus::Running) {
            let times = TurnTimes { started_at: turn.started_at, ended_at: None };
            activity.turn(&window, one.session.row.id, times);
        }
    }
    approvals.into_iter().for_each(|approval| activity.approval(&window, approval));

    let Chosen { sessions, left_out } = choose(seen, &activity.active, limit);
    let mut lanes: Vec<Lane> = sessions.into_iter().map(|one| activity.lane(&window, one)).collect();
    keep_latest_marks(&mut lanes);
    let Window { from, to, resolution, .. } = window;
    Ok(TimelineResult::Ok {
        from,
        to,
        now,
        resolution_secs: resolution,
        lanes,
        more_lanes: left_out,
        incomplete,
    })
}

fn window(params: &TimelineParams, now: UnixSeconds) -> Result<(Window, usize), Error> {
    // The window contains the current second.
    let to = params.to.unwrap_or(now.saturating_add(1));
    let from = params.from.unwrap_or_else(|| to.saturating_sub(DEFAULT_WINDOW_SECS));
    if from >= to {
        return Err(Error::invalid("from", "must be before `to`"));
    }
    let limit = params.limit.unwrap_or(MAX_LANES);
    if !(1..=MAX_LANES).contains(&limit) {
        return Err(Error::invalid("limit", format!("must be between 1 and {MAX_LANES}")));
    }
    Ok((Window::new(from, to, now, params.resolution_secs), usize::try_from(limit).unwrap_or_default()))
}

/// The turns and approvals of the visible sessions in the window.
struct WindowActivity {
    visible: HashSet<SessionId>,
    turns: HashMap<SessionId, Vec<TurnTimes>>,
    approvals: HashMap<SessionId, Vec<ApprovalSpan>>,
    /// The time of each session's last activity in the window.
    active: HashMap<SessionId, UnixSeconds>,
}

impl WindowActivity {
    fn of(seen: &[VisibleSession]) -> Self {
        let visible = seen.iter().map(|one| one.session.row.id).collect();
        Self { visible, turns: HashMap::new(), approvals: HashMap::new(), active: HashMap::new() }
    }

    /// Records that a session was active between these two times. Returns `false` if the session is not visible, or was not
    /// active in the window.
    fn record(
        &mut self,
        window: &Window,
        session: SessionId,
        from: UnixSeconds,
        to: Option<UnixSeconds>,
    ) -> bool {
        let to = to.unwrap_or(window.now);
        let is_shown = self.visible.contains(&session) && window.shows(from, to);
        if is_shown {
            let active = self.active.entry(session).or_default();
            *active = (*active).max(to.min(window.to));
        }
        is_shown
    }

    fn turn(&mut self, window: &Window, session: SessionId, times: TurnTimes) {
        if self.record(window, session, times.started_at, times.ended_at) {
            self.turns.entry(session).or_default().push(times);
        }
    }

    fn approval(&mut self, window: &Window, span: ApprovalSpan) {
        let resolved_at = span.resolved.as_ref().map(|end| end.at);
        if self.record(window, span.session, span.asked_at, resolved_at) {
            self.approvals.entry(span.session).or_default().push(span);
        }
    }

    fn lane(&self, window: &Window, one: VisibleSession) -> Lane {
        let row = one.session.row;
        let turns = self.turns.get(&row.id).map_or(&[][..], Vec::as_slice);
        let approvals = self.approvals.get(&row.id).map_or(&[][..], Vec::as_slice);
        Lane {
            session_id: row.id,
            session_name: row.name,
            title: row.title,
            path: one.path,
            depth: one.depth,
            spans: spans(turns, approvals, window),
            marks: marks(approvals, window),
            more_marks: 0,
        }
    }
}

/// Removes the earliest approvals of all lanes until at most [`MAX_MARKS`] are left.
fn keep_latest_marks(lanes: &mut [Lane]) {
    let mut times: Vec<UnixSeconds> =
        lanes.iter().flat_map(|lane| &lane.marks).map(|mark| mark.asked_at).collect();
    if times.len() <= MAX_MARKS {
        return;
    }
    times.sort_unstable_by_key(|at| std::cmp::Reverse(*at));
    // If an approval is left out, so are all others of the same second.
    let after = times[MAX_MARKS];
    for lane in lanes {
        let before = lane.marks.len();
        lane.marks.retain(|mark| mark.asked_at > after);
        lane.more_marks = (before - lane.marks.len()) as u64;
    }
}
