//! Parses the user's Claude Code configuration into entries that can be imported, each with the reason if it cannot. No
//! description or reason contains a value of a variable or a header.

use std::collections::BTreeSet;
use std::path::Path;

use plexus_files::{ReadUserConfig, USER_AGENTS, USER_SETTINGS, USER_SKILLS, USER_STATE, UserFile};
use plexus_protocol::claudecode::{ImportKind, McpServer, McpServerGiven};
use plexus_protocol::policy::Effect;
use plexus_protocol::{Error, ErrorKind, Object};
use serde_json::{Value, json};

use super::super::{agents, servers};
use super::rules::{self, ImportedRule};
use crate::callers::secret::content_hash;
use crate::processes::files::Files;

/// The fields of a server that the hub knows.
const SERVER_FIELDS: [&str; 7] = ["type", "command", "args", "env", "url", "headers", "timeout"];

/// The size limit of an agent, which is shown in full before it is imported.
const MAX_AGENT_BYTES: usize = 64 * 1024;

/// An entry of the user's configuration.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) kind: ImportKind,
    pub(crate) name: String,
    pub(crate) does: String,
    pub(crate) file: String,
    pub(crate) with: Vec<String>,
    pub(crate) left_out: Vec<String>,
    /// What would be imported, or why it cannot be.
    pub(crate) content: Result<Content, String>,
}

/// The content of an entry.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    Rule(ImportedRule),
    Server(McpServer),
    Agent(Value),
}

impl Candidate {
    fn new(kind: ImportKind, name: &str, file: &str, content: Result<Content, String>) -> Self {
        let mut candidate = Self {
            kind,
            name: name.to_owned(),
            does: String::new(),
            file: file.to_owned(),
            with: Vec::new(),
            left_out: Vec::new(),
            content,
        };
        match &candidate.content {
            Ok(Content::Rule(rule)) => candidate.does = effect_name(rule.effect).to_owned(),
            Ok(Content::Server(server)) => {
                candidate.does = server_does(server);
                candidate.with = names_in(server);
            }
            Ok(Content::Agent(agent)) => candidate.does = agent_does(agent),
            Err(_) => {}
        }
        candidate
    }

    fn refused(kind: ImportKind, name: &str, file: &str, why: impl ToString) -> Self {
        Self::new(kind, name, file, Err(why.to_string()))
    }

    /// The hash of the content; `None` if it cannot be imported.
    pub(crate) fn digest(&self) -> Option<String> {
        let content = match self.content.as_ref().ok()? {
            Content::Rule(rule) => json!([effect_name(rule.effect), rule.stored]),
            Content::Server(server) => json!(server),
            Content::Agent(agent) => agent.clone(),
        };
        Some(content_hash(json!([self.kind, self.name, content]).to_string().as_bytes()))
    }
}

/// Reads the user's configuration through the file helper.
pub(super) async fn read(
    files: &Files,
    dir: &Path,
    state: Option<&Path>,
    home: Option<&Path>,
) -> Result<Vec<Candidate>, Error> {
    let mut contents = Vec::new();
    let verb = ReadUserConfig { dir: dir.to_owned(), state: state.map(Path::to_owned) };
    let fault = |why: String| Error::new(ErrorKind::BadUserSettings, why);
    let read = files.call(verb, None, &mut contents).await.map_err(|error| fault(error.to_string()))?;
    let mut rest = &contents[..];
    let mut candidates = Vec::new();
    for UserFile { path, size } in read {
        let content = match size {
            Err(why) => Err(why),
            Ok(size) => {
                let (content, after) = usize::try_from(size)
                    .ok()
                    .and_then(|size| rest.split_at_checked(size))
                    .ok_or_else(|| fault(format!("the content of {path} is incomplete")))?;
                rest = after;
                Ok(content)
            }
        };
        add(&mut candidates, &path, content, home);
    }
    Ok(candidates)
}

/// Adds the entries of one file.
fn add(candidates: &mut Vec<Candidate>, path: &str, content: Result<&[u8], String>, home: Option<&Path>) {
    let kind = match path.split('/').next() {
        Some(USER_STATE) => ImportKind::Server,
        Some(USER_AGENTS) => ImportKind::Agent,
        Some(USER_SKILLS) => ImportKind::Skill,
        _ => ImportKind::Rule,
    };
    if kind == ImportKind::Skill {
        return add_skill(candidates, path);
    }
    let text = content.and_then(|content| {
        std::str::from_utf8(content).map_err(|_| "the file is not valid UTF-8".to_owned())
    });
    match (path, text) {
        (_, Err(why)) => candidates.push(Candidate::refused(kind, path, path, why)),
        (USER_SETTINGS, Ok(text)) => add_rules(candidates, text, home),
        (USER_STATE, Ok(text)) => add_servers(candidates, text),
        (_, Ok(text)) => add_agent(candidates, path, text),
    }
}

fn add_rules(candidates: &mut Vec<Candidate>, text: &str, home: Option<&Path>) {
    let refused = |name: &str, why: &str| Candidate::refused(ImportKind::Rule, name, USER_SETTINGS, why);
    let settings: Object = match serde_json::from_str(text) {
        Ok(settings) => settings,
        Err(error) => return candidates.push(refused(USER_SETTINGS, &syntax(&error))),
    };
    let mut seen = BTreeSet::new();
    for effect in [Effect::Allow, Effect::Ask, Effect::Deny] {
        let key = effect_name(effect);
        let given = match settings.get("permissions").and_then(|permissions| permissions.get(key)) {
            None => continue,
            Some(given) => given,
        };
        let name = format!("permissions.{key}");
        let Some(entries) = given.as_array() else {
            candidates.push(refused(&name, "it is not a list"));
            continue;
        };
        for entry in entries {
            let Some(text) = entry.as_str() else {
                candidates.push(refused(&name, "an entry is not a string"));
                continue;
            };
            if !seen.insert((key, text)) {
                continue;
            }
            let rule = rules::import(text, effect, home).map(Content::Rule);
            let mut candidate = Candidate::new(ImportKind::Rule, text, USER_SETTINGS, rule);
            key.clone_into(&mut candidate.does);
            candidates.push(candidate);
        }
    }
}

