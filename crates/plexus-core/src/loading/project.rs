//! A project's own files, taken up because the operator trusts them: read once, kept as a copy with the hash of each file.
//! Claude Code is handed the copy and never reads them itself; before each start the files are compared with it.
//!
//! What would decide in the place of whoever is asked, or run programs at every step, is not taken up: hooks, skills,
//! commands, permission modes. What the project allows, asks and denies becomes rules of the hub.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use plexus_policy::{RuleEffect, RuleEntry};
use plexus_protocol::claudecode::{McpServer, McpServerGiven, ProjectView, TrustedProject};
use plexus_protocol::{Decider, Error, ErrorKind, Object, SessionId};
use plexus_store::{Change, NewRule, RuleAuthority};
use serde::Deserialize;
use serde_json::Value;

use super::{agents, read, servers};
use crate::clock::now;
use crate::secret::content_hash;

const SETTINGS: &str = ".claude/settings.json";
const SERVERS: &str = ".mcp.json";
const AGENTS: &str = ".claude/agents";

/// So that nobody has a hub read a disk full, or keep it.
const MOST_AGENTS: usize = 100;
const LARGEST: usize = 256 * 1024;

/// What of a project is taken up, and the rules that come with it.
pub(crate) struct Taken {
    pub(crate) project: TrustedProject,
    rules: Vec<Value>,
}

impl Taken {
    /// The project in `dir` as it is now; variables that `may_be_given` refuses are left out.
    pub(crate) fn read(dir: &Path, may_be_given: impl Fn(&str) -> bool) -> Result<Self, Error> {
        let files = config_files(dir)?;
        let mut project = TrustedProject {
            files: files.iter().map(|(path, content)| (path.clone(), content_hash(content))).collect(),
            trusted_at: now(),
            model: None,
            env: BTreeMap::new(),
            mcp_servers: BTreeMap::new(),
            agents: Object::new(),
            left_out: Vec::new(),
        };
        let mut rules = Vec::new();
        for (path, content) in &files {
            let text = std::str::from_utf8(content).map_err(|error| bad(path, error))?;
            match path.as_str() {
                SETTINGS => take_settings(text, dir, &may_be_given, &mut project, &mut rules)?,
                SERVERS => take_servers(text, dir, &mut project)?,
                _ => take_agent(path, text, &mut project)?,
            }
        }
        for folder in ["skills", "commands"] {
            if dir.join(".claude").join(folder).exists() {
                project.left_out.push(format!(".claude/{folder}"));
            }
        }
        if serde_json::to_string(&project).map_or(usize::MAX, |text| text.len()) > LARGEST {
            return Err(bad(".claude", format!("more than {} KiB in all", LARGEST / 1024)));
        }
        Ok(Self { project, rules })
    }

    /// Its rules, for a session and all below it. They are the hub's, so that they are known from those that people made.
    pub(crate) fn rules(&self, session: SessionId) -> impl Iterator<Item = Change> {
        self.rules.iter().map(move |entry| {
            Change::MakeRule(Box::new(NewRule {
                session: Some(session),
                entry: entry.clone(),
                expires_at: None,
                authority: RuleAuthority::Root,
                made_by: Decider::Hub,
            }))
        })
    }
}

/// Which files are not as they were trusted. What cannot be read is not.
pub(crate) fn changed(project: &TrustedProject, dir: &Path) -> Vec<String> {
    let now = match config_files(dir) {
        Ok(files) => files,
        Err(error) => {
            return vec![error.details.get("file").and_then(Value::as_str).unwrap_or(".claude").to_owned()];
        }
    };
    let all: BTreeSet<&String> = project.files.keys().chain(now.keys()).collect();
    let is_same = |path: &str| {
        let hash = match now.get(path) {
            Some(content) => Some(content_hash(content)),
            None => read(&dir.join(path)).ok().map(|content| content_hash(&content)),
        };
        hash.as_ref() == project.files.get(path)
    };
    all.into_iter().filter(|path| !is_same(path)).cloned().collect()
}

/// A trusted project as it is shown.
pub(crate) fn view(project: &TrustedProject, dir: &Path) -> ProjectView {
    ProjectView {
        files: project.files.keys().cloned().collect(),
        changed: changed(project, dir),
        trusted_at: project.trusted_at,
        env: project.env.keys().cloned().collect(),
        mcp_servers: project.mcp_servers.keys().cloned().collect(),
        agents: project.agents.keys().cloned().collect(),
        left_out: project.left_out.clone(),
    }
}

