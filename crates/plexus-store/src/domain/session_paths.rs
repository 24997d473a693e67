//! The path of a session as the operator sees it, for audit entries, which outlive the session. `plexus-protocol` owns the format.

use plexus_protocol::{AskedOf, SessionId, SessionName, join_path, root_path};

use super::Commit;
use crate::rows::Stored;

/// Trees are a few levels deep. This limit only stops a walk over a damaged store.
const MAX_DEPTH: usize = 64;

impl Commit<'_> {
    /// The path of a session, with `name` as its own name if that is given. `None` if the session does not exist.
    pub(super) fn operator_path(
        &mut self,
        session: SessionId,
        name: Option<SessionName>,
    ) -> Stored<Option<String>> {
        let mut below: Vec<SessionName> = Vec::new();
        let Some(mut top) = self.identity(session)? else { return Ok(None) };
        top.name = name.unwrap_or(top.name);
        while let AskedOf::Session { id } = top.answers_to
            && below.len() < MAX_DEPTH
            && let Some(above) = self.identity(id)?
        {
            below.push(top.name);
            top = above;
        }
        let root = root_path(&top.answers_to, &top.name);
        Ok(Some(below.iter().rev().fold(root, |path, name| join_path(&path, name.as_str()))))
    }
}