fn add_servers(candidates: &mut Vec<Candidate>, text: &str) {
    let state: Object = match serde_json::from_str(text) {
        Ok(state) => state,
        Err(error) => {
            let refused = Candidate::refused(ImportKind::Server, USER_STATE, USER_STATE, syntax(&error));
            return candidates.push(refused);
        }
    };
    let servers = |of: &Value| of.get("mcpServers").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut add = |project: Option<&str>, servers: Object| {
        for (name, given) in servers {
            let key = match project {
                Some(project) => format!("{project}:{name}"),
                None => name.clone(),
            };
            let server = server(&name, given).map(Content::Server);
            candidates.push(Candidate::new(ImportKind::Server, &key, USER_STATE, server));
        }
    };
    let projects = state.get("projects").and_then(Value::as_object).cloned().unwrap_or_default();
    add(None, servers(&Value::Object(state)));
    for (project, of) in projects.iter().filter(|(project, _)| project.starts_with('/')) {
        add(Some(project), servers(of));
    }
}

/// Parses a server. The reason for a refusal names fields and no values, which may be secret.
fn server(name: &str, given: Value) -> Result<McpServer, String> {
    let fields = given.as_object().ok_or("its definition is not an object")?;
    if let Some(field) = fields.keys().find(|field| !SERVER_FIELDS.contains(&field.as_str())) {
        return Err(format!("the hub does not support its field `{field}`"));
    }
    let given: McpServerGiven = serde_path_to_error::deserialize(given)
        .map_err(|error| format!("its field `{}` has an unsupported value", error.path()))?;
    servers::checked(name, given, name).map_err(|error| error.message)
}

fn add_agent(candidates: &mut Vec<Candidate>, path: &str, text: &str) {
    let stem = Path::new(path).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let refused = |why: String| Candidate::refused(ImportKind::Agent, stem, path, why);
    candidates.push(match agents::parse(text, stem) {
        Err((line, why)) => refused(format!("line {line}: {why}")),
        Ok(_) if text.len() > MAX_AGENT_BYTES => {
            refused(format!("it has more than {} KiB", MAX_AGENT_BYTES / 1024))
        }
        Ok(agent) if candidates.iter().any(|c| c.kind == ImportKind::Agent && c.name == agent.name) => {
            refused(format!("another file already defines the agent `{}`", agent.name))
        }
        Ok(agent) => {
            let content = Ok(Content::Agent(agent.definition));
            let mut candidate = Candidate::new(ImportKind::Agent, &agent.name, path, content);
            candidate.left_out = agent.left_out;
            candidate
        }
    });
}

/// Adds a skill at the first of its files.
fn add_skill(candidates: &mut Vec<Candidate>, path: &str) {
    let Some(name) = path.split('/').nth(1) else { return };
    if !candidates.iter().any(|c| c.kind == ImportKind::Skill && c.name == name) {
        let why = "agents of Plexus load no skills; see docs/design/30-import.md";
        let file = format!("{USER_SKILLS}/{name}");
        candidates.push(Candidate::refused(ImportKind::Skill, name, &file, why));
    }
}

/// The project and the name of a server that belongs to one project.
pub(super) fn project_of(key: &str) -> Option<(&str, &str)> {
    // The name of a server contains no colon.
    key.rsplit_once(':').filter(|(project, _)| project.starts_with('/'))
}

/// The command line or the URL of a server.
pub(super) fn server_does(server: &McpServer) -> String {
    match server {
        McpServer::Stdio { command, args, .. } => {
            let words = std::iter::once(command).chain(args);
            words.map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
        }
        McpServer::Http(endpoint) | McpServer::Sse(endpoint) => endpoint.url.clone(),
    }
}

/// A word as a shell would need it, so that the boundaries of arguments are visible.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-=:@+,%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

fn names_in(server: &McpServer) -> Vec<String> {
    match server {
        McpServer::Stdio { env, .. } => env.keys().map(|name| format!("env {name}")).collect(),
        McpServer::Http(endpoint) | McpServer::Sse(endpoint) => {
            endpoint.headers.keys().map(|name| format!("header {name}")).collect()
        }
    }
}

/// The description of an agent, and its tools.
pub(super) fn agent_does(agent: &Value) -> String {
    let description = agent["description"].as_str().unwrap_or_default();
    match agent["tools"].as_array() {
        Some(tools) => {
            let tools: Vec<&str> = tools.iter().filter_map(Value::as_str).collect();
            format!("{description} (tools: {})", tools.join(", "))
        }
        None => description.to_owned(),
    }
}

fn effect_name(effect: Effect) -> &'static str {
    match effect {
        Effect::Allow => "allow",
        Effect::Deny => "deny",
        Effect::Ask => "ask",
    }
}

/// The position of a syntax error. The message of the parser may quote the content.
fn syntax(error: &serde_json::Error) -> String {
    format!("not a JSON object: line {}, column {}", error.line(), error.column())
}

#[cfg(test)]
pub(super) fn parsed(path: &str, text: &str) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    add(&mut candidates, path, Ok(text.as_bytes()), Some(Path::new("/nonexistent/home")));
    candidates
}
