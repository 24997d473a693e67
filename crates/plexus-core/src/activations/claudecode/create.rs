//! `claudecode.create`: creates a session, and its worktree if requested. It validates the parameters, including what
//! the caller may grant. With a prompt, it also starts the first turn.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plexus_files::{ResolveDir, Resolved};
use plexus_policy::{Rule, RuleEffect, RuleEntry, Scope};
use plexus_protocol::arbor::Position;
use plexus_protocol::budget::Budget;
use plexus_protocol::claudecode::{CreateParams, CreateResult, PolicyName, TrustedProject};
use plexus_protocol::policy::RuleGiven;
use plexus_protocol::worktree::{Isolation, WorktreeIsolation};
use plexus_protocol::{Error, ErrorKind, NodeId, Principal, SessionId, TreeId};
use plexus_store::{Begins, Change, NewSession, OnBehalf, Refusal, SessionConfig, StoreError};
use tokio_util::sync::CancellationToken;

use super::chat_async::{begin, check_prompt};
use crate::Hub;
use crate::access::{Admitted, Needs};
use crate::budgets;
use crate::errors::store_error;
use crate::hub::Method;
use crate::inheritance::{bounded, may_be_given};
use crate::loading::{self, Taken, Trust};
use crate::method::Audience;
use crate::policy::Giver;
use crate::policy::NamedPolicy;
use crate::session::{Prompt, PromptFormat};
use crate::shell::{PREFIX_VARIABLE, SHELL_VARIABLE};
use crate::worktrees::Making;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.create",
        "Creates a supervised Claude Code agent. Its tool calls wait until you answer them with \
         loopback_respond. Pass `prompt` to start it at once, or use claudecode_chat_async.",
        Audience::Agents,
        Needs::Act,
        create,
    )
}

async fn create(hub: Arc<Hub>, caller: Admitted, params: CreateParams) -> Result<CreateResult, Error> {
    let working_dir = check_working_dir(&hub, &params.working_dir).await?;
    let params = bounded(hub.store(), hub.settings(), &caller, params, &working_dir).await?;
    if let Some(prompt) = &params.prompt {
        check_prompt(prompt)?;
    }
    let gated = params.loopback_enabled.unwrap_or(true);
    if !gated && caller.principal != Principal::Operator {
        let message = "only the operator can create a session without a gate";
        return Err(Error::new(ErrorKind::Forbidden, message).with("field", "loopback_enabled"));
    }
    let policy = params.policy.unwrap_or_default();
    if policy == PolicyName::AllowAll && caller.principal != Principal::Operator {
        let message = "only the operator can create a session with the policy `allow_all`";
        return Err(Error::new(ErrorKind::Forbidden, message).with("field", "policy"));
    }
    if params.approval_timeout_secs == Some(0) {
        return Err(Error::invalid("approval_timeout_secs", "must be at least 1; omit it for no limit"));
    }
    if params.escalate_after_secs == Some(0) {
        return Err(Error::invalid("escalate_after_secs", "must be at least 1; omit it for the default"));
    }
    if params.wake == Some(true) && params.hub_tools != Some(true) {
        return Err(Error::invalid(
            "wake",
            "only allowed with `hub_tools: true`: it applies to the sessions that the new one creates",
        ));
    }
    check_env(&params)?;
    let limits = params.budget.as_ref().map(Budget::limits).transpose()?.unwrap_or_default();
    let id = SessionId::random();
    if params.approve_scope.as_ref().is_some_and(|scope| !scope.is_empty()) && params.hub_tools != Some(true)
    {
        let why = "only allowed with `hub_tools: true`: it applies to the sessions that the new one creates";
        return Err(Error::invalid("approve_scope", why));
    }
    let given = Given {
        by: caller.principal.clone(),
        trust: Trust::asked(&caller, params.trust_project)?,
        rules: params.rules.unwrap_or_default(),
        limits: budgets::changes(&caller.principal, id, &params.name, limits),
        scope: params.approve_scope.unwrap_or_default(),
    };
    // Validates before anything is created. A worktree resolves the same values again, relative to its own directory.
    let settled = given.at(&hub, id, &working_dir).await?;
    let session = NewSession {
        id,
        name: params.name,
        answers_to: caller.principal.asked_as(),
        config: SessionConfig {
            working_dir,
            worktree: None,
            model: params.model,
            system_prompt: params.system_prompt,
            loopback_enabled: gated,
            channel: params.channel.unwrap_or_default(),
            permission_mode: params.permission_mode.unwrap_or(NamedPolicy::of(policy).starts_in),
            policy,
            deltas: params.deltas.unwrap_or(false),
            env: params.env.unwrap_or_default(),
            mcp_servers: loading::given(hub.store(), &caller, params.mcp_servers).await?,
            hub_tools: params.hub_tools.unwrap_or(false),
            project: settled.project,
            approve_scope: settled.approve_scope,
            approval_timeout_secs: params.approval_timeout_secs,
            escalate_after_secs: params.escalate_after_secs,
            wake: params.wake.unwrap_or(false),
            metadata: params.metadata,
            forked: None,
        },
        tree: TreeId::random(),
        head: NodeId::random(),
        begins: Begins::NewTree,
    };
    let Some(Isolation(isolation)) = params.isolation else {
        admit(&hub, &session)?;
        return enter(&hub, session, settled.changes, params.prompt, None).await;
    };
    check_isolation(&caller, &isolation)?;
    admit(&hub, &session)?;
    // If the caller disconnects, this function is dropped, but the task continues: it undoes or completes the creation.
    let gone = CancellationToken::new();
    let _tells_it = gone.clone().drop_guard();
    let making = isolated(Arc::clone(&hub), session, given, isolation, params.prompt, gone);
    let task = hub.tasks().spawn(OnBehalf::current().perform(making));
    task.await.unwrap_or_else(|_| {
        Err(Error::new(
            ErrorKind::Internal,
            "internal error: the session was not created; see the log of the hub",
        ))
    })
}

