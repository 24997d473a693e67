//! The fan-out of the feed: which callers get an entry for which change.

use plexus_protocol::{AskedOf, SessionId};
use serde_json::Value;

use super::{Commit, MAX_DEPTH};
use crate::rows::{SessionRows, Stored};
use crate::{FeedEntry, Refusal};

impl Commit<'_> {
    pub(super) fn notice(&mut self, to: &str, session: SessionId, data: &Value) -> Stored<()> {
        self.check_exists(session)?;
        self.feed(to.to_owned(), session, FeedEntry::Notice(data.clone())).map(drop)
    }
}

/// The keys of the callers that are notified about a session: the addressee of its approvals and every agent above. The operator is
/// above all sessions, but is notified only about sessions that the operator created.
pub(crate) fn supervisors(rows: &(impl SessionRows + ?Sized), session: SessionId) -> Stored<Vec<String>> {
    let of = rows.session_identity(session)?.ok_or(Refusal::NoSuchSession(session))?;
    let mut answers_to = of.answers_to;
    let mut keys = vec![answers_to.key()];
    while let AskedOf::Session { id } = answers_to
        && keys.len() < MAX_DEPTH
        && let Some(above) = rows.session_identity(id)?
    {
        answers_to = above.answers_to;
        if answers_to != AskedOf::Operator {
            keys.push(answers_to.key());
        }
    }
    Ok(keys)
}

/// The keys of the callers that are notified when an approval is resolved: all its addressees so far, in order.
pub(crate) fn everyone_asked(previous: Vec<String>, asked_of: &AskedOf) -> Vec<String> {
    let mut keys = previous;
    keys.push(asked_of.key());
    keys
}
