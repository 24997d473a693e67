//! The parts of `claudecode.update` that only the operator may use: the title of a session, and the archive. They change
//! how sessions are listed, and nothing that an agent does.

use plexus_protocol::{Error, ErrorKind, MAX_TITLE_CHARS, Principal, given_title};
use plexus_store::{Change, SessionRow};
use serde_json::json;

use crate::Hub;
use crate::audit::session_audit;
use crate::callers::access::{self, Admitted};
use crate::errors::store_error;

/// A change of the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArchiveChange {
    Archive,
    Unarchive,
}

/// From the parameter `archived`.
impl From<bool> for ArchiveChange {
    fn from(archived: bool) -> Self {
        if archived { Self::Archive } else { Self::Unarchive }
    }
}

/// Rejects agents, which could otherwise hide a session or give it a misleading title.
pub(super) fn check_operator(caller: &Admitted, field: &str) -> Result<(), Error> {
    match caller.principal {
        Principal::Operator | Principal::Token { .. } => Ok(()),
        Principal::Parent { .. } | Principal::Session { .. } => {
            let message = format!("only the operator can change `{field}`");
            Err(Error::new(ErrorKind::Forbidden, message).with("field", field))
        }
    }
}

/// The title as it is stored.
pub(super) fn checked_title(text: &str) -> Result<String, Error> {
    let title =
        given_title(text).ok_or_else(|| Error::invalid("title", "must contain a letter or a digit"))?;
    if title.chars().count() > MAX_TITLE_CHARS {
        return Err(Error::invalid("title", format!("must have at most {MAX_TITLE_CHARS} characters")));
    }
    Ok(title)
}

/// Gives the session this title, with an audit entry.
pub(super) async fn apply_title(
    hub: &Hub,
    caller: &Admitted,
    session: &SessionRow,
    title: String,
) -> Result<(), Error> {
    let record = session_audit::change(caller, "set_title", session, json!({"to": title}));
    hub.commit(vec![Change::SetTitle(session.id, title), record]).await.map_err(store_error)?;
    Ok(())
}

/// Archives or unarchives the session and all its descendants, with one audit entry. Either all of them change or none.
pub(super) async fn apply_archive(
    hub: &Hub,
    caller: &Admitted,
    session: &SessionRow,
    change: ArchiveChange,
) -> Result<(), Error> {
    let below = access::descendants(hub.store(), session.id).await?;
    let ids = std::iter::once(session.id).chain(below.iter().map(|below| below.id));
    let mut changes: Vec<Change> = match change {
        ArchiveChange::Archive => ids.map(Change::Archive).collect(),
        ArchiveChange::Unarchive => ids.map(Change::Unarchive).collect(),
    };
    let act = match change {
        ArchiveChange::Archive => "archived",
        ArchiveChange::Unarchive => "unarchived",
    };
    changes.push(session_audit::change(caller, act, session, json!({})));
    hub.commit(changes).await.map_err(store_error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_bounded_and_not_empty() {
        assert_eq!(checked_title(" a\nb ").ok().as_deref(), Some("a b"));
        for bad in ["", " \n", "\u{200b}", &"x".repeat(201)] {
            assert!(checked_title(bad).is_err_and(|error| error.details["field"] == "title"), "{bad:?}");
        }
        assert!(checked_title(&"ü".repeat(200)).is_ok());
    }
}
