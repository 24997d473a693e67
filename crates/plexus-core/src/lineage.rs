//! The lineage of a session: the sessions from the root of its tree down to itself. It never changes, so the owner of a
//! session determines it once.

use std::path::PathBuf;

use plexus_policy::{Call, Rule, Scope, ScopeChain};
use plexus_protocol::{AskedOf, SessionId};
use plexus_store::{ApprovalRow, SessionRow, Store, StoreError};

use serde_json::Value;

use crate::Settings;
use crate::tree::MAX_DEPTH;
use plexus_book::now;

/// A call that is checked against a rule or a scope.
pub(crate) struct CheckedCall {
    tool_name: String,
    input: Value,
    cwd: PathBuf,
    home: Option<PathBuf>,
}

impl CheckedCall {
    pub(crate) fn new(tool_name: &str, input: Value, cwd: PathBuf, home: Option<PathBuf>) -> Self {
        Self { tool_name: tool_name.to_owned(), input, cwd, home }
    }

    pub(crate) fn as_call(&self) -> Call<'_> {
        let Self { tool_name, input, cwd, home } = self;
        Call { tool_name, input, cwd, home: home.as_deref(), now: now() }
    }
}

/// A session with its ancestors, root first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lineage(Vec<SessionRow>);

impl Lineage {
    #[cfg(test)]
    pub(crate) fn of(sessions: Vec<SessionRow>) -> Self {
        Self(sessions)
    }

    /// Root first, the session itself last.
    pub(crate) fn sessions(&self) -> &[SessionRow] {
        &self.0
    }

    /// The ancestors of `below` for which `may` returns true, nearest first, then the party that the root answers to,
    /// then the operator. The last two may decide anything.
    pub(crate) fn deciders(&self, below: SessionId, may: impl Fn(&SessionRow) -> bool) -> Vec<AskedOf> {
        let upwards = self.0.iter().rev().skip_while(|session| session.id != below).skip(1);
        let mut deciders: Vec<AskedOf> = upwards
            .filter(|session| may(session))
            .map(|session| AskedOf::Session { id: session.id })
            .collect();
        deciders.extend(self.0.first().map(|root| root.answers_to.clone()));
        deciders.push(AskedOf::Operator);
        deciders
    }

    /// The scopes that limit which calls of its descendants `session` may allow: its own and those of its ancestors.
    /// `None` if one of them may allow nothing, or if `session` is not part of this lineage.
    pub(crate) fn scopes_of(&self, session: SessionId) -> Option<ScopeChain> {
        let at = self.0.iter().position(|row| row.id == session)?;
        let own = own_scope(&self.0[at])?;
        let above: Option<Vec<Scope>> = self.0[..at].iter().map(own_scope).collect();
        Some(ScopeChain::new(own, above?))
    }

    /// Whether `session` may allow this call of a descendant.
    pub(crate) fn may_allow(&self, session: SessionId, call: &CheckedCall) -> bool {
        self.scopes_of(session).is_some_and(|scopes| scopes.may_allow(&call.as_call()))
    }

    /// The directory that `~` stands for in the session.
    pub(crate) fn home(&self, settings: &Settings) -> Option<PathBuf> {
        let given = self.itself().and_then(|session| session.config.env.get("HOME").map(PathBuf::from));
        given.or_else(|| settings.home.clone().filter(|_| !settings.clean_env))
    }

    /// The session itself.
    pub(crate) fn itself(&self) -> Option<&SessionRow> {
        self.0.last()
    }
}

/// The lineage of a session. It is empty if an ancestor is missing: then every call is denied.
pub(crate) async fn known_lineage(store: &dyn Store, session: SessionRow) -> Result<Lineage, StoreError> {
    match lineage(store, session).await {
        Err(StoreError::Unusable(why)) => {
            tracing::error!(why, "an ancestor of a session is missing: all calls of the session are denied");
            Ok(Lineage(Vec::new()))
        }
        found => found,
    }
}

/// The lineage of the session that requests this approval.
pub(crate) async fn lineage_of(store: &dyn Store, row: &ApprovalRow) -> Result<Lineage, StoreError> {
    match store.session(row.approval.session_id).await? {
        Some(asking) => known_lineage(store, asking).await,
        None => Ok(Lineage::default()),
    }
}

/// The lineage of a session. A missing ancestor is an error, because its rules would be missing, too.
async fn lineage(store: &dyn Store, session: SessionRow) -> Result<Lineage, StoreError> {
    let mut upwards = vec![session];
    while let Some(AskedOf::Session { id }) = upwards.last().map(|session| session.answers_to.clone()) {
        let parent = store.session(id).await?;
        let parent = parent.filter(|_| upwards.len() < MAX_DEPTH);
        upwards.push(parent.ok_or_else(|| {
            StoreError::Unusable(format!(
                "session {id} is missing, although another session has it as its parent"
            ))
        })?);
    }
    upwards.reverse();
    Ok(Lineage(upwards))
}

/// The scope of a session; `None` if it may allow nothing, was deleted, or has a scope that cannot be read.
fn own_scope(session: &SessionRow) -> Option<Scope> {
    let config = &session.config;
    if session.deleted_at.is_some() || !config.hub_tools || config.approve_scope.is_empty() {
        return None;
    }
    let rules: Result<Vec<Rule>, _> = config.approve_scope.iter().map(|rule| rule.parse()).collect();
    rules.ok().and_then(|rules| Scope::new(&rules).ok())
}
