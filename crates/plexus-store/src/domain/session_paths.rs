//! The path of a session as the operator sees it, for audit entries, which outlive the session. `plexus-protocol` owns the format.

use plexus_protocol::{AskedOf, SessionId, SessionName, join_path, root_path};

use super::Commit;
use crate::rows::Stored;

/// Trees are a few levels deep. This limit only stops a walk over a damaged store.
const MAX_DEPTH: usize = 64;

impl Commit<'_> {
    /// The path of a session, with `name` as its own name if that is given. `None` if the session does not exist.
    pub(super) fn operator_path(
        &self,
        session: SessionId,
        name: Option<SessionName>,
    ) -> Stored<Option<String>> {
        let mut below: Vec<SessionName> = Vec::new();
        let (mut at, mut known) = (session, name);
        loop {
            let stored = match known.take() {
                Some(name) => Some(name),
                None => self.rows.session_name(at)?,
            };
            let (Some(name), Some(answers_to)) = (stored, self.rows.answers_to(at)?) else {
                return Ok(None);
            };
            if let AskedOf::Session { id } = answers_to
                && below.len() < MAX_DEPTH
                && self.rows.session_exists(id)?
            {
                below.push(name);
                at = id;
                continue;
            }
            let root = root_path(&answers_to, &name);
            return Ok(Some(below.iter().rev().fold(root, |path, name| join_path(&path, name.as_str()))));
        }
    }
}
