//! `claudecode.create`: creates a session, and its worktree if requested. It validates the parameters, including what
//! the caller may grant. With a prompt, it also starts the first turn.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plexus_files::{ResolveDir, Resolved};
use plexus_policy::{Rule, RuleEffect, RuleEntry, Scope};
use plexus_protocol::arbor::Position;
use plexus_protocol::budget::Budget;
use plexus_protocol::claudecode::{CreateParams, CreateResult, ImportedConfig, PolicyName, TrustedProject};
use plexus_protocol::policy::RuleGiven;
use plexus_protocol::worktree::{Isolation, WorktreeIsolation};
use plexus_protocol::{AttachmentGiven, Error, ErrorKind, NodeId, Principal, SessionId, TreeId};
use plexus_store::{Change, ConversationStart, NewSession, OnBehalf, Refusal, SessionConfig, StoreError};
use tokio_util::sync::CancellationToken;

use super::chat_async::{check_prompt, start_turn};
use crate::Hub;
use crate::activations::template::TemplateUse;
use crate::adoption::{Adopted, Adoption};
use crate::attachments;
use crate::budget_requests;
use crate::callers::access::{Admitted, Needs};
use crate::errors::store_error;
use crate::hooks;
use crate::hub::Method;
use crate::loading::{self, Loaded, LoadedProject, Trust};
use crate::method::{Audience, IfUnreachable, Subject};
use crate::policy::NamedPolicy;
use crate::policy::RuleContext;
use crate::policy::inheritance::{may_be_given, restrict};
use crate::processes::environment::{claude_projects, environment};
use crate::processes::shell::{PREFIX_VARIABLE, SHELL_VARIABLE};
use crate::session::{Prompt, PromptFormat};
use crate::worktrees::PendingWorktree;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.create",
        "Creates a supervised Claude Code agent. Its tool calls wait until you answer them with \
         loopback_respond. Pass `prompt` to start it at once, or use claudecode_chat_async.",
        Audience::Agents,
        Needs::Act,
        create,
    )
    .on_host_of(Subject::Host, IfUnreachable::Fail)
}

async fn create(hub: Arc<Hub>, caller: Admitted, mut params: CreateParams) -> Result<CreateResult, Error> {
    check_host(&hub, &params)?;
    let template = TemplateUse::fill_in(&hub, &caller, &mut params).await?;
    let created = create_session(hub, caller, params).await;
    created.map_err(|error| match &template {
        Some(template) => template.explain(error),
        None => error,
    })
}

/// `Hub::call` sends the call to the host that is named or chosen by labels. So another name, or labels alone, mean that this hub has no other hosts.
fn check_host(hub: &Hub, params: &CreateParams) -> Result<(), Error> {
    const ALONE: &str = "this hub shares its store with no other host; omit it";
    match (&params.host, &params.labels) {
        (Some(host), _) if !hub.is_own(Some(host)) => Err(Error::invalid("host", ALONE)),
        (None, Some(_)) => Err(Error::invalid("labels", ALONE)),
        _ => Ok(()),
    }
}