/// What the caller gives a session: rules, a budget, the approvals that it may allow for its descendants, and trust in
/// its project. Some of these values depend on the working directory.
struct Given {
    by: Principal,
    trust: Trust,
    rules: Vec<RuleGiven>,
    scope: Vec<String>,
    /// The budget of the session and its descendants.
    limits: Vec<Change>,
}

/// The same values for one working directory, with absolute paths.
struct Settled {
    changes: Vec<Change>,
    approve_scope: Vec<String>,
    project: Option<TrustedProject>,
}

impl Given {
    async fn at(&self, hub: &Hub, session: SessionId, base: &str) -> Result<Settled, Error> {
        let home = hub.settings().home.as_deref();
        let giver = Giver { principal: &self.by, session: Some(session), base, home };
        let mut changes = giver.rules(&self.rules, "rules")?;
        changes.extend(self.limits.iter().cloned());
        let approve_scope = self.scope_at(hub, base).await?;
        let taken = match self.trust {
            Trust::Nothing => None,
            Trust::Project => Some(
                Taken::read(hub.files(), Path::new(base), |name| may_be_given(hub.settings(), name)).await?,
            ),
        };
        changes.extend(taken.iter().flat_map(|taken| taken.rules(session)));
        Ok(Settled { changes, approve_scope, project: taken.map(|taken| taken.project) })
    }

    /// The calls that the session may allow for its descendants. They never exceed what its creator may allow.
    async fn scope_at(&self, hub: &Hub, base: &str) -> Result<Vec<String>, Error> {
        const FIELD: &str = "approve_scope";
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let mut rules = Vec::new();
        for (i, text) in self.scope.iter().enumerate() {
            let entry = RuleEntry::parse(text, RuleEffect::Allow).map_err(|error| {
                let message = format!("at byte {}: expected {}", error.at, error.expected);
                Error::invalid(&format!("{FIELD}[{i}]"), message).with("at", error.at)
            })?;
            rules.push(entry.rule().anchored(Path::new(base), home.as_deref()));
        }
        Scope::new(&rules).map_err(|error| Error::invalid(FIELD, error.to_string()))?;
        if let Principal::Session { id, .. } = self.by {
            let scopes = hub.policy().scopes_of(id).await?;
            let beyond = scopes.map_or_else(|| rules.first(), |scopes| scopes.first_beyond(&rules));
            if let Some(rule) = beyond {
                let message = format!("`{rule}` allows more than your own `approve_scope`");
                return Err(Error::new(ErrorKind::Forbidden, message).with("field", FIELD));
            }
        }
        Ok(rules.iter().map(Rule::to_string).collect())
    }
}

/// Checks the disk and the sandbox, and reserves a slot for a session that is about to be created.
pub(super) fn admit(hub: &Hub, session: &NewSession) -> Result<(), Error> {
    hub.parts().disk.check_room(&hub.parts().metrics)?;
    hub.parts().sandbox.check()?;
    let limits = &hub.settings().limits;
    hub.parts().room.admit(session.id, &session.answers_to, limits).map_err(|limit| {
        hub.parts().metrics.refused(limit);
        limit.refusal(limits)
    })
}

/// Creates the worktree, and then the session that works in it.
async fn isolated(
    hub: Arc<Hub>,
    mut session: NewSession,
    given: Given,
    isolation: WorktreeIsolation,
    prompt: Option<String>,
    gone: CancellationToken,
) -> Result<CreateResult, Error> {
    let making = async {
        // Fails early, before the worktree is created. The commit checks the name again.
        let name = session.name.as_str();
        if hub.store().session_named(name).await.map_err(store_error)?.is_some() {
            return Err(store_error(StoreError::Refused(Refusal::NameTaken(name.to_owned()))));
        }
        Making::ready(hub.shared_parts(), &session, isolation, &gone).await
    };
    let making = making.await.inspect_err(|_| hub.parts().room.leaves(session.id))?;
    session.config.working_dir = making.working_dir().to_owned();
    session.config.worktree = Some(making.worktree().clone());
    let rules = match given.at(&hub, session.id, &session.config.working_dir).await {
        Ok(settled) => {
            session.config.approve_scope = settled.approve_scope;
            session.config.project = settled.project;
            settled.changes
        }
        Err(error) => {
            hub.parts().room.leaves(session.id);
            making.undo().await;
            return Err(error);
        }
    };
    enter(&hub, session, rules, prompt, Some(making)).await
}

