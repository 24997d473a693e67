//! The MCP server with the fixtures of the conformance suite. It implements the behaviour of each fixture. rmcp implements the protocol, and
//! the hub's door is in front of it.
#![expect(deprecated, reason = "the suite also tests what the protocol had before 2026-07-28")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, CompleteRequestParams,
    CompleteResult, ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
    LoggingMessageNotificationParam, PaginatedRequestParams, ProgressNotificationParam, PromptMessage,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Role, ServerConfig, ServerRequest,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ErrorData, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::broadcast;

use crate::fixtures::{Fixtures, List, PromptDoes, ToolDoes, fill};
use crate::rounds::{Attempt, Outcome, Rounds};

/// The pause between two notifications of a tool.
const PAUSE: Duration = Duration::from_millis(50);

/// How long a client may take to answer. Without sessions it cannot answer at all, so this is short.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);

/// The server behind `/mcp`.
#[derive(Clone)]
pub struct ConformanceServer {
    fixtures: Arc<Fixtures>,
    /// By the name of their tool or prompt.
    rounds: Arc<HashMap<String, Rounds>>,
    changes: broadcast::Sender<List>,
}

impl ConformanceServer {
    pub fn new() -> anyhow::Result<Self> {
        let fixtures: Fixtures =
            serde_json::from_str(include_str!("fixtures.json")).context("fixtures.json")?;
        let tools = fixtures.tools.iter().filter_map(|fixture| {
            let rounds = match &fixture.does {
                ToolDoes::Input(requests) => Rounds::one(requests.clone()),
                ToolDoes::Rounds(requests) => Rounds::with_state(requests.clone()),
                _ => return None,
            };
            Some((fixture.tool.name.to_string(), rounds))
        });
        let prompts = fixtures.prompts.iter().filter_map(|fixture| match &fixture.does {
            PromptDoes::Input(requests) => Some((fixture.prompt.name.clone(), Rounds::one(requests.clone()))),
            PromptDoes::Messages(_) => None,
        });
        let rounds = Arc::new(tools.chain(prompts).collect());
        Ok(Self { fixtures: Arc::new(fixtures), rounds, changes: broadcast::channel(16).0 })
    }

    fn after(&self, name: &str, attempt: &Attempt<'_>) -> Result<Outcome, ErrorData> {
        self.rounds.get(name).ok_or_else(|| unknown("name", name))?.after(attempt)
    }
}

