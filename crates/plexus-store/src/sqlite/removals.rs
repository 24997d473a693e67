//! Removing what has grown old, a small step at a time: each is a few rows of one commit, so that whoever wants to
//! store a decision meanwhile waits no longer than for any other commit. Whether it may be removed at all is looked
//! up again here, in the transaction that does it.

use plexus_protocol::{ApprovalId, SessionId};

use super::changes::Applying;
use super::columns::Text;
use super::sql;
use crate::{Removable, RunKey, StoreError};

/// How much of a turn one step takes: at least one event, and no more than these.
const STEP_ROWS: u64 = 50;
const STEP_BYTES: u64 = 256 * 1024;

impl Applying<'_> {
    /// One step; does nothing where it may not be removed (any more).
    pub(super) fn remove(&mut self, what: &Removable) -> Result<(), StoreError> {
        let removed = match what {
            Removable::Events { session, turn } => self.remove_events(*session, *turn)?,
            Removable::Approval(id) => self.remove_approval(*id)?,
            Removable::Call(ordinal) => self.execute(sql::REMOVE_CALL, [ordinal])?,
            Removable::RunFiles(RunKey { session, run }) => {
                self.execute(sql::REMOVE_RUN_FILES, (Text(*session), run))?
            }
            Removable::Tree(tree) => self.remove_tree(*tree)?,
        };
        self.removed(removed);
        Ok(())
    }

    /// From the first step on the turn is known to be incomplete: nobody is shown part of it.
    fn remove_events(&self, session: SessionId, turn: u64) -> Result<usize, StoreError> {
        if self.execute(sql::BEGIN_REMOVING_EVENTS, (Text(session), turn))? == 0 {
            return Ok(0);
        }
        let mut upto = None;
        let mut bytes = 0;
        let mut sizes = self.connection.prepare_cached(sql::FIRST_EVENTS)?;
        let mut rows = sizes.query((Text(session), turn, STEP_ROWS))?;
        while let Some(row) = rows.next()? {
            let (seq, size): (u64, u64) = (row.get(0)?, row.get(1)?);
            bytes += size;
            if upto.is_some() && bytes > STEP_BYTES {
                break;
            }
            upto = Some(seq);
        }
        match upto {
            Some(upto) => self.execute(sql::REMOVE_EVENTS, (Text(session), turn, upto)),
            // The mark itself counts as a step: whoever asked comes back until there is nothing to do.
            None => self.execute(sql::END_REMOVING_EVENTS, (Text(session), turn)),
        }
    }

    fn remove_approval(&self, id: ApprovalId) -> Result<usize, StoreError> {
        self.execute(sql::REMOVE_PERMIT_STREAMS, [Text(id)])?;
        self.execute(sql::REMOVE_APPROVAL, [Text(id)])
    }
}
