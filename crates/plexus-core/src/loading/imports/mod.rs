//! Imports: the operator imports rules, MCP servers and agents from the user's own Claude Code configuration. This
//! module owns the copies of servers and agents in the data directory. `candidates` parses the user's files, `rules`
//! decides which of their rules the hub can apply unchanged. Imported rules are ordinary rules of the operator.
//!
//! A command of a child can write the user's files. So an import names the digest of the content that was shown, and a
//! later change has no effect until it is imported again.

mod candidates;
mod rules;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use plexus_protocol::claudecode::{
    ImportItem, ImportKind, ImportRef, ImportState, ImportTake, ImportedConfig, McpServer,
};
use plexus_protocol::policy::{Counts, Effect, RuleView};
use plexus_protocol::{Decider, Error, ErrorKind, Object};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{private_file, servers};
use crate::processes::files::Files;
use crate::settings::Settings;
pub(crate) use candidates::{Candidate, Content};
use candidates::{agent_does, server_does};
use rules::ImportedRule;

/// The size limit of all imported agents, because each session stores its copy.
const MAX_AGENT_BYTES: usize = 256 * 1024;

/// The imports of one hub.
pub(crate) struct Imports {
    source: Option<Source>,
    home: Option<PathBuf>,
    /// The file with the copies.
    file: PathBuf,
    kept: Mutex<Result<Kept, String>>,
}

/// Where the user's configuration is.
struct Source {
    dir: PathBuf,
    state: Option<PathBuf>,
}

/// The copies, as stored.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Kept {
    servers: BTreeMap<String, Copied<McpServer>>,
    agents: BTreeMap<String, Copied<Value>>,
}

/// A copy, and the digest of the content that was shown when it was imported.
#[derive(Clone, Serialize, Deserialize)]
struct Copied<T> {
    digest: String,
    content: T,
}

