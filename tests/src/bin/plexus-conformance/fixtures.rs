//! What the suite wants to find, as data (`fixtures.json`): each tool, prompt and resource with what it does. The
//! names and contents are the suite's; it describes them in the text of its scenarios.

use rmcp::model::{
    ClientCapabilities, ContentBlock, InputRequests, Prompt, Resource, ResourceTemplate, ServerCapabilities,
    Tool,
};
use serde::Deserialize;
use serde_json::{Map, Value};

/// All of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixtures {
    pub capabilities: ServerCapabilities,
    pub tools: Vec<ToolFixture>,
    pub prompts: Vec<PromptFixture>,
    pub resources: Vec<ResourceFixture>,
    pub templates: Vec<TemplateFixture>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolFixture {
    pub tool: Tool,
    pub does: ToolDoes,
}

/// What a tool does when it is called.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolDoes {
    /// Answers with this content.
    Answer(Vec<ContentBlock>),
    /// Fails with this content.
    Fail(Vec<ContentBlock>),
    /// Logs these messages.
    Log(Vec<String>),
    /// Shows that it is so far, of a hundred.
    Progress(Vec<f64>),
    /// Sends the client this request and waits for its answer.
    Ask(Value),
    /// Refuses a client without these capabilities.
    Need(ClientCapabilities),
    /// Says that a list has changed.
    Change(List),
    /// Wants these answers with the next try.
    Input(InputRequests),
    /// Wants answers in several rounds, and its state back each time.
    Rounds(Vec<InputRequests>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum List {
    Tools,
    Prompts,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptFixture {
    pub prompt: Prompt,
    pub does: PromptDoes,
}

/// What a prompt does when it is got.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptDoes {
    /// Gives these messages.
    Messages(Value),
    /// Wants these answers with the next try.
    Input(InputRequests),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceFixture {
    pub resource: Resource,
    pub contents: Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TemplateFixture {
    pub template: ResourceTemplate,
    pub contents: Value,
}

impl TemplateFixture {
    /// The contents behind a URI of this template, which has one variable, `{id}`.
    pub fn contents_of(&self, uri: &str) -> Option<Value> {
        let (before, after) = self.template.uri_template.split_once("{id}")?;
        let id = uri.strip_prefix(before)?.strip_suffix(after)?;
        Some(fill(&self.contents, &Map::from_iter([("id".to_owned(), id.into())])))
    }
}

/// Puts arguments in the place of their `{name}`, in every text there is.
pub fn fill(value: &Value, arguments: &Map<String, Value>) -> Value {
    match value {
        Value::String(text) => {
            let filled = arguments.iter().fold(text.clone(), |text, (name, argument)| {
                let argument = argument.as_str().map_or_else(|| argument.to_string(), str::to_owned);
                text.replace(&format!("{{{name}}}"), &argument)
            });
            filled.into()
        }
        Value::Array(items) => items.iter().map(|item| fill(item, arguments)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| (name.clone(), fill(field, arguments))).collect()
        }
        other => other.clone(),
    }
}