impl ServerHandler for ConformanceServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(self.fixtures.capabilities.clone())
            .with_server_info(Implementation::new("plexus-conformance", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.fixtures.tools.iter().map(|fixture| fixture.tool.clone());
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.fixtures.tools.iter().map(|fixture| &fixture.tool).find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let fixture = self.fixtures.tools.iter().find(|fixture| fixture.tool.name == request.name);
        let fixture = fixture.ok_or_else(|| unknown("name", &request.name))?;
        let arguments = request.arguments.clone().unwrap_or_default();
        match &fixture.does {
            ToolDoes::Answer(content) => Ok(CallToolResult::success(content.clone()).into()),
            ToolDoes::Fail(content) => Ok(CallToolResult::error(content.clone()).into()),
            ToolDoes::Log(messages) => log(&context, messages).await,
            ToolDoes::Progress(steps) => progress(&context, steps).await,
            ToolDoes::Ask(question) => ask(&context, read(question, &arguments)?).await,
            ToolDoes::Need(needed) if lacks(&context, needed) => {
                Err(ErrorData::missing_required_client_capability(needed.clone()))
            }
            ToolDoes::Need(_) => Ok(text("It is all there.")),
            ToolDoes::Change(list) => {
                // There may be no listener.
                let _ = self.changes.send(*list);
                Ok(text("It has changed."))
            }
            ToolDoes::Input(_) | ToolDoes::Rounds(_) => {
                let attempt = Attempt {
                    responses: request.input_responses.as_ref(),
                    state: request.request_state.as_deref(),
                    capabilities: context.client_capabilities(),
                };
                Ok(match self.after(&request.name, &attempt)? {
                    Outcome::Complete(responses) => text(&format!("state-ok: {}", json!(responses))),
                    Outcome::Required(required) => required.into(),
                })
            }
        }
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompts = self.fixtures.prompts.iter().map(|fixture| fixture.prompt.clone());
        Ok(ListPromptsResult::with_all_items(prompts.collect()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let fixture = self.fixtures.prompts.iter().find(|fixture| fixture.prompt.name == request.name);
        let fixture = fixture.ok_or_else(|| unknown("name", &request.name))?;
        match &fixture.does {
            PromptDoes::Messages(messages) => {
                let messages = read(messages, &request.arguments.unwrap_or_default())?;
                Ok(GetPromptResult::new(messages).into())
            }
            PromptDoes::Input(_) => {
                let attempt = Attempt {
                    responses: request.input_responses.as_ref(),
                    state: request.request_state.as_deref(),
                    capabilities: context.client_capabilities(),
                };
                Ok(match self.after(&request.name, &attempt)? {
                    Outcome::Complete(responses) => {
                        let message = PromptMessage::new_text(Role::User, json!(responses).to_string());
                        GetPromptResult::new(vec![message]).into()
                    }
                    Outcome::Required(required) => required.into(),
                })
            }
        }
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources = self.fixtures.resources.iter().map(|fixture| fixture.resource.clone());
        Ok(ListResourcesResult::with_all_items(resources.collect()))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = self.fixtures.templates.iter().map(|fixture| fixture.template.clone());
        Ok(ListResourceTemplatesResult::with_all_items(templates.collect()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let fixtures = &self.fixtures;
        let fixed = fixtures.resources.iter().find(|fixture| fixture.resource.uri == request.uri);
        let contents = fixed
            .map(|fixture| fixture.contents.clone())
            .or_else(|| fixtures.templates.iter().find_map(|fixture| fixture.contents_of(&request.uri)))
            .ok_or_else(|| {
                ErrorData::resource_not_found("there is no such resource", Some(json!({"uri": request.uri})))
            })?;
        Ok(ReadResourceResult::new(vec![read(&contents, &Map::new())?]).into())
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(CompleteResult::default())
    }

    async fn set_level(
        &self,
        _request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes.subscribe();
        loop {
            let change = tokio::select! {
                () = context.cancelled() => return Ok(()),
                change = changes.recv() => change,
            };
            // The sink drops changes that this listener did not subscribe to.
            let _ = match change {
                Ok(List::Tools) => context.sink().notify_tool_list_changed().await,
                Ok(List::Prompts) => context.sink().notify_prompt_list_changed().await,
                Err(_) => return Ok(()),
            };
        }
    }
}

fn text(text: &str) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

fn unknown(field: &str, value: &str) -> ErrorData {
    ErrorData::invalid_params(format!("no {field} `{value}` is known here"), None)
}

/// Fills the arguments into a fixture and deserializes the result.
fn read<T: DeserializeOwned>(fixture: &Value, arguments: &Map<String, Value>) -> Result<T, ErrorData> {
    serde_json::from_value(fill(fixture, arguments))
        .map_err(|error| ErrorData::internal_error(format!("a fixture cannot be read: {error}"), None))
}

/// Whether a client did not declare a required capability.
fn lacks(context: &RequestContext<RoleServer>, needed: &ClientCapabilities) -> bool {
    let declared = context.client_capabilities().unwrap_or_default();
    needed.sampling.is_some() && declared.sampling.is_none()
}

/// Sends log messages to clients that want them. Since 2026-07-28 each call says whether it does.
async fn log(
    context: &RequestContext<RoleServer>,
    messages: &[String],
) -> Result<CallToolResponse, ErrorData> {
    if context.meta.protocol_version().is_none() || context.meta.log_level().is_some() {
        for message in messages {
            let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(message));
            // It fails if the client has disconnected.
            let _ = context.peer.notify_logging_message(message).await;
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(text("It is done."))
}

async fn progress(
    context: &RequestContext<RoleServer>,
    steps: &[f64],
) -> Result<CallToolResponse, ErrorData> {
    for step in steps {
        if let Some(token) = context.meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, *step).with_total(100.0);
            // It fails if the client has disconnected.
            let _ = context.peer.notify_progress(progress).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(text("It is done."))
}

/// Sends the client a request during its own.
async fn ask(
    context: &RequestContext<RoleServer>,
    question: ServerRequest,
) -> Result<CallToolResponse, ErrorData> {
    let answer = tokio::time::timeout(ANSWER_WITHIN, context.peer.send_request(question)).await;
    match answer {
        Ok(Ok(answer)) => Ok(text(&format!("The client says: {}", json!(answer)))),
        Ok(Err(error)) => Err(ErrorData::internal_error(error.to_string(), None)),
        Err(_) => Err(ErrorData::internal_error("the client did not answer", None)),
    }
}