/// Commits the session, and starts its first turn if the caller gave a prompt.
async fn enter(
    hub: &Hub,
    session: NewSession,
    mut changes: Vec<Change>,
    prompt: Option<String>,
    making: Option<Making>,
) -> Result<CreateResult, Error> {
    let may_decide = session.config.hub_tools.then(|| session.config.approve_scope.clone());
    let hint = may_decide.as_ref().filter(|scope| scope.is_empty()).map(|_| {
        "This session can deny calls of the sessions below it, but cannot allow any: those approvals \
         escalate. `approve_scope` sets what it may allow."
            .to_owned()
    });
    let (id, head) = (session.id, Position { tree_id: session.tree, node_id: session.head });
    // The commit may succeed although the caller has disconnected. The session then exists and keeps its slot.
    changes.insert(0, Change::CreateSession(Box::new(session)));
    let committed = hub.commit(changes).await;
    if committed.is_err() {
        hub.parts().room.leaves(id);
    }
    match (committed, making) {
        (Ok(_), making) => drop(making.map(Making::handed_over)),
        (Err(error), None) => return Err(store_error(error)),
        (Err(error), Some(making)) => {
            making.undo().await;
            return Err(store_error(error));
        }
    }
    let (turn, cursor) = match prompt {
        Some(text) => begin(hub, id, Prompt { text, format: PromptFormat::Plain })
            .await
            .map(|(turn, cursor)| (Some(turn), Some(cursor)))?,
        None => (None, None),
    };
    Ok(CreateResult::Created { id, head, turn, cursor, may_decide, hint })
}

/// A session may isolate its children, but may not run setup commands, which no approval covers.
fn check_isolation(caller: &Admitted, isolation: &WorktreeIsolation) -> Result<(), Error> {
    if isolation.setup.is_some() && matches!(caller.principal, Principal::Session { .. }) {
        let message = "a session cannot pass `setup`, because the command would run without an approval";
        return Err(Error::new(ErrorKind::Forbidden, message).with("field", "isolation.setup"));
    }
    if isolation.setup.as_ref().is_some_and(|setup| setup.trim().is_empty() || setup.contains('\0')) {
        return Err(Error::invalid(
            "isolation.setup",
            "must be a command; it is empty or contains a NUL character",
        ));
    }
    if isolation.setup_timeout_secs == Some(0) {
        return Err(Error::invalid("isolation.setup_timeout_secs", "must be at least 1"));
    }
    Ok(())
}

/// Accepts an existing directory that neither contains the hub's data directory nor lies in it.
async fn check_working_dir(hub: &Hub, given: &str) -> Result<String, Error> {
    let bad = |why: String| Err(Error::new(ErrorKind::BadWorkingDir, why).with("field", "working_dir"));
    let path = Path::new(given);
    if given.is_empty() {
        return bad("`working_dir` is empty; pass the absolute path of a directory".to_owned());
    }
    if !path.is_absolute() {
        return bad(format!("`working_dir` is relative ({given}); pass an absolute path"));
    }
    // The path of the data directory contains no symbolic links.
    let data = &hub.settings().data_dir;
    let ours = || {
        bad(format!(
            "`working_dir` {given} contains the data directory of Plexus or is inside it; choose another \
             directory"
        ))
    };
    if path.starts_with(data) {
        return ours();
    }
    let resolve = ResolveDir { path: path.to_owned() };
    let resolved = hub.files().call(resolve, None, &mut tokio::io::sink()).await;
    let resolved = resolved.map_err(|error| {
        // A missing sandbox is the cause to report: without it, no helper can resolve a directory.
        hub.parts()
            .sandbox
            .check()
            .err()
            .unwrap_or_else(|| Error::new(ErrorKind::Internal, error.to_string()))
    })?;
    match resolved {
        Resolved::Directory(real) if Path::new(&real).starts_with(data) || data.starts_with(&real) => ours(),
        Resolved::Directory(real) => Ok(real),
        Resolved::NotUtf8 => bad("`working_dir` is not valid UTF-8".to_owned()),
        Resolved::NotADirectory => bad(format!("`working_dir` {given} is not a directory")),
        Resolved::Nothing(why) => bad(format!("`working_dir` {given} cannot be used: {why}")),
    }
}

/// Rejects invalid environment variable names, and variables that Plexus sets itself.
fn check_env(params: &CreateParams) -> Result<(), Error> {
    for (name, value) in params.env.iter().flatten() {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(Error::invalid("env", format!("`{name}` is not a valid environment variable")));
        }
        if name.starts_with("PLEXUS_")
            || ["CLAUDECODE", SHELL_VARIABLE, PREFIX_VARIABLE].contains(&name.as_str())
        {
            return Err(Error::invalid("env", format!("Plexus sets `{name}` itself; remove it")));
        }
    }
    Ok(())
}
