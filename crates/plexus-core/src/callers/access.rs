//! Access control: this module alone decides which methods a caller may call, and which sessions and approvals it may
//! read or decide. A method declares what it [`Needs`]; [`admit`] checks that this kind of caller can have that
//! access, and the `find_` functions check how the caller is related to the session. A session or approval that the caller
//! cannot access is reported as not found.

use std::collections::HashMap;

use plexus_protocol::stream::Access;
use plexus_protocol::token::TokenRight;
use plexus_protocol::{ApprovalId, AskedOf, Error, ErrorKind, Principal, Right, SessionId};
use plexus_store::{ApprovalRow, OnBehalf, SessionRow, Store};
use tokio::sync::mpsc;

use crate::callers::caller::{Caller, Door, Notification};
use crate::callers::names;
use crate::errors::{session_not_found, store_error};
use crate::tree::{MAX_DEPTH, VisibleSession, visible_to};

/// What a method does, for access control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// It requests permission: any session may, for itself.
    Ask,
    /// It reads sessions and their events.
    Read,
    /// It reads approvals.
    Watch,
    /// It decides approvals.
    Decide,
    /// It creates, prompts, changes or deletes sessions.
    Act,
    /// It administers the hub, such as its tokens and its audit log, or acts in the operator's name on the user's own
    /// files, such as a merge: only the operator may call it.
    Rule,
}

/// Whether a named token with this right may call a method with these needs.
pub(crate) fn permits_needs(right: TokenRight, needs: Needs) -> bool {
    match right {
        TokenRight::Read => matches!(needs, Needs::Read | Needs::Watch),
        TokenRight::Decide => matches!(needs, Needs::Watch | Needs::Decide),
        TokenRight::Operator => true,
    }
}

/// How a caller is related to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    /// The caller is the operator, above all sessions.
    Operator,
    /// The caller holds a token that the operator created.
    Token,
    /// The caller created the session, or one of its ancestors.
    Ancestor,
    /// The caller is the session itself.
    Itself,
}

impl Relation {
    /// The right by which the caller decides approvals; `None` for the session itself, which cannot decide its own.
    pub(crate) fn right(self) -> Option<Right> {
        match self {
            Self::Operator => Some(Right::Operator),
            Self::Token => Some(Right::Token),
            Self::Ancestor => Some(Right::Ancestor),
            Self::Itself => None,
        }
    }

    /// A session may only read itself and its own approvals.
    fn meets(self, needs: Needs) -> bool {
        self != Self::Itself || matches!(needs, Needs::Read | Needs::Watch)
    }
}

/// A caller whose kind may do what the method needs. Only the hub creates one.
#[derive(Debug, Clone)]
pub struct Admitted {
    /// The caller.
    pub(crate) principal: Principal,
    /// The door that the call came through.
    pub(crate) door: Door,
    /// Receives notifications, on doors that can send them.
    pub(crate) notify: Option<mpsc::Sender<Notification>>,
    needs: Needs,
}

/// Who reads a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A person, through a program of theirs.
    Person,
    /// An agent, which pays for every byte and makes one call at a time.
    Agent,
}

impl Admitted {
    /// Each MCP client is an agent. The relay `plexus mcp` calls over the socket, so the door alone does not identify one.
    pub(crate) fn reader(&self) -> Reader {
        match self.principal {
            Principal::Operator | Principal::Token { .. } if self.door != Door::Mcp => Reader::Person,
            _ => Reader::Agent,
        }
    }
}

/// Admits a caller whose kind may call methods with these needs.
pub(crate) async fn admit(store: &dyn Store, caller: Caller, needs: Needs) -> Result<Admitted, Error> {
    check_kind(store, &caller.principal, needs).await?;
    let Caller { principal, door, notify } = caller;
    Ok(Admitted { principal, door, notify, needs })
}

