//! `claudecode.user_settings`: shows which of the user's Claude Code settings agents receive. The operator can also
//! accept changes to them.

use std::sync::Arc;

use plexus_protocol::audit::{AuditEntry, AuditKind};
use plexus_protocol::claudecode::{UserSettingsParams, UserSettingsResult};
use plexus_protocol::{Error, ErrorKind};
use plexus_store::Change;
use serde_json::json;

use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;
use plexus_book::now;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.user_settings",
        "Shows which of the user's Claude Code settings agents get; with `accept`, applies the changes in \
         the file.",
        Audience::Programs,
        Needs::Rule,
        user_settings,
    )
}

async fn user_settings(
    hub: Arc<Hub>,
    caller: Admitted,
    params: UserSettingsParams,
) -> Result<UserSettingsResult, Error> {
    let user = &hub.parts().user_settings;
    let unusable = |why: String| Error::new(ErrorKind::BadUserSettings, why);
    if params.accept == Some(true) {
        let current = user.current(hub.files()).await;
        let changed = user.changed(current.clone()).unwrap_or_default();
        let act = AuditEntry {
            detail: json!({"changed": changed}).as_object().cloned(),
            ..AuditEntry::of_caller(now(), AuditKind::Policy, "user_settings_accepted", &caller.principal)
        };
        hub.commit(vec![Change::Audit(Box::new(act))]).await.map_err(store_error)?;
        user.accept(current).map_err(unusable)?;
        hub.policy().in_force.set_restriction(user.restriction());
    }
    let effective = user.effective().map_err(unusable)?;
    Ok(UserSettingsResult::Ok {
        file: user.file().map(|file| file.display().to_string()),
        loads: effective.names(),
        deny: effective.deny.into_iter().collect(),
        changed: user.changed(user.current(hub.files()).await).map_err(unusable)?,
    })
}