async fn create_session(
    hub: Arc<Hub>,
    caller: Admitted,
    params: CreateParams,
) -> Result<CreateResult, Error> {
    let WorkingDir { path: working_dir, repository } = check_working_dir(&hub, &params.working_dir).await?;
    let mut params = restrict(hub.store(), hub.settings(), &caller, params, &working_dir).await?;
    check_params(&caller, &params)?;
    let prompt = first_prompt(&caller, params.prompt.take(), params.attachments.take())?;
    let gated = params.loopback_enabled.unwrap_or(true);
    let policy = params.policy.unwrap_or_default();
    let limits = params.budget.as_ref().map(Budget::limits).transpose()?.unwrap_or_default();
    let id = SessionId::random();
    let grants = Grants {
        by: caller.principal.clone(),
        trust: Trust::requested(&caller, params.trust_project)?,
        rules: params.rules.unwrap_or_default(),
        limits: budget_requests::changes(&caller.principal, id, &params.name, limits),
        scope: params.approve_scope.unwrap_or_default(),
    };
    let imported = imported(&hub, &caller, params.imported, &working_dir)?;
    // Validates before anything is created. A worktree resolves the same values again, relative to its own directory.
    let resolved = grants.resolve(&hub, id, &working_dir).await?;
    let mut session = NewSession {
        id,
        name: params.name,
        answers_to: caller.principal.asked_as(),
        config: SessionConfig {
            working_dir,
            repository,
            worktree: None,
            model: params.model,
            system_prompt: params.system_prompt,
            append_system_prompt: params.append_system_prompt,
            loopback_enabled: gated,
            channel: params.channel.unwrap_or_default(),
            permission_mode: params.permission_mode.unwrap_or(NamedPolicy::of(policy).starts_in),
            policy,
            deltas: params.deltas.unwrap_or(false),
            env: params.env.unwrap_or_default(),
            mcp_servers: loading::given(hub.store(), &caller, params.mcp_servers).await?,
            hub_tools: params.hub_tools.unwrap_or(false),
            project: resolved.project,
            imported,
            approve_scope: resolved.approve_scope,
            approval_timeout_secs: params.approval_timeout_secs,
            escalate_after_secs: params.escalate_after_secs,
            wake: params.wake.unwrap_or(false),
            metadata: params.metadata,
            forked: None,
            resumed_from: None,
            hooks: hooks::check(&caller.principal, params.hooks)?,
        },
        tree: TreeId::random(),
        head: NodeId::random(),
        start: ConversationStart::NewTree,
        host: hub.store().host().cloned(),
    };
    hub.claude_version().check().await?;
    if let Some(claude_session) = params.resume {
        adopt(&hub, claude_session, &mut session).await?;
    }
    let Some(Isolation(isolation)) = params.isolation else {
        admit(&hub, &session).await?;
        return commit_session(&hub, session, resolved.changes, prompt, None).await;
    };
    admit(&hub, &session).await?;
    // If the caller disconnects, this function is dropped, but the task continues: it undoes or completes the creation.
    let disconnected = CancellationToken::new();
    let _cancel_on_drop = disconnected.clone().drop_guard();
    let creation = create_isolated(Arc::clone(&hub), session, grants, isolation, prompt, disconnected);
    let task = hub.tasks().spawn(OnBehalf::current().perform(creation));
    task.await.unwrap_or_else(|_| {
        Err(Error::new(
            ErrorKind::Internal,
            "internal error: the session was not created; see the log of the hub",
        ))
    })
}

/// Checks what can be checked without the store and the file system.
pub(crate) fn check_params(caller: &Admitted, params: &CreateParams) -> Result<(), Error> {
    if let Some(prompt) = &params.prompt {
        check_prompt(prompt)?;
    }
    if params.loopback_enabled == Some(false) && caller.principal != Principal::Operator {
        let message = "only the operator can create a session without a gate";
        return Err(Error::new(ErrorKind::Forbidden, message).with("field", "loopback_enabled"));
    }
    if params.policy == Some(PolicyName::AllowAll) && caller.principal != Principal::Operator {
        let message = "only the operator can create a session with the policy `allow_all`";
        return Err(Error::new(ErrorKind::Forbidden, message).with("field", "policy"));
    }
    if params.approval_timeout_secs == Some(0) {
        return Err(Error::invalid("approval_timeout_secs", "must be at least 1; omit it for no limit"));
    }
    if params.escalate_after_secs == Some(0) {
        return Err(Error::invalid("escalate_after_secs", "must be at least 1; omit it for the default"));
    }
    let for_children =
        "only allowed with `hub_tools: true`: it applies to the sessions that the new one creates";
    if params.wake == Some(true) && params.hub_tools != Some(true) {
        return Err(Error::invalid("wake", for_children));
    }
    check_env(params)?;
    check_resume(caller, params)?;
    params.budget.as_ref().map(Budget::limits).transpose()?;
    if params.approve_scope.as_ref().is_some_and(|scope| !scope.is_empty()) && params.hub_tools != Some(true)
    {
        return Err(Error::invalid("approve_scope", for_children));
    }
    if let Some(Isolation(isolation)) = &params.isolation {
        check_isolation(caller, isolation)?;
    }
    Ok(())
}

/// Lets the new session continue a Claude Code conversation that the hub did not start.
async fn adopt(hub: &Hub, claude_session: SessionId, session: &mut NewSession) -> Result<(), Error> {
    let adoption = Adoption {
        id: claude_session,
        projects: projects_of(hub, Some(&session.config))?,
        working_dir: &session.config.working_dir,
        tree: session.tree,
    };
    let Adopted { head, resume, conversation } = adoption.read(hub.files()).await?;
    session.head = head;
    session.start = ConversationStart::Adopted(conversation);
    session.config.forked = Some(resume);
    session.config.resumed_from = Some(claude_session);
    Ok(())
}