/// Rejects calls that this kind of caller may never make.
async fn check_kind(store: &dyn Store, principal: &Principal, needs: Needs) -> Result<(), Error> {
    let refused = match (principal, needs) {
        // A permission request gets a decision from every caller.
        (Principal::Operator | Principal::Token { right: TokenRight::Operator, .. }, _) | (_, Needs::Ask) => {
            return Ok(());
        }
        (Principal::Token { right, .. }, _) if permits_needs(*right, needs) => return Ok(()),
        (Principal::Token { right: TokenRight::Read, .. }, _) => {
            "this token has the right `read`, which only allows reading"
        }
        (Principal::Token { right: TokenRight::Decide, .. }, _) => {
            "this token has the right `decide`, which only allows reading and answering approvals"
        }
        (_, Needs::Rule) => "only the operator may call this method",
        (Principal::Parent { .. }, _) => return Ok(()),
        (Principal::Session { .. }, _) if may_call_methods(store, principal).await? => return Ok(()),
        (Principal::Session { .. }, _) => {
            "this session may only request approvals; create sessions with `hub_tools: true` to let them \
             call other methods"
        }
    };
    Err(Error::new(ErrorKind::Forbidden, refused))
}

/// The access of a caller that sees every session, as protocol values; empty for callers that see only their own
/// sessions.
pub fn may(principal: &Principal) -> Vec<Access> {
    let all = [
        (Access::Read, Needs::Read),
        (Access::Watch, Needs::Watch),
        (Access::Decide, Needs::Decide),
        (Access::Act, Needs::Act),
        (Access::Rule, Needs::Rule),
    ];
    let right = match principal {
        Principal::Operator => TokenRight::Operator,
        Principal::Token { right, .. } => *right,
        Principal::Parent { .. } | Principal::Session { .. } => return Vec::new(),
    };
    all.into_iter().filter(|(_, needs)| permits_needs(right, *needs)).map(|(access, _)| access).collect()
}

/// Whether this caller may read `/metrics`.
pub fn may_read_metrics(principal: &Principal) -> bool {
    matches!(principal, Principal::Operator | Principal::Token { right: TokenRight::Read, .. })
}

/// Whether this caller may end the hub with `/down`.
pub fn may_end_hub(principal: &Principal) -> bool {
    *principal == Principal::Operator
}

/// Whether this caller may call methods other than the permission request.
pub(crate) async fn may_call_methods(store: &dyn Store, principal: &Principal) -> Result<bool, Error> {
    let Principal::Session { id, .. } = principal else { return Ok(true) };
    let session = store.session(*id).await.map_err(store_error)?;
    Ok(session.is_some_and(|session| session.config.hub_tools))
}

/// How `principal` is related to `session`; `None` if it is not.
pub(crate) async fn relation(
    store: &dyn Store,
    principal: &Principal,
    session: &SessionRow,
) -> Result<Option<Relation>, Error> {
    match principal {
        Principal::Operator => return Ok(Some(Relation::Operator)),
        Principal::Token { .. } => return Ok(Some(Relation::Token)),
        Principal::Session { id, .. } if *id == session.id => return Ok(Some(Relation::Itself)),
        Principal::Session { .. } | Principal::Parent { .. } => {}
    }
    let me = principal.asked_as();
    let mut answers_to = session.answers_to.clone();
    for _ in 0..MAX_DEPTH {
        if answers_to == me {
            return Ok(Some(Relation::Ancestor));
        }
        let AskedOf::Session { id } = answers_to else { return Ok(None) };
        match store.session(id).await.map_err(store_error)? {
            Some(parent) => answers_to = parent.answers_to,
            None => return Ok(None),
        }
    }
    Ok(None)
}

/// Finds a session by id, or by its name or path, if the caller may do this with it.
pub(crate) async fn find_session(
    store: &dyn Store,
    caller: &Admitted,
    id: Option<SessionId>,
    name: Option<&str>,
) -> Result<SessionRow, Error> {
    let (found, called) = match (id, name) {
        (Some(id), None) => {
            let found = store.session(id).await.map_err(store_error)?;
            (accessible(store, caller, found).await?, id.to_string())
        }
        (None, Some(name)) => (find_named(store, caller, name).await?, name.to_owned()),
        (Some(_), Some(_)) => {
            return Err(Error::invalid("name", "pass either `session_id` or `name`, not both"));
        }
        (None, None) => {
            return Err(Error::invalid("session_id", "is missing; pass `session_id` or `name`"));
        }
    };
    found.ok_or_else(|| session_not_found(called))
}

