//! `template.save`: stores a template, after the checks that `claudecode.create` makes with the same parameters.

use std::collections::BTreeMap;
use std::sync::Arc;

use plexus_protocol::claudecode::{CreateParams, McpServer, McpServerGiven, McpServerKind};
use plexus_protocol::template::{SaveParams, SaveResult, Template};
use plexus_protocol::{Decider, Error, ErrorKind, SessionName, TemplateName};
use plexus_store::Change;

use super::use_in_create::fill_in;
use crate::Hub;
use crate::activations::claudecode::{check_params, check_working_dir};
use crate::callers::access::{Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::loading;
use crate::method::Audience;

/// The maximum size of a template. `template.list` returns all templates with their prompts.
const MAX_BYTES: usize = 64 * 1024;

pub(super) fn method() -> Method {
    Method::new(
        "template.save",
        "Stores parameters for new sessions under a name. A template with this name is replaced.",
        Audience::Programs,
        Needs::Rule,
        save,
    )
}

async fn save(hub: Arc<Hub>, caller: Admitted, params: SaveParams) -> Result<SaveResult, Error> {
    let SaveParams {
        name,
        prompt,
        working_dir,
        model,
        permission_mode,
        policy,
        budget,
        isolation,
        mcp_servers,
    } = params;
    let working_dir = match working_dir {
        Some(given) => Some(check_working_dir(&hub, &given).await?.path),
        None => None,
    };
    let mcp_servers = servers(&hub, &caller, &name, mcp_servers.unwrap_or_default()).await?;
    let template =
        Template { prompt, working_dir, model, permission_mode, policy, budget, isolation, mcp_servers };
    check(&caller, &template)?;
    let by = Decider::from(&caller.principal);
    let change = Change::SaveTemplate { name: name.clone(), template: Box::new(template), by };
    hub.commit(vec![change]).await.map_err(store_error)?;
    Ok(SaveResult::Ok { name })
}

/// The servers to store: the given ones, and the `inherited` ones with the configuration of the stored template.
async fn servers(
    hub: &Hub,
    caller: &Admitted,
    name: &TemplateName,
    given: BTreeMap<String, McpServerGiven>,
) -> Result<BTreeMap<String, McpServer>, Error> {
    let stored = hub.store().template(name).await.map_err(store_error)?;
    let stored = stored.map(|row| row.template.mcp_servers).unwrap_or_default();
    let mut all = BTreeMap::new();
    for (server, given) in given {
        let given = match given.kind {
            Some(McpServerKind::Inherited) => {
                let kept = stored.get(&server).cloned().ok_or_else(|| {
                    let why = format!("the template `{name}` has no server `{server}` to keep");
                    Error::invalid(&format!("mcp_servers.{server}.type"), why)
                })?;
                McpServerGiven::from(kept)
            }
            _ => given,
        };
        all.insert(server, given);
    }
    loading::given(hub.store(), caller, Some(all)).await
}

/// Checks the template as `create` does, except for the session's name and directory.
fn check(caller: &Admitted, template: &Template) -> Result<(), Error> {
    let name =
        SessionName::try_from("template".to_owned()).map_err(|why| Error::new(ErrorKind::Internal, why))?;
    let mut params = CreateParams::minimal(name, String::new());
    fill_in(&mut params, template.clone());
    check_params(caller, &params)?;
    let size = serde_json::to_string(template).map_or(usize::MAX, |text| text.len());
    if size > MAX_BYTES {
        let message =
            format!("a template can have at most {} KiB; this one has {} KiB", MAX_BYTES / 1024, size / 1024);
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    Ok(())
}
