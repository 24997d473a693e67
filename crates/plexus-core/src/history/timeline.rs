//! Computes one lane of the timeline: when a session worked or waited in a window of time, and its approvals.

use plexus_protocol::claudecode::{Asked, LaneMark, LaneSpan, LaneState};
use plexus_protocol::{ApprovalStatus, UnixSeconds, visible};
use plexus_store::ApprovalSpan;

use super::answered_by;
use super::waits::{asked, waits};

/// The maximum number of intervals in a window.
pub(crate) const MAX_CELLS: u64 = 1000;

/// The window of time that is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) from: UnixSeconds,
    pub(crate) to: UnixSeconds,
    pub(crate) now: UnixSeconds,
    /// The length of one interval.
    pub(crate) resolution: u64,
}

impl Window {
    /// A window with at most [`MAX_CELLS`] intervals of at least the requested length.
    pub(crate) fn new(from: UnixSeconds, to: UnixSeconds, now: UnixSeconds, requested: Option<u64>) -> Self {
        let shortest = to.saturating_sub(from).div_ceil(MAX_CELLS).max(1);
        Self { from, to, now, resolution: requested.unwrap_or(shortest).max(shortest) }
    }

    /// Whether the window shows a part of this period.
    pub(crate) fn shows(&self, from: UnixSeconds, to: UnixSeconds) -> bool {
        from < self.to && to >= self.from && from <= self.now
    }

    fn cell(&self, at: UnixSeconds) -> usize {
        usize::try_from(at.saturating_sub(self.from) / self.resolution).unwrap_or(usize::MAX)
    }

    /// The end of the window, or the present if that is earlier.
    fn end(&self) -> UnixSeconds {
        self.to.min(self.now.saturating_add(1))
    }
}

/// The start and the end of a turn. A turn without an end is in progress.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnTimes {
    pub(crate) started_at: UnixSeconds,
    pub(crate) ended_at: Option<UnixSeconds>,
}

/// The states of a session, from its turns and approvals in any order. Each interval shows the strongest state in it, so that
/// a short wait is visible however long the window is.
pub(crate) fn spans(turns: &[TurnTimes], approvals: &[ApprovalSpan], window: &Window) -> Vec<LaneSpan> {
    let cells = window.cell(window.end().saturating_sub(1)) + 1;
    let mut states: Vec<Option<LaneState>> = vec![None; cells];
    let mut paint = |from: UnixSeconds, to: UnixSeconds, state: LaneState| {
        let to = to.min(window.end());
        if !window.shows(from, to) {
            return;
        }
        // Something that starts and ends in the same second takes one interval.
        let last = window.cell(to.saturating_sub(1).max(from)).min(cells - 1);
        for cell in &mut states[window.cell(from).min(last)..=last] {
            *cell = (*cell).max(Some(state));
        }
    };
    for turn in turns {
        paint(turn.started_at, turn.ended_at.unwrap_or(window.now.saturating_add(1)), LaneState::Working);
    }
    for wait in approvals.iter().flat_map(|approval| waits(approval, window.now.saturating_add(1))) {
        let state = match wait.asked {
            Asked::Person => LaneState::WaitingForPerson,
            Asked::Agent => LaneState::WaitingForAgent,
        };
        paint(wait.from, wait.to, state);
    }
    merged(&states, window)
}

/// Joins equal neighbours.
fn merged(states: &[Option<LaneState>], window: &Window) -> Vec<LaneSpan> {
    let mut spans: Vec<LaneSpan> = Vec::new();
    for (cell, state) in states.iter().enumerate() {
        let Some(state) = *state else { continue };
        let from = window.from + cell as u64 * window.resolution;
        let to = (from + window.resolution).min(window.end());
        match spans.last_mut() {
            Some(last) if last.state == state && last.to == from => last.to = to,
            _ => spans.push(LaneSpan { state, from, to }),
        }
    }
    spans
}

/// The approvals of a session that were open in the window, in the order of their requests.
pub(crate) fn marks(approvals: &[ApprovalSpan], window: &Window) -> Vec<LaneMark> {
    let shown = approvals.iter().filter(|approval| {
        let end = approval.resolved.as_ref().map_or(window.now, |end| end.at);
        window.shows(approval.asked_at, end)
    });
    let mut marks: Vec<LaneMark> = shown.map(mark).collect();
    marks.sort_by_key(|mark| mark.asked_at);
    marks
}

fn mark(span: &ApprovalSpan) -> LaneMark {
    let mut tool_name = visible(&span.tool_name).unwrap_or_else(|| span.tool_name.clone());
    tool_name.truncate(tool_name.floor_char_boundary(100));
    let end = span.resolved.as_ref();
    LaneMark {
        approval_id: span.approval,
        tool_name,
        asked_at: span.asked_at,
        asked_of: asked(&span.asked_of),
        status: end.map_or(ApprovalStatus::Pending, |end| end.status),
        resolved_at: end.map(|end| end.at),
        by: end.map(|end| answered_by(&end.by, end.right)),
    }
}

#[cfg(test)]
mod tests {
    use plexus_protocol::claudecode::AnsweredBy;
    use plexus_protocol::{AskedOf, SessionId};

    use super::super::waits::tests::{agent, approval};
    use super::*;

    fn turn(started_at: u64, ended_at: Option<u64>) -> TurnTimes {
        TurnTimes { started_at, ended_at }
    }

    fn asks(asked_at: u64, of: AskedOf, resolved_at: Option<u64>) -> ApprovalSpan {
        approval(SessionId::random(), asked_at, &[], of, resolved_at)
    }

