//! Inheritance: a session can give the sessions it creates no more than it has itself. The operator, and an agent
//! outside the hub on the operator's own machine, are not restricted. Parameters that no caller may give are rejected
//! in `create`.

use std::path::{Path, PathBuf};

use plexus_protocol::claudecode::{CreateParams, PermissionMode, PolicyName};
use plexus_protocol::{AskedOf, Error, ErrorKind, Principal};
use plexus_store::{SessionConfig, Store};

use crate::Settings;
use crate::callers::access::Admitted;
use crate::errors::session_not_found;
use crate::errors::store_error;
use crate::policy::NamedPolicy;

/// Variables that control how output is shown, and not what is loaded, run or contacted.
const HARMLESS: [&str; 10] = [
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "FORCE_COLOR",
    "LANG",
    "LANGUAGE",
    "NO_COLOR",
    "TERM",
    "TZ",
];

/// Returns the parameters if this caller may give them. Missing ones get values that are no less restrictive than the
/// caller's own.
pub(crate) async fn restrict(
    store: &dyn Store,
    settings: &Settings,
    caller: &Admitted,
    mut params: CreateParams,
    working_dir: &str,
) -> Result<CreateParams, Error> {
    let Some(own) = own_config(store, &caller.principal).await? else { return Ok(params) };
    if !Path::new(working_dir).starts_with(&own.working_dir) {
        let message =
            format!("a session can create sessions only in its own directory ({})", own.working_dir);
        return Err(forbidden("working_dir", message));
    }
    let given = params.env.iter().flatten().map(|(name, _)| name);
    if let Some(name) = given.into_iter().find(|name| !may_be_given(settings, name)) {
        let message = format!(
            "a session cannot set `{name}` for another session; besides locale, time zone and colours, it \
             can set the variables in `session_env` in plexus.toml"
        );
        return Err(forbidden("env", message).with("name", name.clone()));
    }
    if own.policy == PolicyName::AskAll && *params.policy.get_or_insert(own.policy) != own.policy {
        let message =
            "a session with the policy `ask_all` can only create sessions with the policy `ask_all`";
        return Err(forbidden("policy", message.to_owned()));
    }
    match params.permission_mode {
        Some(mode) => check_mode(own.permission_mode, mode, "permission_mode")?,
        None => {
            let usual = NamedPolicy::of(params.policy.unwrap_or_default()).starts_in;
            let narrower = std::cmp::min_by_key(usual, own.permission_mode, |mode| mode.looseness());
            params.permission_mode = Some(narrower);
        }
    }
    Ok(params)
}

/// Checks that this caller may put a session in this mode, which it gave in `field`.
pub(crate) async fn check_mode_by(
    store: &dyn Store,
    caller: &Admitted,
    mode: PermissionMode,
    field: &str,
) -> Result<(), Error> {
    match own_config(store, &caller.principal).await? {
        Some(own) => check_mode(own.permission_mode, mode, field),
        None => Ok(()),
    }
}

/// The directory that a session must stay in, if its creator is a session.
pub(crate) async fn working_dir_of(store: &dyn Store, creator: &AskedOf) -> Result<Option<PathBuf>, Error> {
    let AskedOf::Session { id } = creator else { return Ok(None) };
    let session = store.session(*id).await.map_err(store_error)?.ok_or_else(|| session_not_found(id))?;
    Ok(Some(session.config.working_dir.into()))
}

/// The caller's own configuration, if it is a session.
pub(crate) async fn own_config(
    store: &dyn Store,
    principal: &Principal,
) -> Result<Option<SessionConfig>, Error> {
    let Principal::Session { id, .. } = principal else { return Ok(None) };
    let own = store.session(*id).await.map_err(store_error)?;
    // A session that is being deleted cannot create others.
    let own = own.filter(|own| own.deleted_at.is_none()).ok_or_else(|| session_not_found(id))?;
    Ok(Some(own.config))
}

/// Whether a session or a project may set a variable with this name.
pub(crate) fn may_be_given(settings: &Settings, name: &str) -> bool {
    HARMLESS.contains(&name)
        || name.starts_with("LC_")
        || settings.session_env.iter().any(|allowed| allowed == name)
}

fn check_mode(own: PermissionMode, mode: PermissionMode, field: &str) -> Result<(), Error> {
    if mode.looseness() > own.looseness() {
        let (mode, own) = (mode.as_str(), own.as_str());
        return Err(forbidden(
            field,
            format!("a session in mode `{own}` cannot set the mode `{mode}`, which is less restrictive"),
        ));
    }
    Ok(())
}

fn forbidden(field: &str, message: String) -> Error {
    Error::new(ErrorKind::Forbidden, message).with("field", field)
}
