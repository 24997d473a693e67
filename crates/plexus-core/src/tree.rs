//! The existing sessions as trees: the order and depth in which a caller sees them, and the totals of each session with
//! its descendants. All of it is computed from one read of the store, however many sessions exist. This module only
//! computes ancestry; `access` decides what a caller may do with a session.

use std::collections::{HashMap, HashSet};

use plexus_protocol::claudecode::TreeView;
use plexus_protocol::{AskedOf, Principal, SessionName, join_path, root_path};
use plexus_store::{SessionWithState, TurnStatus};

/// Trees are a few levels deep. This limit only stops a walk over a damaged store.
pub(crate) const MAX_DEPTH: usize = 64;

/// A session as a caller sees it.
#[derive(Debug)]
pub(crate) struct VisibleSession {
    /// The session.
    pub(crate) session: SessionWithState,
    /// Its depth below the topmost session that the caller sees.
    pub(crate) depth: u32,
    /// The names from that topmost session down to this one, such as `lead/worker`.
    pub(crate) path: String,
    /// The totals of the session and its descendants.
    pub(crate) tree: TreeView,
}

/// The sessions that a caller sees, parents before children, siblings in order of creation. `sessions` must be sorted
/// oldest first.
pub(crate) fn visible_to(principal: &Principal, sessions: Vec<SessionWithState>) -> Vec<VisibleSession> {
    let ids: HashSet<String> = sessions.iter().map(key).collect();
    let mut below: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, session) in sessions.iter().enumerate() {
        below.entry(session.row.answers_to.key()).or_default().push(at);
    }
    let is_top = |session: &SessionWithState| match principal {
        // A session without an existing parent is the root of its own tree.
        Principal::Operator | Principal::Token { .. } => !ids.contains(&session.row.answers_to.key()),
        Principal::Parent { .. } => session.row.answers_to == principal.asked_as(),
        Principal::Session { id, .. } => session.row.id == *id,
    };
    let tops = sessions.iter().enumerate().rev().filter(|(_, it)| is_top(it));
    let mut left: Vec<Unvisited> = tops
        .map(|(at, it)| Unvisited {
            at,
            depth: 0,
            path: top_path(principal, &it.row.name, &it.row.answers_to),
        })
        .collect();
    let names: Vec<String> = sessions.iter().map(|it| it.row.name.to_string()).collect();
    let mut sessions: Vec<Option<SessionWithState>> = sessions.into_iter().map(Some).collect();
    let mut seen: Vec<VisibleSession> = Vec::new();
    while let Some(Unvisited { at, depth, path }) = left.pop() {
        // Each session is visited once, even if a damaged store makes it its own ancestor.
        let Some(session) = sessions[at].take() else { continue };
        let children = below.get(&key(&session)).into_iter().flatten();
        left.extend(children.rev().map(|child| Unvisited {
            at: *child,
            depth: depth + 1,
            path: join_path(&path, &names[*child]),
        }));
        let tree = alone(&session);
        seen.push(VisibleSession { session, depth, path, tree });
    }
    add_up(&mut seen);
    seen
}

/// The sessions without the archived ones. An archived session stays if one below it is not archived. `seen` must be in tree
/// order; the totals of each session still count its archived descendants.
pub(crate) fn without_archived(seen: Vec<VisibleSession>) -> Vec<VisibleSession> {
    let mut listed: Vec<VisibleSession> = Vec::with_capacity(seen.len());
    for one in seen.into_iter().rev() {
        // The session that was listed last follows this one in tree order. If it is deeper, it is below this one: a session
        // between the two would be above it and therefore listed.
        let is_above = listed.last().is_some_and(|next| next.depth > one.depth);
        if one.session.row.archived_at.is_none() || is_above {
            listed.push(one);
        }
    }
    listed.reverse();
    listed
}

/// A session whose parent was visited.
struct Unvisited {
    at: usize,
    depth: u32,
    path: String,
}

/// The path of a session at the top of what the caller sees. An agent outside the hub does not see its own name in it.
pub(crate) fn top_path(principal: &Principal, name: &SessionName, answers_to: &AskedOf) -> String {
    match principal {
        Principal::Operator | Principal::Token { .. } => root_path(answers_to, name),
        Principal::Parent { .. } | Principal::Session { .. } => name.to_string(),
    }
}

fn key(session: &SessionWithState) -> String {
    format!("session:{}", session.row.id)
}

fn alone(session: &SessionWithState) -> TreeView {
    let runs = session.turn.as_ref().is_some_and(|turn| turn.status == TurnStatus::Running);
    TreeView {
        sessions: 1,
        running: u64::from(runs),
        pending_approvals: session.open.len() as u64,
        cost_usd: session.row.cost_usd,
    }
}

/// Adds the totals of each session to its parent, last session first, so that they are complete when added.
fn add_up(seen: &mut [VisibleSession]) {
    // `path` holds the last session so far of each level: a child follows its parent, or the descendants of its
    // siblings.
    let mut parents = Vec::with_capacity(seen.len());
    let mut path: Vec<usize> = Vec::new();
    for (at, one) in seen.iter().enumerate() {
        path.truncate(one.depth as usize);
        parents.push(path.last().copied());
        path.push(at);
    }
    for (at, parent) in parents.into_iter().enumerate().rev() {
        let Some(parent) = parent else { continue };
        let sum = seen[at].tree.clone();
        let tree = &mut seen[parent].tree;
        tree.sessions += sum.sessions;
        tree.running += sum.running;
        tree.pending_approvals += sum.pending_approvals;
        tree.cost_usd += sum.cost_usd;
    }
}

