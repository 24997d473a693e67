//! Who may see and decide what: the operator everything, anyone else the sessions it made and what stems from them.
//! What a caller may not see does not exist for it.

use plexus_protocol::{AskedOf, Error, ErrorKind, Principal, Right, SessionId};
use plexus_store::{ApprovalRow, SessionRow};

use crate::Hub;
use crate::hub::store_error;

/// Trees are a few levels deep; this only stops a walk over a damaged store.
const MAX_DEPTH: usize = 64;

impl Hub {
    /// By what right `principal` answers for `session`, if it does. Never for itself.
    pub(crate) async fn right_over(
        &self,
        principal: &Principal,
        session: &SessionRow,
    ) -> Result<Option<Right>, Error> {
        if *principal == Principal::Operator {
            return Ok(Some(Right::Operator));
        }
        let me = principal.asked_as();
        let mut answers_to = session.answers_to.clone();
        for _ in 0..MAX_DEPTH {
            if answers_to == me {
                return Ok(Some(Right::Ancestor));
            }
            let AskedOf::Session { id } = answers_to else { return Ok(None) };
            match self.store().session(id).await.map_err(store_error)? {
                Some(parent) => answers_to = parent.answers_to,
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The session that is meant, by id or by name, if the caller answers for it.
    pub(crate) async fn find_session(
        &self,
        principal: &Principal,
        id: Option<SessionId>,
        name: Option<&str>,
    ) -> Result<SessionRow, Error> {
        let (found, called) = match (id, name) {
            (Some(id), None) => (self.store().session(id).await.map_err(store_error)?, id.to_string()),
            (None, Some(name)) => {
                (self.store().session_named(name).await.map_err(store_error)?, name.to_owned())
            }
            (Some(_), Some(_)) => {
                return Err(Error::invalid("name", "give `session_id` or `name`, not both"));
            }
            (None, None) => {
                return Err(Error::invalid("session_id", "is missing; give `session_id` or `name`"));
            }
        };
        if let Some(session) = found.filter(|session| session.deleted_at.is_none())
            && self.right_over(principal, &session).await?.is_some()
        {
            return Ok(session);
        }
        Err(Error::new(ErrorKind::SessionNotFound, format!("there is no session `{called}`")))
    }

    /// An approval, and by what right the caller decides it.
    pub(crate) async fn find_approval(
        &self,
        principal: &Principal,
        id: plexus_protocol::ApprovalId,
    ) -> Result<(ApprovalRow, Right), Error> {
        if let Some(row) = self.store().approval(id).await.map_err(store_error)? {
            // The usual case by far, and a child is waiting: no need to look at whose approval it is.
            if *principal == Principal::Operator {
                return Ok((row, Right::Operator));
            }
            if let Some(session) = self.store().session(row.approval.session_id).await.map_err(store_error)?
                && let Some(right) = self.right_over(principal, &session).await?
            {
                return Ok((row, right));
            }
        }
        Err(Error::new(ErrorKind::ApprovalNotFound, format!("there is no approval `{id}`")))
    }

    /// The living sessions the caller answers for.
    pub(crate) async fn visible_sessions(&self, principal: &Principal) -> Result<Vec<SessionRow>, Error> {
        let mut visible = Vec::new();
        for session in self.store().sessions().await.map_err(store_error)? {
            if self.right_over(principal, &session).await?.is_some() {
                visible.push(session);
            }
        }
        Ok(visible)
    }

    /// The living sessions below `session`, deepest last.
    pub(crate) async fn descendants(&self, session: SessionId) -> Result<Vec<SessionRow>, Error> {
        let all = self.store().sessions().await.map_err(store_error)?;
        let mut found: Vec<SessionRow> = Vec::new();
        let mut above = vec![session];
        while let Some(parent) = above.pop() {
            for child in all.iter().filter(|child| child.answers_to == AskedOf::Session { id: parent }) {
                above.push(child.id);
                found.push(child.clone());
            }
        }
        Ok(found)
    }
}