/// The session, if it is not deleted and the caller may do this with it.
async fn accessible(
    store: &dyn Store,
    caller: &Admitted,
    session: Option<SessionRow>,
) -> Result<Option<SessionRow>, Error> {
    let Some(session) = session.filter(|session| session.deleted_at.is_none()) else { return Ok(None) };
    let relation = relation(store, &caller.principal, &session).await?;
    Ok(relation.is_some_and(|relation| relation.meets(caller.needs)).then_some(session))
}

/// Finds a session by name or path, among those that the caller may access.
async fn find_named(store: &dyn Store, caller: &Admitted, given: &str) -> Result<Option<SessionRow>, Error> {
    let named = store.sessions_named(names::last_name(given)).await.map_err(store_error)?;
    let mut candidates = Vec::new();
    for session in named {
        if let Some(session) = accessible(store, caller, Some(session)).await? {
            let path = names::path_of(store, &caller.principal, &session).await;
            let path = path.map_err(store_error)?;
            candidates.push(names::Candidate { session, path });
        }
    }
    names::choose(given, &caller.principal.asked_as(), candidates)
}

/// Finds an approval that the caller may access in this way, and how the caller is related to its session.
pub(crate) async fn find_approval(
    store: &dyn Store,
    caller: &Admitted,
    id: ApprovalId,
) -> Result<(ApprovalRow, Relation), Error> {
    if let Some(row) = store.approval(id).await.map_err(store_error)? {
        // The most frequent case, with a child waiting: the operator needs no lookup of the session.
        if caller.principal == Principal::Operator {
            return Ok((row, Relation::Operator));
        }
        if let Some(session) = store.session(row.approval.session_id).await.map_err(store_error)?
            && let Some(relation) = relation(store, &caller.principal, &session).await?
            && relation.meets(caller.needs)
        {
            return Ok((row, relation));
        }
    }
    Err(Error::new(ErrorKind::ApprovalNotFound, format!("approval `{id}` does not exist")))
}

/// The approvals that the caller may decide. Each session is looked up once.
pub(crate) async fn decidable(
    store: &dyn Store,
    caller: &Admitted,
    rows: Vec<ApprovalRow>,
) -> Result<Vec<ApprovalRow>, Error> {
    if caller.principal == Principal::Operator {
        return Ok(rows);
    }
    let mut known: HashMap<SessionId, bool> = HashMap::new();
    let mut found = Vec::new();
    for row in rows {
        let id = row.approval.session_id;
        let may = match known.get(&id) {
            Some(may) => *may,
            None => {
                let relation = match store.session(id).await.map_err(store_error)? {
                    Some(session) => relation(store, &caller.principal, &session).await?,
                    None => None,
                };
                let may = relation.is_some_and(|to| to.meets(caller.needs) && to.right().is_some());
                known.insert(id, may);
                may
            }
        };
        if may {
            found.push(row);
        }
    }
    Ok(found)
}

/// The existing sessions that the caller may read, as trees.
pub(crate) async fn visible_sessions(
    store: &dyn Store,
    caller: &Admitted,
) -> Result<Vec<VisibleSession>, Error> {
    Ok(visible_to(&caller.principal, store.sessions_with_state().await.map_err(store_error)?))
}

/// The existing descendants of `session`, each after its parent.
pub(crate) async fn descendants(store: &dyn Store, session: SessionId) -> Result<Vec<SessionRow>, Error> {
    let all = store.sessions().await.map_err(store_error)?;
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

/// The party on whose behalf a call runs: the operator, or a caller that shares capacity with other callers.
pub(crate) fn on_behalf_of(principal: &Principal) -> OnBehalf {
    match principal {
        Principal::Operator => OnBehalf::OPERATOR,
        Principal::Token { .. } | Principal::Parent { .. } | Principal::Session { .. } => {
            OnBehalf::caller(&principal.key())
        }
    }
}