/// The files that are taken up, by their path in the project, as far as they are there.
fn config_files(dir: &Path) -> Result<BTreeMap<String, Vec<u8>>, Error> {
    let mut files = BTreeMap::new();
    for path in [SETTINGS, SERVERS] {
        match read(&dir.join(path)) {
            Ok(content) => drop(files.insert(path.to_owned(), content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(bad(path, error)),
        }
    }
    let mut folders = vec![PathBuf::from(AGENTS)];
    while let Some(folder) = folders.pop() {
        let entries = match std::fs::read_dir(dir.join(&folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && folder == Path::new(AGENTS) => continue,
            entries => entries.map_err(|error| bad(&folder.display().to_string(), error))?,
        };
        for entry in entries {
            let entry = entry.map_err(|error| bad(&folder.display().to_string(), error))?;
            let path = folder.join(entry.file_name());
            let name = path.to_str().ok_or_else(|| bad(AGENTS, "a name that is not UTF-8"))?.to_owned();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if name.ends_with(".md") {
                let content = read(&dir.join(&path)).map_err(|error| bad(&name, error))?;
                files.insert(name, content);
            }
            if files.len() + folders.len() > MOST_AGENTS {
                return Err(bad(AGENTS, format!("more than {MOST_AGENTS} files and folders")));
            }
        }
    }
    Ok(files)
}

fn take_settings(
    text: &str,
    dir: &Path,
    may_be_given: &impl Fn(&str) -> bool,
    project: &mut TrustedProject,
    rules: &mut Vec<Value>,
) -> Result<(), Error> {
    let settings: Object = serde_json::from_str(text).map_err(|error| bad(SETTINGS, error))?;
    for (key, value) in settings {
        match (key.as_str(), value) {
            ("$schema", _) => {}
            ("model", Value::String(model)) => project.model = Some(model),
            ("env", Value::Object(env)) => {
                for (name, value) in env {
                    let place = format!("env.{name}");
                    let Value::String(value) = value else {
                        return Err(bad(SETTINGS, format!("`{place}`: no text")));
                    };
                    if may_be_given(&name) {
                        project.env.insert(name, value);
                    } else {
                        project.left_out.push(format!("{SETTINGS}: {place}"));
                    }
                }
            }
            ("permissions", Value::Object(permissions)) => {
                for (key, value) in permissions {
                    match effect_of(&key) {
                        Some(effect) => take_rules(&key, effect, value, dir, rules)?,
                        None => project.left_out.push(format!("{SETTINGS}: permissions.{key}")),
                    }
                }
            }
            ("model" | "env" | "permissions", _) => {
                return Err(bad(SETTINGS, format!("`{key}` is not what is expected there")));
            }
            _ => project.left_out.push(format!("{SETTINGS}: {key}")),
        }
    }
    Ok(())
}

fn effect_of(key: &str) -> Option<RuleEffect> {
    match key {
        "allow" => Some(RuleEffect::Allow),
        "ask" => Some(RuleEffect::Ask),
        "deny" => Some(RuleEffect::Deny),
        _ => None,
    }
}

/// A rule that cannot be read is refused with its place, never passed over.
fn take_rules(
    key: &str,
    effect: RuleEffect,
    given: Value,
    dir: &Path,
    rules: &mut Vec<Value>,
) -> Result<(), Error> {
    let given: Vec<String> = serde_json::from_value(given)
        .map_err(|error| bad(SETTINGS, format!("`permissions.{key}`: {error}")))?;
    let home = std::env::var_os("HOME").map(PathBuf::from);
    for (i, text) in given.iter().enumerate() {
        let place = format!("permissions.{key}[{i}]");
        let entry = RuleEntry::parse(text, effect).map_err(|error| {
            bad(SETTINGS, format!("`{place}` (`{text}`) at byte {}: expected {}", error.at, error.expected))
        })?;
        let entry = serde_json::to_value(entry.anchored(dir, home.as_deref()));
        rules.push(entry.map_err(|error| bad(SETTINGS, format!("`{place}`: {error}")))?);
    }
    Ok(())
}

fn take_servers(text: &str, dir: &Path, project: &mut TrustedProject) -> Result<(), Error> {
    #[derive(Deserialize)]
    struct File {
        #[serde(default, rename = "mcpServers")]
        servers: BTreeMap<String, McpServerGiven>,
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let file: File = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| bad(SERVERS, format!("`{}`: {}", error.path(), error.inner())))?;
    for (name, given) in file.servers {
        let server = servers::checked(&name, given, &format!("mcpServers.{name}"));
        let server = server.map_err(|error| bad(SERVERS, error.message))?;
        if let McpServer::Stdio { command, args, .. } = &server {
            // A program of the project is part of what is trusted: an approved command may write another in its place.
            for word in std::iter::once(command).chain(args) {
                if let Some((path, content)) = inside(dir, word).map_err(|error| bad(word, error))? {
                    project.files.insert(path, content_hash(&content));
                }
            }
        }
        project.mcp_servers.insert(name, server);
    }
    Ok(())
}

/// The file of the project that a word of a command line names, if it names one.
fn inside(dir: &Path, word: &str) -> io::Result<Option<(String, Vec<u8>)>> {
    let Ok(path) = dir.join(word).canonicalize() else { return Ok(None) };
    let Ok(relative) = path.strip_prefix(dir) else { return Ok(None) };
    match relative.to_str() {
        Some(relative) if path.is_file() => Ok(Some((relative.to_owned(), read(&path)?))),
        _ => Ok(None),
    }
}

fn take_agent(path: &str, text: &str, project: &mut TrustedProject) -> Result<(), Error> {
    let stem = Path::new(path).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let agent = agents::parse(text, stem).map_err(|(line, why)| bad(path, format!("line {line}: {why}")))?;
    project.left_out.extend(agent.left_out.iter().map(|key| format!("{path}: {key}")));
    if project.agents.insert(agent.name.clone(), agent.definition).is_some() {
        return Err(bad(path, format!("there is another agent `{}`", agent.name)));
    }
    Ok(())
}

fn bad(file: &str, why: impl std::fmt::Display) -> Error {
    let message = format!("`{file}` of the project cannot be taken up: {why}");
    Error::new(ErrorKind::BadProject, message).with("file", file)
}
