//! The user's own Claude Code settings, as far as children get them: model, `apiKeyHelper`, variables that say where the model
//! is, and what is denied. They are read when the hub starts and when the operator says so, never in between.
//!
//! A command of a child can write that file. So what was taken up is kept in the data directory, and of what has changed
//! since only that counts which denies more, until the operator accepts the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use plexus_policy::{RuleEffect, RuleEntry};
use plexus_protocol::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Variables that say where the model is, which one, and how to be let in there.
const PROVIDER: [&str; 38] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_BEDROCK_BASE_URL",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_FOUNDRY_API_KEY",
    "ANTHROPIC_FOUNDRY_BASE_URL",
    "ANTHROPIC_FOUNDRY_RESOURCE",
    "ANTHROPIC_MODEL",
    "ANTHROPIC_SMALL_FAST_MODEL",
    "ANTHROPIC_VERTEX_BASE_URL",
    "ANTHROPIC_VERTEX_PROJECT_ID",
    "AWS_ACCESS_KEY_ID",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_DEFAULT_REGION",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
    "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
    "CLAUDE_CODE_SKIP_FOUNDRY_AUTH",
    "CLAUDE_CODE_SKIP_VERTEX_AUTH",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_VERTEX",
    "CLOUD_ML_REGION",
    "GOOGLE_CLOUD_PROJECT",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// What is taken from the user's settings.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct FromUser {
    pub(crate) model: Option<String>,
    pub(crate) api_key_helper: Option<String>,
    pub(crate) env: BTreeMap<String, String>,
    /// Rules, as they are written.
    pub(crate) deny: BTreeSet<String>,
}

/// What of the user's settings counts, or why none of it can be used.
pub(crate) type Counting = Result<FromUser, String>;

/// What the gate heeds for every session.
pub(crate) enum Restriction {
    /// These deny. In the user's settings a path from `/` on is meant from the folder they stand in, others from where
    /// the session works.
    Rules { rules: Vec<RuleEntry>, beside: Option<PathBuf> },
    /// They cannot be used, and why: nothing is allowed.
    Broken(String),
}

impl Default for Restriction {
    fn default() -> Self {
        Self::Rules { rules: Vec::new(), beside: None }
    }
}

impl Restriction {
    /// The rules as they are for a session that works in `dir`. Either way to read a path denies.
    pub(crate) fn rules_in(&self, dir: &Path, home: Option<&Path>) -> Result<Vec<RuleEntry>, String> {
        match self {
            Self::Broken(why) => Err(why.clone()),
            Self::Rules { rules, beside } => {
                let bases = std::iter::once(dir).chain(beside.as_deref());
                Ok(bases.flat_map(|base| rules.iter().map(move |rule| rule.anchored(base, home))).collect())
            }
        }
    }
}

/// The user's settings of one hub.
pub(crate) struct UserSettings {
    /// Where they stand; `None` where they are not wanted.
    file: Option<PathBuf>,
    /// Where is kept what was taken up.
    kept: PathBuf,
    state: Mutex<State>,
}

#[derive(Clone)]
struct State {
    counting: Counting,
    /// What in the file waits to be accepted, by name.
    changed: Vec<String>,
}

impl UserSettings {
    /// What counts from the start of a hub on.
    pub(crate) fn at_start(file: Option<PathBuf>, data_dir: &Path) -> Self {
        let kept = data_dir.join("user-settings.json");
        let state = match &file {
            None => State { counting: Ok(FromUser::default()), changed: Vec::new() },
            Some(file) => match taken_up(file, &kept) {
                Ok((counting, changed)) => State { counting: Ok(counting), changed },
                Err(why) => State { counting: Err(why), changed: Vec::new() },
            },
        };
        if let Err(why) = &state.counting {
            tracing::error!(
                why,
                "the user's settings cannot be used: no agent is started, and every call is denied"
            );
        } else if !state.changed.is_empty() {
            let changed = state.changed.join(", ");
            tracing::warn!(
                changed,
                "the user's settings have changed; `plexus claudecode user_settings --accept true` takes that up"
            );
        }
        Self { file, kept, state: Mutex::new(state) }
    }

    /// The file; `None` where it is not wanted.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// What counts now.
    pub(crate) fn counting(&self) -> Counting {
        self.lock().counting.clone()
    }