impl Imports {
    /// Loads the copies when a hub starts.
    pub(crate) fn at_start(settings: &Settings) -> Self {
        let file = settings.data_dir.join("imported.json");
        let kept = match std::fs::read(&file) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", file.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Kept::default()),
            Err(error) => Err(format!("{}: {error}", file.display())),
        };
        if let Err(why) = &kept {
            tracing::error!(why, "the imported servers and agents cannot be read");
        }
        let dir = settings.user_settings.as_deref().and_then(Path::parent).map(Path::to_owned);
        Self {
            source: dir.map(|dir| Source { dir, state: settings.user_state.clone() }),
            home: settings.home.clone(),
            file,
            kept: Mutex::new(kept),
        }
    }

    /// The configuration directory of the user.
    pub(crate) fn dir(&self) -> Result<&Path, Error> {
        Ok(&self.source()?.dir)
    }

    fn source(&self) -> Result<&Source, Error> {
        self.source.as_ref().ok_or_else(|| {
            let message = "this hub does not read the user's Claude Code configuration: `user_settings` or \
                           `clean_env` in plexus.toml disables it, or HOME is not set";
            Error::new(ErrorKind::BadUserSettings, message)
        })
    }

    /// The current content of the user's configuration.
    pub(crate) async fn candidates(&self, files: &Files) -> Result<Vec<Candidate>, Error> {
        let source = self.source()?;
        candidates::read(files, &source.dir, source.state.as_deref(), self.home.as_deref()).await
    }

    /// The entries with their state: the current ones, and the copies whose entry no longer exists.
    pub(crate) fn items(
        &self,
        candidates: &[Candidate],
        in_force: &[RuleView],
        denied: &[String],
    ) -> Result<Vec<ImportItem>, Error> {
        let kept = self.kept()?;
        let mut items: Vec<ImportItem> =
            candidates.iter().map(|candidate| item(candidate, &kept, in_force, denied)).collect();
        let known = |kind, name: &str| candidates.iter().any(|c| c.kind == kind && c.name == name);
        let gone = |kind, name: &String, does| ImportItem {
            kind,
            name: name.clone(),
            state: ImportState::Gone,
            does,
            file: String::new(),
            digest: None,
            text: None,
            with: Vec::new(),
            left_out: Vec::new(),
            reason: Some("it is no longer in your configuration; the copy still applies".to_owned()),
        };
        let servers = kept.servers.iter().filter(|(name, _)| !known(ImportKind::Server, name));
        items.extend(servers.map(|(name, c)| gone(ImportKind::Server, name, server_does(&c.content))));
        let agents = kept.agents.iter().filter(|(name, _)| !known(ImportKind::Agent, name));
        items.extend(agents.map(|(name, c)| gone(ImportKind::Agent, name, agent_does(&c.content))));
        items.sort_by_key(|item| item.kind);
        Ok(items)
    }

    /// The candidates with exactly the content that the caller has seen.
    pub(crate) fn chosen<'a>(
        &self,
        candidates: &'a [Candidate],
        take: &[ImportTake],
    ) -> Result<Vec<&'a Candidate>, Error> {
        let mut chosen = Vec::new();
        for (i, ImportTake { kind, name, digest }) in take.iter().enumerate() {
            let named = || candidates.iter().filter(|c| c.kind == *kind && c.name == *name);
            let same = named().find(|c| c.digest().as_ref() == Some(digest));
            let why = || match named().next() {
                None => format!("`{name}` is not in the user's configuration"),
                Some(Candidate { content: Err(why), .. }) => format!("`{name}` cannot be imported: {why}"),
                Some(_) => {
                    format!("`{name}` has changed since it was shown; call claudecode.imports again")
                }
            };
            chosen.push(same.ok_or_else(|| Error::invalid(&format!("take[{i}]"), why()))?);
        }
        Ok(chosen)
    }

    /// The numbers of the rules of the operator, for every session, that have this text.
    pub(crate) fn rules_to_remove(&self, text: &str, in_force: &[RuleView]) -> Vec<u64> {
        let named = |rule: &&RuleView| {
            is_operators(rule)
                && rules::stored(text, rule.effect, self.home.as_deref()).as_ref() == Some(&rule.rule)
        };
        in_force.iter().filter(named).map(|rule| rule.number).collect()
    }

    /// Checks that the copies can be changed in this way.
    pub(crate) fn check(&self, chosen: &[&Candidate], remove: &[ImportRef]) -> Result<(), Error> {
        self.kept()?.changed(chosen, remove).map(drop)
    }

    /// Changes the copies. They apply to the sessions that the operator creates from now on.
    pub(crate) fn change(&self, chosen: &[&Candidate], remove: &[ImportRef]) -> Result<(), Error> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = kept.as_ref().map_err(|why| unreadable(why))?.changed(chosen, remove)?;
        private_file::store(&self.file, &changed).map_err(|why| {
            Error::new(ErrorKind::StoreUnavailable, format!("cannot store the imports: {why}"))
        })?;
        *kept = Ok(changed);
        Ok(())
    }

    /// The copies for a new session of the operator: the user's own, and those of the project that it works in.
    pub(crate) fn for_session(&self, working_dir: &str) -> Result<Option<ImportedConfig>, Error> {
        let kept = self.kept()?;
        let mut imported = ImportedConfig {
            mcp_servers: BTreeMap::new(),
            agents: kept.agents.into_iter().map(|(name, copied)| (name, copied.content)).collect::<Object>(),
        };
        // The innermost project takes precedence over the projects around it, and over the user's own servers.
        let project = |key: &str| candidates::project_of(key).map_or(0, |(dir, _)| dir.len());
        let mut servers: Vec<_> = kept.servers.into_iter().collect();
        servers.sort_by_key(|(key, _)| project(key));
        for (key, copied) in servers {
            match candidates::project_of(&key) {
                Some((dir, _)) if !Path::new(working_dir).starts_with(dir) => {}
                Some((_, name)) => drop(imported.mcp_servers.insert(name.to_owned(), copied.content)),
                None => drop(imported.mcp_servers.insert(key, copied.content)),
            }
        }
        Ok((imported != ImportedConfig::default()).then_some(imported))
    }

    fn kept(&self) -> Result<Kept, Error> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clone().map_err(|why| unreadable(&why))
    }
}

