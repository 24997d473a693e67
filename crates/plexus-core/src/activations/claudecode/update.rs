//! `claudecode.update`: changes the name, the model and the permission mode of a session in one call. It is the one tool of
//! agents for `rename`, `set_model` and `set_permission_mode`, and applies the same checks. The operator also changes the
//! title here, and archives sessions.

use std::sync::Arc;

use plexus_protocol::claudecode::{UpdateParams, UpdateResult, Updated};
use plexus_protocol::{Error, ErrorKind};

use super::archive::{ArchiveChange, apply_archive, apply_title, check_operator, checked_title};
use super::rename::apply_name;
use super::set_model::apply_model;
use super::set_permission_mode::apply_mode;
use crate::Hub;
use crate::callers::access::{self, Admitted, Needs};
use crate::hub::Method;
use crate::method::{Audience, IfUnreachable, Subject};
use crate::policy::inheritance::check_mode_by;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.update",
        "Changes the name, model or permission mode of a session, also during a turn. Its mode can be no less \
         restrictive than yours. If the agent rejects one, `updated` in the error lists the changes that stay.",
        Audience::Agents,
        Needs::Act,
        update,
    )
    .on_host_of(Subject::Session, IfUnreachable::Fail)
}

async fn update(hub: Arc<Hub>, caller: Admitted, params: UpdateParams) -> Result<UpdateResult, Error> {
    let UpdateParams { session_id, name, new_name, model, permission_mode, title, archived } = params;
    let session = access::find_session(hub.store(), &caller, session_id, name.as_deref()).await?;
    let no_agent_field = new_name.is_none() && model.is_none() && permission_mode.is_none();
    if no_agent_field && title.is_none() && archived.is_none() {
        let message = "nothing to change: pass `new_name`, `model`, `permission_mode`, `title` or `archived`";
        return Err(Error::new(ErrorKind::InvalidParams, message));
    }
    // Checks everything that can be checked before the first change.
    if let Some(mode) = permission_mode {
        check_mode_by(hub.store(), &caller, mode, "permission_mode").await?;
    }
    if title.is_some() {
        check_operator(&caller, "title")?;
    }
    if archived.is_some() {
        check_operator(&caller, "archived")?;
    }
    let title = title.as_deref().map(checked_title).transpose()?;
    let mut updated = Vec::new();
    if let Some(new_name) = new_name {
        apply_name(&hub, &caller, &session, new_name).await?;
        updated.push(Updated::NewName);
    }
    if let Some(title) = title {
        apply_title(&hub, &caller, &session, title).await.map_err(|error| after(&updated, error))?;
        updated.push(Updated::Title);
    }
    if let Some(archived) = archived {
        let applied = apply_archive(&hub, &caller, &session, ArchiveChange::from(archived)).await;
        applied.map_err(|error| after(&updated, error))?;
        updated.push(Updated::Archived);
    }
    // The agent may reject the next two, so the error says what was changed before.
    if let Some(mode) = permission_mode {
        let applied = apply_mode(&hub, &caller, &session, mode).await;
        applied.map_err(|error| after(&updated, error))?;
        updated.push(Updated::PermissionMode);
    }
    if let Some(model) = model {
        let applied = apply_model(&hub, &caller, &session, Some(model)).await;
        applied.map_err(|error| after(&updated, error))?;
        updated.push(Updated::Model);
    }
    Ok(UpdateResult::Ok { session_id: session.id, updated })
}

/// Adds the changes that were already applied to the error of a failed change. They are not undone.
fn after(updated: &[Updated], error: Error) -> Error {
    let updated: Vec<&str> = updated.iter().map(|one| one.as_str()).collect();
    error.with("updated", updated)
}
