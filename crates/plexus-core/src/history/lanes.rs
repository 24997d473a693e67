//! Chooses the sessions that get a lane: sessions that were active in the window, the most recently active first, and their
//! ancestors.

use std::collections::HashMap;

use plexus_protocol::{SessionId, UnixSeconds};

use crate::tree::VisibleSession;

/// The chosen sessions.
#[derive(Debug)]
pub(crate) struct Chosen {
    /// In tree order.
    pub(crate) sessions: Vec<VisibleSession>,
    /// The number of active sessions that are left out.
    pub(crate) left_out: u64,
}

/// Chooses at most `limit` sessions. `seen` must be in tree order; `active` has the time of each session's last activity.
pub(crate) fn choose(
    seen: Vec<VisibleSession>,
    active: &HashMap<SessionId, UnixSeconds>,
    limit: usize,
) -> Chosen {
    let parents = parents(&seen);
    let mut latest: Vec<(UnixSeconds, usize)> = Vec::new();
    for (at, one) in seen.iter().enumerate() {
        latest.extend(active.get(&one.session.row.id).map(|when| (*when, at)));
    }
    // Of two sessions that were active at the same time, the first in the tree is kept.
    latest.sort_by_key(|(when, at)| (std::cmp::Reverse(*when), *at));
    let mut chosen = vec![false; seen.len()];
    let (mut count, mut left_out) = (0, 0);
    for (_, at) in latest {
        let missing: Vec<usize> =
            std::iter::successors(Some(at), |at| parents[*at]).take_while(|at| !chosen[*at]).collect();
        if count + missing.len() > limit {
            left_out += 1;
            continue;
        }
        count += missing.len();
        missing.into_iter().for_each(|at| chosen[at] = true);
    }
    let sessions = seen.into_iter().zip(chosen).filter_map(|(one, chosen)| chosen.then_some(one)).collect();
    Chosen { sessions, left_out }
}

/// The session `id` and all its descendants.
pub(crate) fn subtree(seen: Vec<VisibleSession>, id: SessionId) -> Vec<VisibleSession> {
    let mut rest = seen.into_iter().skip_while(|one| one.session.row.id != id);
    let Some(top) = rest.next() else { return Vec::new() };
    let depth = top.depth;
    std::iter::once(top).chain(rest.take_while(|one| one.depth > depth)).collect()
}

/// The index of each session's parent in `seen`.
fn parents(seen: &[VisibleSession]) -> Vec<Option<usize>> {
    let top = seen.first().map_or(0, |one| one.depth);
    let mut path: Vec<usize> = Vec::new();
    let mut parents = Vec::with_capacity(seen.len());
    for (at, one) in seen.iter().enumerate() {
        path.truncate(one.depth.saturating_sub(top) as usize);
        parents.push(path.last().copied());
        path.push(at);
    }
    parents
}

#[cfg(test)]
mod tests {
    use plexus_protocol::{AskedOf, Principal};
    use plexus_store::{SessionRow, SessionWithState};

    use super::*;
    use crate::test_support::session_row;
    use crate::tree::visible_to;

    fn session(name: &str, parent: Option<&SessionWithState>) -> SessionWithState {
        let answers_to = parent.map_or(AskedOf::Operator, |parent| AskedOf::Session { id: parent.row.id });
        let row = SessionRow { answers_to, ..session_row(name) };
        let (open, calls, budget) = (Vec::new(), Vec::new(), Vec::new());
        SessionWithState { row, turn: None, open, calls, budget, last_event_at: None }
    }

    fn names(sessions: &[VisibleSession]) -> Vec<&str> {
        sessions.iter().map(|one| one.session.row.name.as_str()).collect()
    }

    #[test]
    fn the_latest_sessions_are_chosen_with_those_above_them() {
        let a = session("a", None);
        let a1 = session("a1", Some(&a));
        let a2 = session("a2", Some(&a));
        let b = session("b", None);
        let b1 = session("b1", Some(&b));
        let active = HashMap::from([(a1.row.id, 5), (a2.row.id, 9), (b1.row.id, 7)]);
        let all = vec![a, a1, a2, b.clone(), b1];
        let seen = || visible_to(&Principal::Operator, all.clone());
        let chosen = |limit| choose(seen(), &active, limit);
        assert_eq!(names(&chosen(10).sessions), ["a", "a1", "a2", "b", "b1"]);
        assert_eq!(chosen(10).left_out, 0);
        assert_eq!(names(&chosen(4).sessions), ["a", "a2", "b", "b1"]);
        assert_eq!(chosen(4).left_out, 1);
        assert_eq!(names(&chosen(3).sessions), ["a", "a1", "a2"], "the parent of b1 has no room");
        assert_eq!(names(&choose(seen(), &HashMap::new(), 10).sessions), [""; 0]);
        assert_eq!(names(&subtree(seen(), b.row.id)), ["b", "b1"]);
        let below = subtree(seen(), all[2].row.id);
        assert_eq!(names(&choose(below, &active, 10).sessions), ["a2"], "it starts at another depth");
        assert_eq!(names(&subtree(seen(), SessionId::random())), [""; 0]);
    }
}
