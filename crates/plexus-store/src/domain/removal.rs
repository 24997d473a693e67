//! Removal of old rows in small steps, so that a commit with a decision never waits long for a removal. Each step checks again, in
//! its own transaction, whether the rows can be removed.

use plexus_protocol::{ApprovalId, ApprovalStatus, TreeId};

use super::Commit;
use crate::rows::{EventSize, Rows, Stored, TurnKey, TurnUpdate};
use crate::{EventsOfTurn, Removable, RunKey, RunState, TurnStatus};

/// How many events one step removes at most.
const STEP_EVENTS: u64 = 50;
/// How many bytes of events one step removes at most, unless one event alone is larger.
const STEP_BYTES: u64 = 256 * 1024;
/// How many nodes of a tree one step removes at most.
const STEP_NODES: u64 = 100;

impl Commit<'_> {
    /// One step. It removes nothing if the rows are still needed.
    pub(super) fn remove(&mut self, what: &Removable) -> Stored<()> {
        let removed = match what {
            Removable::Events { session, turn } => {
                self.remove_events(TurnKey { session: *session, turn: *turn })?
            }
            Removable::Approval(id) => usize::from(self.remove_approval(*id)?),
            Removable::Call(ordinal) => usize::from(self.remove_call(*ordinal)?),
            Removable::RunFiles(key) => {
                usize::from(run_is_over(&*self.rows, *key)? && self.rows.mark_files_removed(*key)?)
            }
            Removable::Tree(tree) => self.remove_nodes(*tree)?,
        };
        self.published.removed += removed;
        Ok(())
    }

    /// The first step marks the turn, so that no reader gets only a part of its events. The last one marks it as removed.
    fn remove_events(&mut self, key: TurnKey) -> Stored<usize> {
        if !events_are_removable(&*self.rows, key)? {
            return Ok(0);
        }
        let sizes = self.rows.first_event_sizes(key, STEP_EVENTS)?;
        let (mark, removed) = match last_of_step(&sizes) {
            Some(upto) => (EventsOfTurn::Removing, self.rows.delete_events(key, upto)?),
            // The mark counts as a step: the caller repeats until a step removes nothing.
            None => (EventsOfTurn::Removed, 1),
        };
        self.rows.update_turn(key, TurnUpdate::Events(mark))?;
        Ok(removed)
    }

    fn remove_approval(&mut self, id: ApprovalId) -> Stored<bool> {
        let Some(row) = self.rows.approval(id)? else { return Ok(false) };
        let run = RunKey { session: row.approval.session_id, run: row.run };
        let is_over = row.approval.status != ApprovalStatus::Pending && run_is_over(&*self.rows, run)?;
        Ok(is_over && self.rows.delete_approval(id)?)
    }

    fn remove_call(&mut self, ordinal: u64) -> Stored<bool> {
        match self.rows.run_of_call(ordinal)? {
            Some(run) if run_is_over(&*self.rows, run)? => {
                self.rows.delete_call(ordinal)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// The root stays. A deleted session of the tree keeps a head that exists.
    fn remove_nodes(&mut self, tree: TreeId) -> Stored<usize> {
        if self.rows.tree_has_session(tree)? {
            return Ok(0);
        }
        let nodes = self.rows.last_nodes(tree, STEP_NODES)?;
        for node in &nodes {
            self.rows.move_heads(tree, node.id, node.parent)?;
            self.rows.delete_node(tree, *node)?;
        }
        Ok(nodes.len())
    }
}

/// Whether the turn is over and can get no more events. Events outside any running turn go to the latest turn: that one is
/// kept for as long as the session exists or one of its processes runs.
pub(crate) fn events_are_removable(rows: &dyn Rows, key: TurnKey) -> Stored<bool> {
    let Some(turn) = rows.turn(key)? else { return Ok(false) };
    if turn.status == TurnStatus::Running || turn.events == EventsOfTurn::Removed {
        return Ok(false);
    }
    let Some(session) = rows.session(key.session)? else { return Ok(false) };
    let is_latest = key.turn >= session.latest_turn;
    if is_latest && (session.deleted_at.is_none() || rows.has_open_run(key.session)?) {
        return Ok(false);
    }
    Ok(!rows.has_pending_approval(key)?)
}

pub(crate) fn run_is_over(rows: &dyn Rows, key: RunKey) -> Stored<bool> {
    Ok(rows.run(key)?.is_some_and(|run| run.state == RunState::Ended))
}

/// The last event that fits into one step: at least one, if there is any.
fn last_of_step(sizes: &[EventSize]) -> Option<u64> {
    let mut bytes = 0;
    let fits = |size: &&EventSize| {
        bytes += size.bytes;
        bytes <= STEP_BYTES
    };
    let fitting = sizes.iter().take_while(fits).last();
    fitting.or(sizes.first()).map(|size| size.seq)
}
