//! A project's own files, taken up because the operator trusts them: read once, kept as a copy with the hash of each file.
//! Claude Code is handed the copy and never reads them itself; before each start the files are compared with it.
//!
//! What would decide in the place of whoever is asked, or run programs at every step, is not taken up: hooks, skills,
//! commands, permission modes. What the project allows, asks and denies becomes rules of the hub.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

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
use crate::files::{FileError, Files};
use crate::secret::content_hash;
use plexus_book::now;

/// So that nobody has a hub keep a disk full.
const LARGEST: usize = 256 * 1024;

/// What of a project is taken up, and the rules that come with it.
pub(crate) struct Taken {
    pub(crate) project: TrustedProject,
    rules: Vec<Value>,
}

impl Taken {
    /// The project in `dir` as it is now; variables that `may_be_given` refuses are left out.
    pub(crate) async fn read(
        files: &Files,
        dir: &Path,
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
                SETTINGS => take_settings(text, dir, &may_be_given, &mut project, &mut rules)?,
                SERVERS => words = take_servers(text, &mut project)?,
                _ => take_agent(path, text, &mut project)?,
            }
        }
        // A program of the project is part of what is trusted: an approved command may write another in its place.
        let found = named(files, dir, words.clone()).await.map_err(|error| bad(SERVERS, error))?;
        for (word, file) in words.iter().zip(found) {
            if let Some(NamedFile { path, sha256 }) = file.map_err(|error| bad(word, error))? {
                project.files.insert(path, sha256);
            }
        }
        project.left_out.extend(left_out);
        if serde_json::to_string(&project).map_or(usize::MAX, |text| text.len()) > LARGEST {
            return Err(bad(".claude", format!("more than {} KiB in all", LARGEST / 1024)));
        }
        Ok(Self { project, rules })
    }

    /// Its rules, for a session and all below it. They are the hub's, so that they are known from those that people made.
    pub(crate) fn rules(&self, session: SessionId) -> impl Iterator<Item = Change> {
        self.rules.iter().map(move |entry| {
            Change::CreateRule(Box::new(NewRule {
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
    // What cannot be looked at is not as it was.
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

/// A trusted project as it is shown.
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
        let (content, after) = rest.split_at_checked(size).ok_or_else(|| bad(&path, "it was cut off"))?;
        split.insert(path, content.to_vec());
        rest = after;
    }
    Ok((split, left_out))
}

/// The files of the project that words name, for each word.
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

/// Loads the servers and returns the words of their command lines.
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
        return Err(bad(path, format!("there is another agent `{}`", agent.name)));
    }
    Ok(())
}

fn bad(file: &str, why: impl std::fmt::Display) -> Error {
    let message = format!("`{file}` of the project cannot be taken up: {why}");
    Error::new(ErrorKind::BadProject, message).with("file", file)
}
