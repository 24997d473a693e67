//! `plexus mcp`: an MCP server on stdio that relays to the hub. A parent agent needs no secret, because the Unix socket identifies
//! its user; a child of the hub sends the token of its run. The relay does not need a running hub: it lists the tools without it,
//! waits and retries while the hub is disconnected, and sends progress to its client.

use std::time::Duration;

use plexus_core::{Method, Registry, Repeat, ToolUser, method_not_found};
use plexus_protocol::{Error, MAX_BODY_BYTES};
use plexus_server::{DataDir, HubKey, ToolServer, Toolbox};
use rmcp::ServiceExt;
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio_pipes;
use serde_json::{Value, json};
use tracing::level_filters::LevelFilter;

use crate::cli::McpArgs;
use crate::client::{CallError, Client};
use crate::error::{ExpectedError, system};
use crate::orphaned::orphaned;
use crate::serve::log_to_stderr;

/// The method by which Claude Code asks for permission. It always returns a decision.
const PERMIT: &str = "loopback.permit";

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Relays until stdin ends, the parent process exits, or the data directory is deleted.
pub(crate) fn run(args: McpArgs) -> Result<(), ExpectedError> {
    log_to_stderr(LevelFilter::WARN);
    let data_dir = args.data_dir.resolve();
    let client = client(args)?;
    // A child of the hub cannot see the data directory; its keeper ends it when the directory is deleted.
    let data_dir = if let Client::Parent { .. } = client { data_dir.ok() } else { None };
    let user = user(&client);
    let relay = Relay { client, progress_every: progress_every(), methods: plexus_server::methods(), user };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    let outcome = runtime.block_on(async {
        let (stdin, stdout) = stdio_pipes();
        // Larger than the hub's own limit, so that the hub refuses a large line; a line dropped here gets no answer.
        let transport = AsyncRwTransport::new(stdin, stdout).with_max_line_length(4 * MAX_BODY_BYTES);
        let relayed = async {
            let service = ToolServer(relay).serve(transport).await.map_err(system)?;
            service.waiting().await.map(|_| ()).map_err(system)
        };
        tokio::select! {
            relayed = relayed => relayed,
            () = orphaned(data_dir.as_deref()) => Ok(()),
        }
    });
    // A read of stdin may still block another thread; it must not keep the process alive.
    runtime.shutdown_background();
    outcome
}

fn client(args: McpArgs) -> Result<Client, ExpectedError> {
    if let (Ok(url), Ok(token)) = (std::env::var("PLEXUS_HUB_URL"), std::env::var("PLEXUS_TOKEN")) {
        let authority = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let key = std::env::var("PLEXUS_HUB_KEY").ok().map(HubKey);
        return Ok(Client::Child { authority, token, key });
    }
    if args.name.is_empty() || !args.name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(ExpectedError::Usage(
            "--as takes a name of printable ASCII characters without spaces".to_owned(),
        ));
    }
    Ok(Client::Parent { socket: DataDir::socket(&args.data_dir.resolve()?), name: args.name })
}

/// Selects the tools to list. The hub checks again when one is called.
fn user(client: &Client) -> ToolUser {
    match client {
        Client::Operator { .. } | Client::Parent { .. } => ToolUser::Parent,
        Client::Child { .. } if std::env::var_os("PLEXUS_HUB_TOOLS").is_some_and(|given| given == "1") => {
            ToolUser::ChildWithHubTools
        }
        Client::Child { .. } => ToolUser::Child,
    }
}

/// Clients time out after 5 to 30 minutes of silence. Tests use a shorter interval.
fn progress_every() -> Duration {
    let given = std::env::var("PLEXUS_PROGRESS_MS").ok().and_then(|ms| ms.parse().ok()).filter(|ms| *ms > 0);
    Duration::from_millis(given.unwrap_or(20_000))
}

struct Relay {
    client: Client,
    progress_every: Duration,
    /// The methods of a hub of this version, so that tools can be listed without a running hub.
    methods: Registry,
    user: ToolUser,
}

impl Relay {
    /// Calls a method and retries while the hub is disconnected.
    async fn call_hub(&self, method: &str, params: Value, repeat: Repeat) -> Result<Value, CallError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.client.call(method, params.clone()).await {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            if !may_try_again(&error, repeat) {
                return Err(error);
            }
            tracing::debug!(%error, method, "trying again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }
}

/// Whether to retry a failed call: it was never sent, or is safe to repeat.
fn may_try_again(error: &CallError, repeat: Repeat) -> bool {
    match error {
        CallError::NotReached(_) => true,
        CallError::Lost(_) => repeat == Repeat::Safe,
        CallError::Refused { kind, .. } => match kind.as_str() {
            // The hub rejected the call before handling it.
            "too_many_calls" | "too_many_bytes" | "hub_busy" | "request_timeout" => true,
            "shutting_down" | "store_unavailable" => repeat == Repeat::Safe,
            _ => false,
        },
    }
}

fn describe(error: &CallError) -> Value {
    match error {
        CallError::Refused { data, .. } => data.clone(),
        CallError::NotReached(_) | CallError::Lost(_) => json!({
            "type": "hub_went_away",
            "message": format!("{error}; it is not known whether this was done: check before you repeat it"),
        }),
    }
}

impl Toolbox for Relay {
    async fn tools(&self, _context: &RequestContext<RoleServer>) -> Result<Vec<Method>, Error> {
        Ok(self.methods.tools_of(self.user).cloned().collect())
    }

    async fn call(
        &self,
        tool: &str,
        params: Value,
        _context: &RequestContext<RoleServer>,
    ) -> Result<Value, Value> {
        let Some(method) = self.methods.tool(tool) else {
            return Err(method_not_found(tool).to_object().into());
        };
        // Dropping this closes the connection, which cancels the call in the hub.
        match self.call_hub(method.name, params, method.repeat).await {
            Ok(result) => Ok(result),
            Err(error) if method.name == PERMIT => Ok(
                json!({"behavior": "deny", "message": format!("Plexus could not request approval: {error}")}),
            ),
            Err(error) => Err(describe(&error)),
        }
    }

    fn progress_every(&self) -> Duration {
        self.progress_every
    }

    fn can_run_agents(&self) -> bool {
        self.user != ToolUser::Child
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(kind: &str) -> CallError {
        CallError::Refused { kind: kind.to_owned(), message: String::new(), data: Value::Null }
    }

    #[test]
    fn a_call_is_retried_only_if_that_cannot_run_it_twice() {
        let not_reached = CallError::NotReached(std::io::ErrorKind::ConnectionRefused.into());
        let lost = CallError::Lost("reset".to_owned());
        assert!(may_try_again(&not_reached, Repeat::Unsafe), "nothing was sent");
        assert!(!may_try_again(&lost, Repeat::Unsafe), "it may have taken effect");
        assert!(may_try_again(&lost, Repeat::Safe));
        assert!(may_try_again(&refused("shutting_down"), Repeat::Safe));
        assert!(!may_try_again(&refused("shutting_down"), Repeat::Unsafe));
        assert!(!may_try_again(&refused("session_not_found"), Repeat::Safe));
        for full in ["too_many_calls", "too_many_bytes", "hub_busy", "request_timeout"] {
            assert!(may_try_again(&refused(full), Repeat::Unsafe), "{full}: it had no effect");
        }
    }

    #[test]
    fn a_lost_call_is_reported_as_unknown() {
        let described = describe(&CallError::Lost("reset".to_owned()));
        assert_eq!(described["type"], "hub_went_away");
        assert!(described["message"].as_str().unwrap().contains("not known whether"));
    }
}
