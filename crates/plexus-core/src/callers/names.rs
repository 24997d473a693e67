//! Finds sessions by name or path. Names are unique among the sessions of one creator, so a name alone may match several
//! sessions; a path such as `lead/worker` tells them apart. `access` decides which sessions a caller may find. [`Paths`]
//! computes the paths that a caller is shown.

use std::collections::HashMap;

use plexus_protocol::{AskedOf, Error, Principal, SessionId, SessionName, join_path};
use plexus_store::{ApprovalRow, SessionRow, Store, StoreError};

use crate::tree::{MAX_DEPTH, top_path};

/// A session whose path ends with the given name or path.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) session: SessionRow,
    /// Its path as the caller sees it.
    pub(super) path: String,
}

/// The last name of a path: the name of the session itself.
pub(super) fn last_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The paths of sessions as one caller sees them. Each is computed once, from the names that the sessions have now.
pub(crate) struct Paths<'a> {
    store: &'a dyn Store,
    principal: &'a Principal,
    known: HashMap<SessionId, String>,
}

impl<'a> Paths<'a> {
    pub(crate) fn of(store: &'a dyn Store, principal: &'a Principal) -> Self {
        Self { store, principal, known: HashMap::new() }
    }

    /// The path of the session that requests an approval. Only the sessions above it are read.
    pub(crate) async fn of_approval(&mut self, row: &ApprovalRow) -> Result<String, StoreError> {
        let ApprovalRow { approval, answers_to, .. } = row;
        if let Some(known) = self.known.get(&approval.session_id) {
            return Ok(known.clone());
        }
        let asking = Named {
            id: approval.session_id,
            name: approval.session_name.clone(),
            answers_to: answers_to.clone(),
        };
        let path = path_up_from(self.store, self.principal, asking).await?;
        self.known.insert(approval.session_id, path.clone());
        Ok(path)
    }
}

/// The path of a session: the names from the topmost session that the caller sees down to the session itself.
pub(crate) async fn path_of(
    store: &dyn Store,
    principal: &Principal,
    session: &SessionRow,
) -> Result<String, StoreError> {
    path_up_from(store, principal, Named::from(session.clone())).await
}

/// A session on the way up.
struct Named {
    id: SessionId,
    name: SessionName,
    answers_to: AskedOf,
}

impl From<SessionRow> for Named {
    fn from(row: SessionRow) -> Self {
        Self { id: row.id, name: row.name, answers_to: row.answers_to }
    }
}

async fn path_up_from(
    store: &dyn Store,
    principal: &Principal,
    mut top: Named,
) -> Result<String, StoreError> {
    let mut below: Vec<SessionName> = Vec::new();
    while let AskedOf::Session { id } = top.answers_to {
        let is_caller = matches!(principal, Principal::Session { id, .. } if *id == top.id);
        if is_caller || below.len() >= MAX_DEPTH {
            break;
        }
        let Some(parent) = store.session(id).await? else { break };
        below.push(top.name);
        top = Named::from(parent);
    }
    let path = top_path(principal, &top.name, &top.answers_to);
    Ok(below.iter().rev().fold(path, |path, name| join_path(&path, name.as_str())))
}

/// The session that the caller means by `given`: a session that it created itself, else the session with exactly this
/// path, else the only one whose path ends with it. `None` if there is no candidate.
pub(super) fn choose(
    given: &str,
    me: &AskedOf,
    mut candidates: Vec<Candidate>,
) -> Result<Option<SessionRow>, Error> {
    let end = format!("/{given}");
    candidates.retain(|one| one.path == given || one.path.ends_with(&end));
    candidates.sort_by(|a, b| a.path.cmp(&b.path));
    let own = |one: &Candidate| one.session.name.as_str() == given && one.session.answers_to == *me;
    let exact = |one: &Candidate| one.path == given;
    let by_preference: [&dyn Fn(&Candidate) -> bool; 3] = [&own, &exact, &|_| true];
    for fits in by_preference {
        let mut fitting = candidates.iter().filter(|one| fits(one));
        match (fitting.next(), fitting.next()) {
            (Some(only), None) => return Ok(Some(only.session.clone())),
            (Some(_), Some(_)) => return Err(ambiguous(given, &candidates)),
            (None, _) => {}
        }
    }
    Ok(None)
}

fn ambiguous(given: &str, candidates: &[Candidate]) -> Error {
    let shown = candidates.iter().map(|one| format!("`{}` ({})", one.path, one.session.id));
    let shown: Vec<String> = shown.collect();
    let message = format!(
        "`{given}` is the name of several sessions; pass a path or `session_id`: {}",
        shown.join(", ")
    );
    let paths: Vec<String> = candidates.iter().map(|one| one.path.clone()).collect();
    Error::invalid("name", message).with("paths", paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::session_row;

    fn candidate(path: &str, answers_to: AskedOf) -> Candidate {
        let session = SessionRow { answers_to, ..session_row(last_name(path)) };
        Candidate { session, path: path.to_owned() }
    }

    fn session() -> AskedOf {
        AskedOf::Session { id: plexus_protocol::SessionId::random() }
    }

    fn chosen(given: &str, me: &AskedOf, candidates: Vec<Candidate>) -> Option<usize> {
        let ids: Vec<_> = candidates.iter().map(|one| one.session.id).collect();
        let chosen = choose(given, me, candidates).unwrap()?;
        ids.iter().position(|id| *id == chosen.id)
    }

    #[test]
    fn a_callers_own_session_comes_first_then_the_exact_path_then_the_only_match() {
        let operator = AskedOf::Operator;
        let workers = || {
            let lead = session();
            vec![
                candidate("worker", operator.clone()),
                candidate("lead/worker", lead),
                candidate("top/lead/worker", session()),
            ]
        };
        assert_eq!(chosen("worker", &operator, workers()), Some(0));
        assert_eq!(chosen("lead/worker", &operator, workers()), Some(1));
        assert_eq!(chosen("top/lead/worker", &operator, workers()), Some(2));
        assert_eq!(chosen("ead/worker", &operator, workers()), None, "only whole names match");
        let lead = session();
        let own = vec![candidate("lead/worker", lead.clone()), candidate("lead/sub/worker", session())];
        assert_eq!(chosen("worker", &lead, own), Some(0));
        assert_eq!(chosen("worker", &operator, vec![candidate("lead/worker", session())]), Some(0));
        assert_eq!(chosen("worker", &operator, Vec::new()), None);
    }

    #[test]
    fn an_ambiguous_name_is_refused_with_the_paths() {
        let both = vec![candidate("b/worker", session()), candidate("a/worker", session())];
        let refused = choose("worker", &AskedOf::Operator, both).unwrap_err();
        assert_eq!(refused.details["paths"], serde_json::json!(["a/worker", "b/worker"]));
        assert!(refused.message.contains("`a/worker`"), "{refused}");
    }
}