/// The directory in which Claude Code stores the transcripts of a session with this configuration, or of the user.
pub(super) fn projects_of(hub: &Hub, config: Option<&SessionConfig>) -> Result<Option<PathBuf>, Error> {
    let user = hub.parts().user_settings.effective();
    let user = user.map_err(|why| Error::new(ErrorKind::BadUserSettings, why))?;
    let env = match config {
        Some(config) => Loaded::of(config, user).env,
        None => user.env,
    };
    Ok(claude_projects(&environment(hub.settings(), SessionId::random(), &env)))
}

/// The imported servers and agents of a session. Only sessions of the operator get them.
fn imported(
    hub: &Hub,
    caller: &Admitted,
    requested: Option<bool>,
    working_dir: &str,
) -> Result<Option<ImportedConfig>, Error> {
    match (requested, &caller.principal) {
        (Some(true) | None, Principal::Operator) => hub.parts().imports.for_session(working_dir),
        (Some(true), _) => {
            let message = "only sessions of the operator get imported servers and agents";
            Err(Error::new(ErrorKind::Forbidden, message).with("field", "imported"))
        }
        (Some(false) | None, _) => Ok(None),
    }
}

/// What the caller gives a session: rules, a budget, the approvals that it may allow for its descendants, and trust in
/// its project. Some of these values depend on the working directory.
struct Grants {
    by: Principal,
    trust: Trust,
    rules: Vec<RuleGiven>,
    scope: Vec<String>,
    /// The budget of the session and its descendants.
    limits: Vec<Change>,
}

/// The same values for one working directory, with absolute paths.
struct ResolvedGrants {
    changes: Vec<Change>,
    approve_scope: Vec<String>,
    project: Option<TrustedProject>,
}

impl Grants {
    async fn resolve(&self, hub: &Hub, session: SessionId, base: &str) -> Result<ResolvedGrants, Error> {
        let home = hub.settings().home.as_deref();
        let context = RuleContext { principal: &self.by, session: Some(session), base, home };
        let mut changes = context.rules(&self.rules, "rules")?;
        changes.extend(self.limits.iter().cloned());
        let approve_scope = self.resolve_scope(hub, base).await?;
        let project = match self.trust {
            Trust::Nothing => None,
            Trust::Project => Some(
                LoadedProject::read(hub.files(), Path::new(base), hub.settings().home.as_deref(), |name| {
                    may_be_given(hub.settings(), name)
                })
                .await?,
            ),
        };
        changes.extend(project.iter().flat_map(|project| project.rules(session)));
        Ok(ResolvedGrants { changes, approve_scope, project: project.map(|loaded| loaded.project) })
    }

