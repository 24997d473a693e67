//! `plexus mcp`: MCP on stdio, relayed to the hub. For a parent agent it needs no secret (the Unix socket knows its
//! user); for a child of the hub it carries the token of its run. The hub may be away for as long as it likes: the
//! relay starts without it, waits for it, asks again, and shows its client meanwhile that it is alive.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use plexus_protocol::MAX_BODY_BYTES;
use plexus_server::{DataDir, INSTRUCTIONS};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig,
    Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio_pipes;
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cli::McpArgs;
use crate::client::{CallError, Client};
use crate::error::{ExpectedError, system};
use crate::serve::log_to_stderr;

/// The tool that Claude Code asks for permission. It always gets a decision, so it is known without the hub.
const PERMIT: &str = "loopback_permit";

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Relays until stdin ends.
pub(crate) fn run(args: McpArgs) -> Result<(), ExpectedError> {
    log_to_stderr("warn");
    let relay = Relay { client: client(args)?, progress_every: progress_every(), routes: Mutex::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    let outcome = runtime.block_on(async {
        let (stdin, stdout) = stdio_pipes();
        // Room for what the hub itself refuses as too large: a line that is dropped here is never answered.
        let transport = AsyncRwTransport::new(stdin, stdout).with_max_line_length(4 * MAX_BODY_BYTES);
        let service = relay.serve(transport).await.map_err(system)?;
        service.waiting().await.map(|_| ()).map_err(system)
    });
    // A read of stdin may still be under way on another thread; it must not keep the process.
    runtime.shutdown_background();
    outcome
}

fn client(args: McpArgs) -> Result<Client, ExpectedError> {
    if let (Ok(url), Ok(token)) = (std::env::var("PLEXUS_HUB_URL"), std::env::var("PLEXUS_TOKEN")) {
        let authority = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        return Ok(Client::Child { authority, token });
    }
    if args.name.is_empty() || !args.name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(ExpectedError::Usage("--as takes a name of plain letters, digits and signs".to_owned()));
    }
    Ok(Client::Parent { socket: DataDir::socket(&args.data_dir.resolve()?), name: args.name })
}

/// Clients give up on silence after 5 to 30 minutes. Tests cannot wait for so long.
fn progress_every() -> Duration {
    let given = std::env::var("PLEXUS_PROGRESS_MS").ok().and_then(|ms| ms.parse().ok()).filter(|ms| *ms > 0);
    Duration::from_millis(given.unwrap_or(20_000))
}

/// The method behind a tool.
#[derive(Debug, Clone)]
struct Route {
    method: String,
    after_loss: AfterLoss,
}

/// What to do with a call whose connection broke before the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterLoss {
    /// Make it again: it reads, or says the same thing twice.
    Repeat,
    /// Say that nobody knows whether it was done.
    Report,
}

/// A tool as `rpc.tools` describes it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Described {
    name: String,
    method: String,
    description: String,
    input_schema: JsonObject,
    repeatable: bool,
}

struct Relay {
    client: Client,
    progress_every: Duration,
    /// By tool name, as the hub last said.
    routes: Mutex<HashMap<String, Route>>,
}

impl Relay {
    /// The tools of this caller, from the hub.
    async fn tools(&self) -> Result<Vec<Described>, CallError> {
        let tools = self.call("rpc.tools", json!({}), AfterLoss::Repeat).await?;
        let tools: Vec<Described> =
            serde_json::from_value(tools).map_err(|error| CallError::Lost(error.to_string()))?;
        let routes = tools.iter().map(|tool| {
            let after_loss = if tool.repeatable { AfterLoss::Repeat } else { AfterLoss::Report };
            (tool.name.clone(), Route { method: tool.method.clone(), after_loss })
        });
        *self.routes.lock().unwrap_or_else(PoisonError::into_inner) = routes.collect();
        Ok(tools)
    }

    async fn route(&self, tool: &str) -> Result<Route, CallError> {
        if tool == PERMIT {
            return Ok(Route { method: "loopback.permit".to_owned(), after_loss: AfterLoss::Repeat });
        }
        let known = || self.routes.lock().unwrap_or_else(PoisonError::into_inner).get(tool).cloned();
        if let Some(route) = known() {
            return Ok(route);
        }
        self.tools().await?;
        known().ok_or_else(|| {
            let message = format!("there is no tool `{tool}`");
            let data = json!({"type": "method_not_found", "message": message});
            CallError::Refused { kind: "method_not_found".to_owned(), message, data }
        })
    }

