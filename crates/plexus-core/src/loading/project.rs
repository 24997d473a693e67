//! A project's own configuration files, loaded because the operator trusts them. The hub reads them once and keeps a
//! copy, with the hash of each file. Claude Code receives the copy and never reads the files itself. Before each start,
//! the hub compares the files with the hashes.
//!
//! Hooks, skills, commands and permission modes are not loaded: they would make decisions in place of the approver, or
//! run programs at every step. The project's allow, ask and deny entries become rules of the hub.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use plexus_files::{
    HelperError, NamedFile, NamedFiles, ProjectFault, ProjectFiles, ReadProject, SERVERS, SETTINGS,
};
use plexus_policy::{RuleEffect, RuleEntry};
use plexus_protocol::claudecode::{McpServer, McpServerGiven, ProjectView, TrustedProject};
use plexus_protocol::{Decider, Error, ErrorKind, Object, SessionId};
use plexus_store::{Change, NewRule, RuleAuthority};
use serde::Deserialize;
use serde_json::Value;

use super::{agents, servers};
use crate::callers::secret::content_hash;
use crate::processes::files::{FileError, Files};
use plexus_book::now;

/// The size limit of a project's configuration, so that nobody can fill the hub's disk with it.
const MAX_BYTES: usize = 256 * 1024;

/// The loaded configuration of a project, and its rules.
pub(crate) struct LoadedProject {
    pub(crate) project: TrustedProject,
    rules: Vec<Value>,
}

impl LoadedProject {
    /// Reads the current project in `dir`. `home` is what `~` stands for in its rules. Leaves out environment variables that
    /// `may_be_given` rejects.
    pub(crate) async fn read(
        files: &Files,
        dir: &Path,
        home: Option<&Path>,
        may_be_given: impl Fn(&str) -> bool,
    ) -> Result<Self, Error> {
        let (contents, left_out) = project_files(files, dir).await?;
        let mut project = TrustedProject {
            files: contents.iter().map(|(path, content)| (path.clone(), content_hash(content))).collect(),
            trusted_at: now(),
            model: None,
            env: BTreeMap::new(),
            mcp_servers: BTreeMap::new(),
            agents: Object::new(),
            left_out: Vec::new(),
        };
        let (mut rules, mut words) = (Vec::new(), Vec::new());
        for (path, content) in &contents {
            let text = std::str::from_utf8(content).map_err(|error| bad(path, error))?;
            match path.as_str() {
                SETTINGS => {
                    take_settings(text, Anchors { dir, home }, &may_be_given, &mut project, &mut rules)?
                }
                SERVERS => words = take_servers(text, &mut project)?,
                _ => take_agent(path, text, &mut project)?,
            }
        }
        // Programs of the project are part of the trusted files: an approved command could overwrite them.
        let found = named(files, dir, words.clone()).await.map_err(|error| bad(SERVERS, error))?;
        for (word, file) in words.iter().zip(found) {
            if let Some(NamedFile { path, sha256 }) = file.map_err(|error| bad(word, error))? {
                project.files.insert(path, sha256);
            }
        }
        project.left_out.extend(left_out);
        if serde_json::to_string(&project).map_or(usize::MAX, |text| text.len()) > MAX_BYTES {
            return Err(bad(
                ".claude",
                format!("the files have more than {} KiB in total", MAX_BYTES / 1024),
            ));
        }
        Ok(Self { project, rules })
    }

    /// The project's rules, for a session and its descendants. The hub is their author, which distinguishes them from
    /// rules that people created.
    pub(crate) fn rules(&self, session: SessionId) -> impl Iterator<Item = Change> {
        self.rules.iter().map(move |entry| {
            Change::CreateRule(Box::new(NewRule {
                session: Some(session),
                entry: entry.clone(),
                expires_at: None,
                authority: RuleAuthority::Root,
                created_by: Decider::Hub,
            }))
        })
    }
}

/// The files that differ from their trusted state. Unreadable files count as changed.
pub(crate) async fn changed(files: &Files, project: &TrustedProject, dir: &Path) -> Vec<String> {
    let now = match project_files(files, dir).await {
        Ok((contents, _)) => contents,
        Err(error) => {
            return vec![error.details.get("file").and_then(Value::as_str).unwrap_or(".claude").to_owned()];
        }
    };
    let all: BTreeSet<&String> = project.files.keys().chain(now.keys()).collect();
    let programs: Vec<String> =
        all.iter().filter(|path| !now.contains_key(**path)).map(|path| (*path).clone()).collect();
    // Files that cannot be read count as changed.
    let found = named(files, dir, programs.clone()).await.unwrap_or_default();
    let found: BTreeMap<String, NamedFile> =
        programs.into_iter().zip(found).filter_map(|(path, file)| Some((path, file.ok()??))).collect();
    let is_same = |path: &str| {
        let hash = match now.get(path) {
            Some(content) => Some(content_hash(content)),
            None => found.get(path).filter(|file| file.path == path).map(|file| file.sha256.clone()),
        };
        hash.as_ref() == project.files.get(path)
    };
    all.into_iter().filter(|path| !is_same(path)).cloned().collect()
}