    /// What in the file waits to be accepted, as it is now.
    pub(crate) fn changed(&self) -> Result<Vec<String>, String> {
        let Some(file) = &self.file else { return Ok(Vec::new()) };
        let (now, counting) = (read(file)?, self.counting()?);
        Ok(differences(&counting, &now))
    }

    /// Takes up what is in the file now, all of it.
    pub(crate) fn accept(&self) -> Result<(), String> {
        let Some(file) = &self.file else { return Ok(()) };
        let now = read(file)?;
        keep(&self.kept, &now)?;
        *self.lock() = State { counting: Ok(now), changed: Vec::new() };
        Ok(())
    }

    /// What the gate heeds for every session.
    pub(crate) fn restriction(&self) -> Restriction {
        match self.rules() {
            Ok(rules) => {
                let beside = self.file.as_deref().and_then(Path::parent).map(Path::to_owned);
                Restriction::Rules { rules, beside }
            }
            Err(why) => Restriction::Broken(format!("the user's settings cannot be used: {why}")),
        }
    }

    fn rules(&self) -> Result<Vec<RuleEntry>, String> {
        let counting = self.counting()?;
        let rule =
            |text: &String| RuleEntry::parse(text, RuleEffect::Deny).map_err(|error| error.to_string());
        counting.deny.iter().map(rule).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FromUser {
    /// What there is, by name.
    pub(crate) fn names(&self) -> Vec<String> {
        differences(&Self::default(), self)
    }
}

/// What counts when a hub starts, and what waits to be accepted. What denies more counts at once, and for good.
fn taken_up(file: &Path, kept: &Path) -> Result<(FromUser, Vec<String>), String> {
    let now = read(file)?;
    let before = match std::fs::read(kept) {
        Ok(text) => Some(
            serde_json::from_slice::<FromUser>(&text)
                .map_err(|error| format!("{}: {error}", kept.display()))?,
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(format!("{}: {error}", kept.display())),
    };
    let counting = match &before {
        None => now.clone(),
        Some(before) => {
            let deny = before.deny.union(&now.deny).cloned().collect();
            FromUser { deny, ..before.clone() }
        }
    };
    if before.as_ref() != Some(&counting) {
        keep(kept, &counting)?;
    }
    let changed = differences(&counting, &now);
    Ok((counting, changed))
}

/// The names of what is not the same.
fn differences(one: &FromUser, other: &FromUser) -> Vec<String> {
    let mut names = Vec::new();
    if one.model != other.model {
        names.push("model".to_owned());
    }
    if one.api_key_helper != other.api_key_helper {
        names.push("apiKeyHelper".to_owned());
    }
    let variables: BTreeSet<&String> = one.env.keys().chain(other.env.keys()).collect();
    let differs = |name: &&String| one.env.get(*name) != other.env.get(*name);
    names.extend(variables.into_iter().filter(differs).map(|name| format!("env.{name}")));
    if one.deny != other.deny {
        names.push("permissions.deny".to_owned());
    }
    names
}

/// Reads the file. One that is not there says nothing; one that cannot be read is an error that names the place.
fn read(file: &Path) -> Result<FromUser, String> {
    let at = |place: &str, why: &dyn std::fmt::Display| format!("{}: {place}{why}", file.display());
    let text = match std::fs::read(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FromUser::default()),
        Err(error) => return Err(at("", &error)),
    };
    let settings: Object = serde_json::from_slice(&text).map_err(|error| at("", &error))?;
    let mut taken = FromUser::default();
    let text_at = |key: &str| match settings.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(at(&format!("`{key}` "), &"is not a text")),
    };
    taken.model = text_at("model")?;
    taken.api_key_helper = text_at("apiKeyHelper")?;
    let object_at = |key: &str| match settings.get(key) {
        None | Some(Value::Null) => Ok(Object::new()),
        Some(Value::Object(object)) => Ok(object.clone()),
        Some(_) => Err(at(&format!("`{key}` "), &"is not an object")),
    };
    for (name, value) in object_at("env")? {
        if PROVIDER.contains(&name.as_str()) {
            let value = match value {
                Value::String(text) if !text.contains('\0') => text,
                _ => return Err(at(&format!("`env.{name}` "), &"is not a text")),
            };
            taken.env.insert(name, value);
        }
    }
    if let Some(deny) = object_at("permissions")?.remove("deny") {
        let deny: Vec<String> =
            serde_json::from_value(deny).map_err(|error| at("`permissions.deny` ", &error))?;
        for (i, text) in deny.into_iter().enumerate() {
            if let Err(error) = RuleEntry::parse(&text, RuleEffect::Deny) {
                let place = format!("`permissions.deny[{i}]` (`{text}`) at byte {}: expected ", error.at);
                return Err(at(&place, &error.expected));
            }
            taken.deny.insert(text);
        }
    }
    Ok(taken)
}

/// Keeps what was taken up, in one step.
fn keep(kept: &Path, taken: &FromUser) -> Result<(), String> {
    let write = || -> io::Result<()> {
        let draft = kept.with_extension("tmp");
        let mut file =
            std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(&serde_json::to_vec(taken)?)?;
        file.sync_all()?;
        std::fs::rename(&draft, kept)
    };
    write().map_err(|error| format!("{}: {error}", kept.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings(deny: &[&str]) -> Value {
        json!({
            "model": "opus", "apiKeyHelper": "key", "hooks": {}, "statusLine": {"type": "command"},
            "env": {"ANTHROPIC_BASE_URL": "http://a", "LD_PRELOAD": "x", "PATH": "/x"},
            "permissions": {"allow": ["Bash"], "deny": deny, "defaultMode": "acceptEdits"},
        })
    }

    #[test]
    fn only_what_is_listed_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        std::fs::write(&file, settings(&["Bash(rm:*)"]).to_string()).unwrap();
        let taken = read(&file).unwrap();
        assert_eq!(taken.names(), ["model", "apiKeyHelper", "env.ANTHROPIC_BASE_URL", "permissions.deny"]);
        assert!(read(&dir.path().join("none.json")).unwrap() == FromUser::default());
    }

    #[test]
    fn of_what_changes_only_denials_count_until_it_is_accepted() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        let start = || UserSettings::at_start(Some(file.clone()), dir.path());
        std::fs::write(&file, settings(&["Bash(rm:*)"]).to_string()).unwrap();
        let first = start().counting().unwrap();
        let mut other = settings(&["WebFetch"]);
        other["apiKeyHelper"] = json!("evil");
        other["env"] = json!({"ANTHROPIC_BASE_URL": "http://evil"});
        std::fs::write(&file, other.to_string()).unwrap();
        let user = start();
        let counting = user.counting().unwrap();
        assert_eq!(counting.deny, ["Bash(rm:*)", "WebFetch"].map(str::to_owned).into());
        assert!(FromUser { deny: first.deny.clone(), ..counting } == first, "the rest is as it was");
        assert_eq!(user.changed().unwrap(), ["apiKeyHelper", "env.ANTHROPIC_BASE_URL", "permissions.deny"]);
        // What denied once goes on denying, also when the file forgets it.
        std::fs::remove_file(&file).unwrap();
        assert_eq!(start().rules().unwrap().len(), 2);
        user.accept().unwrap();
        assert!(
            user.counting().unwrap() == FromUser::default()
                && start().counting().unwrap() == FromUser::default()
        );
    }

    #[test]
    fn what_cannot_be_read_is_an_error_that_names_the_place() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        for (text, place) in [
            ("{", "line 1"),
            ("[]", "expected"),
            (r#"{"model": 1}"#, "`model`"),
            (r#"{"env": []}"#, "`env`"),
            (r#"{"env": {"AWS_REGION": 1}}"#, "`env.AWS_REGION`"),
            (r#"{"permissions": {"deny": "Bash"}}"#, "`permissions.deny`"),
            (r#"{"permissions": {"deny": ["Read", "Bash("]}}"#, "`permissions.deny[1]`"),
        ] {
            std::fs::write(&file, text).unwrap();
            let error = read(&file).err().unwrap();
            assert!(error.contains(place) && error.contains("settings.json"), "{text}: {error}");
            let user = UserSettings::at_start(Some(file.clone()), dir.path());
            assert!(user.rules().is_err() && user.accept().is_err());
        }
        std::fs::write(&file, "{}").unwrap();
        std::fs::write(dir.path().join("user-settings.json"), "rubbish").unwrap();
        assert!(UserSettings::at_start(Some(file), dir.path()).counting().is_err());
    }
}