    /// Calls a method, for as long as it takes: a hub that is away comes back.
    async fn call(&self, method: &str, params: Value, after_loss: AfterLoss) -> Result<Value, CallError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.client.call(method, params.clone()).await {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            if !may_try_again(&error, after_loss) {
                return Err(error);
            }
            tracing::debug!(%error, method, "trying again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn serve_tool(&self, tool: &str, params: Value) -> CallToolResult {
        let outcome = match self.route(tool).await {
            Ok(route) => self.call(&route.method, params, route.after_loss).await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(result) => CallToolResult::success(vec![ContentBlock::text(result.to_string())]),
            Err(error) if tool == PERMIT => {
                let denial = json!({"behavior": "deny", "message": format!("Plexus could not ask: {error}")});
                CallToolResult::success(vec![ContentBlock::text(denial.to_string())])
            }
            Err(error) => CallToolResult::error(vec![ContentBlock::text(describe(&error).to_string())]),
        }
    }
}

fn may_try_again(error: &CallError, after_loss: AfterLoss) -> bool {
    match error {
        CallError::NotReached(_) => true,
        CallError::Lost(_) => after_loss == AfterLoss::Repeat,
        CallError::Refused { kind, .. } => {
            after_loss == AfterLoss::Repeat && matches!(kind.as_str(), "shutting_down" | "store_unavailable")
        }
    }
}

fn describe(error: &CallError) -> Value {
    match error {
        CallError::Refused { data, .. } => data.clone(),
        CallError::NotReached(_) | CallError::Lost(_) => json!({
            "type": "hub_went_away",
            "message": format!("{error}; it is not known whether this was done: look before you repeat it"),
        }),
    }
}

impl ServerHandler for Relay {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("plexus", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = tokio::select! {
            tools = self.tools() => tools,
            () = context.ct.cancelled() => return Err(cancelled()),
        };
        let tools =
            tools.map_err(|error| ErrorData::internal_error(error.to_string(), Some(describe(&error))))?;
        let tools = tools.into_iter().map(|tool| Tool::new(tool.name, tool.description, tool.input_schema));
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let params = Value::Object(request.arguments.unwrap_or_default());
        let call = self.serve_tool(&request.name, params);
        tokio::pin!(call);
        let mut ticks = tokio::time::interval(self.progress_every);
        let mut said = 0_u32;
        loop {
            tokio::select! {
                biased;
                // Dropping the call closes its connection, which ends it in the hub as well.
                () = context.ct.cancelled() => return Err(cancelled()),
                result = &mut call => return Ok(result.into()),
                _ = ticks.tick() => {
                    said += 1;
                    if let Some(token) = context.meta.get_progress_token() {
                        let progress = ProgressNotificationParam::new(token, f64::from(said));
                        // It fails when the client is gone, and then stdin has ended, too.
                        let _ = context.peer.notify_progress(progress).await;
                    }
                }
            }
        }
    }
}

fn cancelled() -> ErrorData {
    ErrorData::internal_error("the call was cancelled", None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(kind: &str) -> CallError {
        CallError::Refused { kind: kind.to_owned(), message: String::new(), data: Value::Null }
    }

    #[test]
    fn only_what_cannot_be_done_twice_is_tried_again() {
        let not_reached = CallError::NotReached(std::io::ErrorKind::ConnectionRefused.into());
        let lost = CallError::Lost("reset".to_owned());
        assert!(may_try_again(&not_reached, AfterLoss::Report), "nothing was sent");
        assert!(!may_try_again(&lost, AfterLoss::Report), "it may have been done");
        assert!(may_try_again(&lost, AfterLoss::Repeat));
        assert!(may_try_again(&refused("shutting_down"), AfterLoss::Repeat));
        assert!(!may_try_again(&refused("shutting_down"), AfterLoss::Report));
        assert!(!may_try_again(&refused("session_not_found"), AfterLoss::Repeat));
    }

    #[test]
    fn a_call_that_was_lost_says_that_nobody_knows() {
        let said = describe(&CallError::Lost("reset".to_owned()));
        assert_eq!(said["type"], "hub_went_away");
        assert!(said["message"].as_str().unwrap().contains("not known whether"));
    }
}