/// The view of a trusted project.
pub(crate) async fn view(files: &Files, project: &TrustedProject, dir: &Path) -> ProjectView {
    ProjectView {
        files: project.files.keys().cloned().collect(),
        changed: changed(files, project, dir).await,
        trusted_at: project.trusted_at,
        env: project.env.keys().cloned().collect(),
        mcp_servers: project.mcp_servers.keys().cloned().collect(),
        agents: project.agents.keys().cloned().collect(),
        left_out: project.left_out.clone(),
    }
}

/// The project files that are loaded, by path, and the names of the settings that are not loaded.
async fn project_files(files: &Files, dir: &Path) -> Result<(BTreeMap<String, Vec<u8>>, Vec<String>), Error> {
    let mut contents = Vec::new();
    let read = files.call(ReadProject { dir: dir.to_owned() }, None, &mut contents).await;
    let ProjectFiles { files, left_out } =
        read.map_err(|error| bad(".claude", error))?.map_err(|ProjectFault { file, why }| bad(&file, why))?;
    let mut rest = &contents[..];
    let mut split = BTreeMap::new();
    for (path, size) in files {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let (content, after) =
            rest.split_at_checked(size).ok_or_else(|| bad(&path, "its content is incomplete"))?;
        split.insert(path, content.to_vec());
        rest = after;
    }
    Ok((split, left_out))
}

/// For each word, the project file that it names.
async fn named(
    files: &Files,
    dir: &Path,
    words: Vec<String>,
) -> Result<Vec<Result<Option<NamedFile>, FileError>>, HelperError> {
    if words.is_empty() {
        return Ok(Vec::new());
    }
    files.call(NamedFiles { dir: dir.to_owned(), words }, None, &mut tokio::io::sink()).await
}

/// The directories that relative paths and `~` in a rule start from.
#[derive(Clone, Copy)]
struct Anchors<'a> {
    dir: &'a Path,
    home: Option<&'a Path>,
}

fn take_settings(
    text: &str,
    anchors: Anchors<'_>,
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
                        return Err(bad(SETTINGS, format!("`{place}` must be a string")));
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
                        Some(effect) => take_rules(&key, effect, value, anchors, rules)?,
                        None => project.left_out.push(format!("{SETTINGS}: permissions.{key}")),
                    }
                }
            }
            ("model" | "env" | "permissions", _) => {
                return Err(bad(SETTINGS, format!("`{key}` has the wrong type")));
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

/// Converts permission entries to rules. Rejects an invalid rule with its position, and never skips one.
fn take_rules(
    key: &str,
    effect: RuleEffect,
    given: Value,
    anchors: Anchors<'_>,
    rules: &mut Vec<Value>,
) -> Result<(), Error> {
    let given: Vec<String> = serde_json::from_value(given)
        .map_err(|error| bad(SETTINGS, format!("`permissions.{key}`: {error}")))?;
    for (i, text) in given.iter().enumerate() {
        let place = format!("permissions.{key}[{i}]");
        let entry = RuleEntry::parse(text, effect).map_err(|error| {
            bad(SETTINGS, format!("`{place}` (`{text}`) at byte {}: expected {}", error.at, error.expected))
        })?;
        let entry = serde_json::to_value(entry.anchored(anchors.dir, anchors.home));
        rules.push(entry.map_err(|error| bad(SETTINGS, format!("`{place}`: {error}")))?);
    }
    Ok(())
}

/// Loads the servers. Returns the words of their command lines.
fn take_servers(text: &str, project: &mut TrustedProject) -> Result<Vec<String>, Error> {
    #[derive(Deserialize)]
    struct File {
        #[serde(default, rename = "mcpServers")]
        servers: BTreeMap<String, McpServerGiven>,
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let file: File = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| bad(SERVERS, format!("`{}`: {}", error.path(), error.inner())))?;
    let mut words = Vec::new();
    for (name, given) in file.servers {
        let server = servers::checked(&name, given, &format!("mcpServers.{name}"));
        let server = server.map_err(|error| bad(SERVERS, error.message))?;
        if let McpServer::Stdio { command, args, .. } = &server {
            words.extend(std::iter::once(command).chain(args).cloned());
        }
        project.mcp_servers.insert(name, server);
    }
    Ok(words)
}

fn take_agent(path: &str, text: &str, project: &mut TrustedProject) -> Result<(), Error> {
    let stem = Path::new(path).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let agent = agents::parse(text, stem).map_err(|(line, why)| bad(path, format!("line {line}: {why}")))?;
    project.left_out.extend(agent.left_out.iter().map(|key| format!("{path}: {key}")));
    if project.agents.insert(agent.name.clone(), agent.definition).is_some() {
        return Err(bad(path, format!("another file already defines the agent `{}`", agent.name)));
    }
    Ok(())
}

fn bad(file: &str, why: impl std::fmt::Display) -> Error {
    let message = format!("cannot load `{file}` of the project: {why}");
    Error::new(ErrorKind::BadProject, message).with("file", file)
}