impl Kept {
    fn changed(&self, chosen: &[&Candidate], remove: &[ImportRef]) -> Result<Self, Error> {
        let mut next = self.clone();
        for (i, ImportRef { kind, name }) in remove.iter().enumerate() {
            let known = match kind {
                ImportKind::Server => next.servers.remove(name).is_some(),
                ImportKind::Agent => next.agents.remove(name).is_some(),
                // The caller revokes rules. Skills are not imported.
                ImportKind::Rule => true,
                ImportKind::Skill => false,
            };
            if !known {
                return Err(Error::invalid(&format!("remove[{i}]"), format!("`{name}` is not imported")));
            }
        }
        for candidate in chosen {
            let (name, Some(digest)) = (candidate.name.clone(), candidate.digest()) else { continue };
            match &candidate.content {
                Ok(Content::Server(server)) => {
                    next.servers.insert(name, Copied { digest, content: server.clone() });
                }
                Ok(Content::Agent(agent)) => {
                    next.agents.insert(name, Copied { digest, content: agent.clone() });
                }
                Ok(Content::Rule(..)) | Err(_) => {}
            }
        }
        let all = next.servers.iter().map(|(name, copied)| (name.clone(), copied.content.clone())).collect();
        servers::check_size(&all, "take")?;
        let agents: Vec<&Value> = next.agents.values().map(|copied| &copied.content).collect();
        if serde_json::to_string(&agents).map_or(usize::MAX, |text| text.len()) > MAX_AGENT_BYTES {
            let why = format!("the imported agents have more than {} KiB in total", MAX_AGENT_BYTES / 1024);
            return Err(Error::invalid("take", why));
        }
        Ok(next)
    }
}

/// Whether the operator created the rule for every session, without an end.
fn is_operators(rule: &RuleView) -> bool {
    rule.session_id.is_none()
        && rule.expires_at.is_none()
        && rule.counts == Counts::Fully
        && rule.made_by == Decider::Operator
}

/// Whether a rule is in force for every session.
pub(crate) fn rule_state(rule: &ImportedRule, in_force: &[RuleView]) -> ImportState {
    let same = |view: &RuleView| is_operators(view) && view.effect == rule.effect && view.rule == rule.stored;
    if in_force.iter().any(same) { ImportState::Imported } else { ImportState::New }
}

fn item(candidate: &Candidate, kept: &Kept, in_force: &[RuleView], denied: &[String]) -> ImportItem {
    let digest = candidate.digest();
    let compared = |copied: Option<&String>| match copied {
        None => ImportState::New,
        known if known == digest.as_ref() => ImportState::Imported,
        Some(_) => ImportState::Changed,
    };
    let mut reason = candidate.content.as_ref().err().cloned();
    let state = match &candidate.content {
        Err(_) => ImportState::Refused,
        Ok(Content::Rule(ImportedRule { text, effect: Effect::Deny, .. })) => {
            let applies = denied.contains(text);
            reason = Some(match applies {
                true => "deny rules of your settings apply to every session anyway".to_owned(),
                false => "deny rules of your settings need no import: this one applies from the next start \
                          of the hub, or after `plexus claudecode user_settings --accept true`"
                    .to_owned(),
            });
            if applies { ImportState::Imported } else { ImportState::Refused }
        }
        Ok(Content::Rule(rule)) => rule_state(rule, in_force),
        Ok(Content::Server(_)) => compared(kept.servers.get(&candidate.name).map(|copied| &copied.digest)),
        Ok(Content::Agent(_)) => compared(kept.agents.get(&candidate.name).map(|copied| &copied.digest)),
    };
    ImportItem {
        kind: candidate.kind,
        name: candidate.name.clone(),
        state,
        does: candidate.does.clone(),
        file: candidate.file.clone(),
        digest: digest.filter(|_| state != ImportState::Refused),
        text: match &candidate.content {
            Ok(Content::Agent(agent)) => agent["prompt"].as_str().map(str::to_owned),
            _ => None,
        },
        with: candidate.with.clone(),
        left_out: candidate.left_out.clone(),
        reason,
    }
}

fn unreadable(why: &str) -> Error {
    let message = format!(
        "the imported servers and agents cannot be read: {why}; delete the file and import them again, or \
         create sessions with `imported: false`"
    );
    Error::new(ErrorKind::Internal, message)
}

#[cfg(test)]
mod tests;
