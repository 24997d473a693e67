//! `claudecode.imports`: lists the rules, MCP servers, agents and skills of the user's own Claude Code configuration, and
//! compares them with the hub's copies.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::claudecode::{ImportsResult, NoParams};

use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::hub::Method;
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.imports",
        "Lists what `claudecode.import` can import from the user's own Claude Code configuration.",
        Audience::Programs,
        Needs::Rule,
        imports,
    )
    .repeatable()
}

async fn imports(hub: Arc<Hub>, _caller: Admitted, _params: NoParams) -> Result<ImportsResult, Error> {
    let imports = &hub.parts().imports;
    let candidates = imports.candidates(hub.files()).await?;
    let denied: Vec<String> =
        hub.parts().user_settings.effective().unwrap_or_default().deny.into_iter().collect();
    let items = imports.items(&candidates, &hub.policy().in_force.list(None), &denied)?;
    Ok(ImportsResult::Ok { dir: imports.dir()?.display().to_string(), items })
}
