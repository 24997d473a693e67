//! The sessions from the root of a tree down to one of them. Who made whom never changes, so a session's owner finds
//! this out once.

use plexus_protocol::AskedOf;
use plexus_store::{SessionRow, StoreError};

use crate::Hub;

/// Trees are a few levels deep; this only stops a walk over a damaged store.
const MAX_DEPTH: usize = 64;

/// A session with all above it, root first.
#[derive(Debug, Clone)]
pub(crate) struct Lineage(Vec<SessionRow>);

impl Lineage {
    /// Root first, the session itself last.
    pub(crate) fn sessions(&self) -> &[SessionRow] {
        &self.0
    }

    /// The session itself.
    pub(crate) fn itself(&self) -> Option<&SessionRow> {
        self.0.last()
    }
}

impl Hub {
    /// The lineage of a session; without anyone in it, not even itself, where it cannot be followed: then nothing is allowed.
    pub(crate) async fn known_lineage(&self, session: SessionRow) -> Result<Lineage, StoreError> {
        match self.lineage(session).await {
            Err(StoreError::Unusable(why)) => {
                tracing::error!(why, "a session has lost those above it: its calls are denied");
                Ok(Lineage(Vec::new()))
            }
            found => found,
        }
    }

    /// The lineage of a session. One that cannot be followed to its root is an error: rules may be missing in it.
    pub(crate) async fn lineage(&self, session: SessionRow) -> Result<Lineage, StoreError> {
        let mut upwards = vec![session];
        while let Some(AskedOf::Session { id }) = upwards.last().map(|session| session.answers_to.clone()) {
            let parent = self.store().session(id).await?;
            let parent = parent.filter(|_| upwards.len() < MAX_DEPTH);
            upwards.push(parent.ok_or_else(|| {
                StoreError::Unusable(format!("session {id} is above another one and cannot be found"))
            })?);
        }
        upwards.reverse();
        Ok(Lineage(upwards))
    }
}