    /// The spans as text: `w` working, `p` waiting for a person, `a` for an agent.
    fn drawn(turns: &[TurnTimes], approvals: &[ApprovalSpan], window: &Window) -> String {
        let letter = |state| match state {
            LaneState::Working => 'w',
            LaneState::WaitingForPerson => 'p',
            LaneState::WaitingForAgent => 'a',
        };
        let shown = spans(turns, approvals, window);
        assert!(
            shown.iter().all(|span| span.from < span.to && span.from >= window.from && span.to <= window.to)
        );
        assert!(shown.windows(2).all(|two| two[0].to <= two[1].from));
        let texts = shown.iter().map(|span| format!("{}{}-{}", letter(span.state), span.from, span.to));
        texts.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_lane_shows_what_a_session_did_and_whom_it_waited_for() {
        let (person, an_agent) = (AskedOf::Operator, agent());
        let escalated = |asked_at, left_at, resolved_at| {
            approval(SessionId::random(), asked_at, &[(agent(), left_at)], AskedOf::Operator, resolved_at)
        };
        let window = Window::new(100, 200, 1000, None);
        for (what, turns, approvals, expected) in [
            ("nothing", vec![], vec![], ""),
            ("a turn", vec![turn(110, Some(120))], vec![], "w110-120"),
            ("two turns", vec![turn(150, Some(160)), turn(110, Some(120))], vec![], "w110-120 w150-160"),
            (
                "turns that follow each other",
                vec![turn(110, Some(120)), turn(120, Some(130))],
                vec![],
                "w110-130",
            ),
            (
                "a turn that is stopped while it waits",
                vec![turn(110, Some(130))],
                vec![asks(120, person.clone(), Some(130))],
                "w110-120 p120-130",
            ),
            ("a turn across the whole window", vec![turn(50, Some(300))], vec![], "w100-200"),
            ("a turn in progress", vec![turn(150, None)], vec![], "w150-200"),
            ("a turn of one second", vec![turn(150, Some(150))], vec![], "w150-151"),
            ("before and after", vec![turn(10, Some(99)), turn(200, Some(210))], vec![], ""),
            (
                "an approval in a turn",
                vec![turn(110, Some(160))],
                vec![asks(120, person.clone(), Some(140))],
                "w110-120 p120-140 w140-160",
            ),
            (
                "an approval that escalated",
                vec![turn(110, Some(160))],
                vec![escalated(120, 130, Some(140))],
                "w110-120 a120-130 p130-140 w140-160",
            ),
            (
                "overlapping approvals",
                vec![turn(110, Some(180))],
                vec![asks(120, an_agent.clone(), Some(160)), asks(130, person.clone(), Some(140))],
                "w110-120 a120-130 p130-140 a140-160 w160-180",
            ),
            ("an approval outside any turn", vec![], vec![asks(120, person.clone(), Some(130))], "p120-130"),
            ("an open approval", vec![turn(110, None)], vec![asks(190, an_agent, None)], "w110-190 a190-200"),
            (
                "an approval that was open before and after the window",
                vec![turn(10, None)],
                vec![asks(20, person.clone(), Some(500))],
                "p100-200",
            ),
            (
                "the hub was down from 120 to 180, and ended the turn when it returned",
                vec![turn(110, Some(180))],
                vec![asks(115, person, Some(180))],
                "w110-115 p115-180",
            ),
        ] {
            assert_eq!(drawn(&turns, &approvals, &window), expected, "{what}");
        }
    }

    #[test]
    fn nothing_is_shown_after_the_present() {
        let window = Window::new(100, 200, 150, None);
        assert_eq!(drawn(&[turn(120, None)], &[asks(140, agent(), None)], &window), "w120-140 a140-151");
        assert_eq!(drawn(&[turn(120, None)], &[], &Window::new(200, 300, 150, None)), "");
    }

    #[test]
    fn short_times_are_merged_and_a_wait_stays_visible() {
        let window = Window::new(0, 100, 1000, Some(10));
        let busy: Vec<TurnTimes> = (0..50).map(|n| turn(n * 2, Some(n * 2 + 1))).collect();
        assert_eq!(drawn(&busy, &[], &window), "w0-100");
        let asked = [asks(33, AskedOf::Operator, Some(34)), asks(36, agent(), Some(37))];
        assert_eq!(drawn(&busy, &asked, &window), "w0-30 p30-40 w40-100");
    }

    #[test]
    fn a_window_has_a_bounded_number_of_intervals() {
        let year = Window::new(0, 365 * 86_400, u64::MAX / 2, Some(1));
        assert_eq!(year.resolution, 31_536);
        assert!(year.to / year.resolution <= MAX_CELLS);
        assert_eq!(Window::new(0, 500, 1000, None).resolution, 1);
        assert_eq!(Window::new(0, 500, 1000, Some(7)).resolution, 7);
        assert_eq!(Window::new(0, 500, 1000, Some(0)).resolution, 1);
        let often: Vec<TurnTimes> = (0..10_000).map(|n| turn(n * 3000, Some(n * 3000 + 10))).collect();
        assert!(spans(&often, &[], &year).len() <= 1000);
    }

    #[test]
    fn approvals_become_marks_in_the_order_of_their_requests() {
        let window = Window::new(100, 200, 1000, None);
        let approvals = [
            asks(150, agent(), None),
            asks(50, AskedOf::Operator, Some(120)),
            asks(10, AskedOf::Operator, Some(90)),
            asks(200, AskedOf::Operator, Some(210)),
        ];
        let marks = marks(&approvals, &window);
        let shown: Vec<_> = marks.iter().map(|mark| (mark.asked_at, mark.resolved_at, mark.by)).collect();
        assert_eq!(shown, [(50, Some(120), Some(AnsweredBy::Person)), (150, None, None)]);
        assert_eq!(marks[1].status, ApprovalStatus::Pending);
        assert_eq!(marks[1].asked_of, Asked::Agent);
    }
}