#[cfg(test)]
mod tests {
    use plexus_protocol::{ApprovalKind, AskedOf, SessionId};
    use plexus_store::{OpenCall, SessionRow};

    use super::*;
    use crate::test_support::session_row;

    /// A session with one open approval and a cost of one dollar.
    fn session(name: &str, answers_to: AskedOf) -> SessionWithState {
        let row = SessionRow { answers_to, cost_usd: 1.0, ..session_row(name) };
        let open = OpenCall {
            kind: ApprovalKind::Tool,
            tool_name: "Bash".to_owned(),
            tool_use_id: "toolu_1".to_owned(),
            asked_of: AskedOf::Operator,
        };
        let (calls, budget) = (Vec::new(), Vec::new());
        SessionWithState { row, turn: None, open: vec![open], calls, budget, last_event_at: None }
    }

    fn below(parent: &SessionWithState, name: &str) -> SessionWithState {
        session(name, AskedOf::Session { id: parent.row.id })
    }

    fn shown(seen: &[VisibleSession]) -> Vec<(String, u32, u64)> {
        assert!(seen.iter().all(|one| one.tree.pending_approvals == one.tree.sessions));
        assert!(seen.iter().all(|one| one.tree.cost_usd == one.tree.sessions as f64));
        seen.iter().map(|one| (one.session.row.name.to_string(), one.depth, one.tree.sessions)).collect()
    }

    fn expected(all: &[(&str, u32, u64)]) -> Vec<(String, u32, u64)> {
        all.iter().map(|(name, depth, sessions)| ((*name).to_owned(), *depth, *sessions)).collect()
    }

    #[test]
    fn each_caller_sees_its_own_trees_in_order() {
        let outside = Principal::Parent { id: "outside".to_owned() };
        let a = session("a", AskedOf::Operator);
        let b = session("b", outside.asked_as());
        let b1 = below(&b, "b1");
        let a1 = below(&a, "a1");
        let a2 = below(&a, "a2");
        let a11 = below(&a1, "a11");
        let orphan = session("orphan", AskedOf::Session { id: SessionId::random() });
        let all = vec![a.clone(), b, b1, a1.clone(), a2, a11, orphan];
        let by = |principal: &Principal| shown(&visible_to(principal, all.clone()));
        assert_eq!(
            by(&Principal::Operator),
            expected(&[
                ("a", 0, 4),
                ("a1", 1, 2),
                ("a11", 2, 1),
                ("a2", 1, 1),
                ("b", 0, 2),
                ("b1", 1, 1),
                ("orphan", 0, 1)
            ])
        );
        assert_eq!(by(&outside), expected(&[("b", 0, 2), ("b1", 1, 1)]));
        assert_eq!(
            by(&Principal::Session { id: a1.row.id, run: 1 }),
            expected(&[("a1", 0, 2), ("a11", 1, 1)])
        );
        assert_eq!(by(&Principal::Session { id: SessionId::random(), run: 1 }), []);
        let paths = |principal: &Principal| -> Vec<String> {
            visible_to(principal, all.clone()).into_iter().map(|one| one.path).collect()
        };
        assert_eq!(
            paths(&Principal::Operator),
            ["a", "a/a1", "a/a1/a11", "a/a2", "outside/b", "outside/b/b1", "orphan"]
        );
        assert_eq!(paths(&outside), ["b", "b/b1"]);
        assert_eq!(paths(&Principal::Session { id: a1.row.id, run: 1 }), ["a1", "a1/a11"]);
    }

    #[test]
    fn archived_sessions_are_left_out_unless_one_below_is_not_archived() {
        let archived = |session: SessionWithState| {
            let row = SessionRow { archived_at: Some(1), ..session.row };
            SessionWithState { row, ..session }
        };
        let a = archived(session("a", AskedOf::Operator));
        let a1 = archived(below(&a, "a1"));
        let a11 = below(&a1, "a11");
        let a2 = archived(below(&a, "a2"));
        let b = archived(session("b", AskedOf::Operator));
        let b1 = archived(below(&b, "b1"));
        let c = session("c", AskedOf::Operator);
        let c1 = archived(below(&c, "c1"));
        let seen = visible_to(&Principal::Operator, vec![a, a1, a11, a2, b, b1, c, c1]);
        let listed = without_archived(seen);
        assert_eq!(shown(&listed), expected(&[("a", 0, 4), ("a1", 1, 2), ("a11", 2, 1), ("c", 0, 2)]));
    }

    #[test]
    fn a_session_in_a_cycle_of_parents_is_listed_once() {
        let mut a = session("a", AskedOf::Operator);
        let b = below(&a, "b");
        a.row.answers_to = AskedOf::Session { id: b.row.id };
        let itself = Principal::Session { id: a.row.id, run: 1 };
        let seen = visible_to(&itself, vec![a, b]);
        assert_eq!(shown(&seen), expected(&[("a", 0, 2), ("b", 1, 1)]));
    }
}
