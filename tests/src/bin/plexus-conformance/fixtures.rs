//! The tools, prompts and resources that the suite expects, as data (`fixtures.json`). Their names and contents come from the text of the
//! suite's scenarios.

use rmcp::model::{
    ClientCapabilities, ContentBlock, InputRequests, Prompt, Resource, ResourceTemplate, ServerCapabilities,
    Tool,
};
use serde::Deserialize;
use serde_json::{Map, Value};

/// All fixtures.
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

/// The behaviour of a tool.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolDoes {
    /// Answers with this content.
    Answer(Vec<ContentBlock>),
    /// Fails with this content.
    Fail(Vec<ContentBlock>),
    /// Logs these messages.
    Log(Vec<String>),
    /// Reports these percentages as progress.
    Progress(Vec<f64>),
    /// Sends this request to the client and waits for the answer.
    Ask(Value),
    /// Refuses a client without these capabilities.
    Need(ClientCapabilities),
    /// Notifies that a list has changed.
    Change(List),
    /// Requires these answers with the next attempt.
    Input(InputRequests),
    /// Requires answers in several rounds, and its state with each.
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

/// The behaviour of a prompt.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptDoes {
    /// Returns these messages.
    Messages(Value),
    /// Requires these answers with the next attempt.
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
    /// The contents for a URI of this template, which has one variable, `{id}`.
    pub fn contents_of(&self, uri: &str) -> Option<Value> {
        let (before, after) = self.template.uri_template.split_once("{id}")?;
        let id = uri.strip_prefix(before)?.strip_suffix(after)?;
        Some(fill(&self.contents, &Map::from_iter([("id".to_owned(), id.into())])))
    }
}

/// Replaces each `{name}` by its argument, in every text.
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
