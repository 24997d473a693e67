//! The hub's own tools behind `/mcp`: which tools a caller sees, and how the hub calls them.

use std::sync::Arc;
use std::time::Duration;

use plexus_core::{Caller, Door, Hub, Method, method_not_found};
use plexus_protocol::{Error, ErrorKind, Principal};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;

use super::toolbox::Toolbox;

/// The hub's methods as MCP tools.
#[derive(Clone)]
pub(crate) struct HubTools {
    hub: Arc<Hub>,
}

impl HubTools {
    pub(crate) fn new(hub: Arc<Hub>) -> Self {
        Self { hub }
    }
}

impl Toolbox for HubTools {
    async fn tools(&self, context: &RequestContext<RoleServer>) -> Result<Vec<Method>, Error> {
        self.hub.tools(&principal(context)?).await
    }

    async fn call(
        &self,
        tool: &str,
        params: Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, Value> {
        let call = async {
            let method = self.hub.registry().tool(tool).ok_or_else(|| method_not_found(tool))?;
            let caller = Caller::of(principal(context)?, Door::Mcp);
            self.hub.call(caller, method.name, params).await
        };
        call.await.map_err(|error: Error| error.to_object().into())
    }

    fn progress_every(&self) -> Duration {
        self.hub.settings().progress_every
    }
}

/// The caller that the door authenticated.
fn principal(context: &RequestContext<RoleServer>) -> Result<Principal, Error> {
    let parts = context.extensions.get::<http::request::Parts>();
    let known = parts.and_then(|parts| parts.extensions.get::<Principal>()).cloned();
    known.ok_or_else(|| Error::new(ErrorKind::Internal, "the caller is unknown"))
}