    /// The calls that the session may allow for its descendants. They never exceed what its creator may allow.
    async fn resolve_scope(&self, hub: &Hub, base: &str) -> Result<Vec<String>, Error> {
        const FIELD: &str = "approve_scope";
        let home = hub.settings().home.as_deref();
        let mut rules = Vec::new();
        for (i, text) in self.scope.iter().enumerate() {
            let entry = RuleEntry::parse(text, RuleEffect::Allow).map_err(|error| {
                let message = format!("at byte {}: expected {}", error.at, error.expected);
                Error::invalid(&format!("{FIELD}[{i}]"), message).with("at", error.at)
            })?;
            rules.push(entry.rule().anchored(Path::new(base), home));
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
pub(super) async fn admit(hub: &Hub, session: &NewSession) -> Result<(), Error> {
    hub.parts().disk.check_space(&hub.parts().metrics)?;
    hub.parts().sandbox.check()?;
    hub.count_sessions_elsewhere().await?;
    let limits = &hub.settings().limits;
    hub.parts().reservations.reserve_session(session.id, &session.answers_to, limits).map_err(|limit| {
        hub.parts().metrics.refused(limit);
        limit.refusal(limits)
    })
}

/// Creates the worktree, and then the session that works in it.
async fn create_isolated(
    hub: Arc<Hub>,
    mut session: NewSession,
    grants: Grants,
    isolation: WorktreeIsolation,
    prompt: Option<Prompt>,
    disconnected: CancellationToken,
) -> Result<CreateResult, Error> {
    let creation = async {
        // Fails early, before the worktree is created. The commit checks the name again.
        let name = session.name.as_str();
        let named = hub.store().sessions_named(name).await.map_err(store_error)?;
        if named.iter().any(|other| other.answers_to == session.answers_to) {
            return Err(store_error(StoreError::Refused(Refusal::NameTaken(name.to_owned()))));
        }
        PendingWorktree::create(hub.shared_parts(), &session, isolation, &disconnected).await
    };
    let pending = creation.await.inspect_err(|_| hub.parts().reservations.release_session(session.id))?;
    session.config.working_dir = pending.working_dir().to_owned();
    session.config.worktree = Some(pending.worktree().clone());
    let rules = match grants.resolve(&hub, session.id, &session.config.working_dir).await {
        Ok(resolved) => {
            session.config.approve_scope = resolved.approve_scope;
            session.config.project = resolved.project;
            resolved.changes
        }
        Err(error) => {
            hub.parts().reservations.release_session(session.id);
            pending.undo().await;
            return Err(error);
        }
    };
    commit_session(&hub, session, rules, prompt, Some(pending)).await
}

/// Commits the session, and starts its first turn if the caller gave a prompt.
async fn commit_session(
    hub: &Hub,
    session: NewSession,
    mut changes: Vec<Change>,
    prompt: Option<Prompt>,
    pending: Option<PendingWorktree>,
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
        hub.parts().reservations.release_session(id);
    }
    match (committed, pending) {
        (Ok(_), pending) => drop(pending.map(PendingWorktree::hand_over)),
        (Err(error), None) => return Err(store_error(error)),
        (Err(error), Some(pending)) => {
            pending.undo().await;
            return Err(store_error(error));
        }
    }
    let (turn, cursor) = match prompt {
        Some(prompt) => {
            let started = start_turn(hub, id, prompt).await?;
            (Some(started.turn), Some(started.cursor))
        }
        None => (None, None),
    };
    Ok(CreateResult::Created { id, head, turn, cursor, may_decide, hint })
}

/// The prompt of the first turn, if the caller gave one.
fn first_prompt(
    caller: &Admitted,
    text: Option<String>,
    given: Option<Vec<AttachmentGiven>>,
) -> Result<Option<Prompt>, Error> {
    let attachments = attachments::given(&caller.principal, given)?;
    let Some(text) = text else {
        if attachments.is_empty() {
            return Ok(None);
        }
        return Err(Error::invalid("attachments", "needs `prompt`: the files belong to the first prompt"));
    };
    check_prompt(&text)?;
    Ok(Some(Prompt { text, format: PromptFormat::Plain, attachments }))
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

/// A directory that a session can work in.
pub(crate) struct WorkingDir {
    /// Its path without links.
    pub(crate) path: String,
    /// The root of the repository that contains it.
    pub(crate) repository: Option<String>,
}

/// Accepts an existing directory outside the hub's data directory. It may contain the data directory if the sandbox hides that.
pub(crate) async fn check_working_dir(hub: &Hub, given: &str) -> Result<WorkingDir, Error> {
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
    let inside = || {
        bad(format!("`working_dir` {given} is inside the data directory of Plexus; choose another directory"))
    };
    if path.starts_with(data) {
        return inside();
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
        Resolved::Directory { path, .. } if Path::new(&path).starts_with(data) => inside(),
        Resolved::Directory { path, .. }
            if data.starts_with(&path) && !hub.parts().sandbox.hides_data_dir() =>
        {
            bad(format!(
                "`working_dir` {given} contains the data directory of Plexus, and no sandbox hides that \
                 directory from agents; choose another directory, or see `plexus doctor` for the sandbox"
            ))
        }
        Resolved::Directory { path, repository } => Ok(WorkingDir { path, repository }),
        Resolved::NotUtf8 => bad("`working_dir` is not valid UTF-8".to_owned()),
        Resolved::NotADirectory => bad(format!("`working_dir` {given} is not a directory")),
        Resolved::Nothing(why) => bad(format!("`working_dir` {given} cannot be used: {why}")),
    }
}

/// A session could read the user's conversations with `resume`.
fn check_resume(caller: &Admitted, params: &CreateParams) -> Result<(), Error> {
    if params.resume.is_none() {
        return Ok(());
    }
    if caller.principal != Principal::Operator {
        let message = "only the operator can continue a Claude Code session";
        return Err(Error::new(ErrorKind::Forbidden, message).with("field", "resume"));
    }
    if params.isolation.is_some() {
        let why = "cannot be combined with `resume`: Claude Code finds a session only in its own directory";
        return Err(Error::invalid("isolation", why));
    }
    Ok(())
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
