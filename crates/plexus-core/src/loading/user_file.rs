//! Parses the user's Claude Code settings and selects what children may receive. `user` decides when it takes effect.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use plexus_policy::{RuleEffect, RuleEntry};
use plexus_protocol::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::processes::files::{FileError, Files};

/// Variables for the model provider: its address, the model and the credentials.
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

/// The selected settings of the user.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct FromUser {
    pub(crate) model: Option<String>,
    pub(crate) api_key_helper: Option<String>,
    pub(crate) env: BTreeMap<String, String>,
    /// Deny rules, as written in the file.
    pub(crate) deny: BTreeSet<String>,
}

impl FromUser {
    /// The names of the settings that are present.
    pub(crate) fn names(&self) -> Vec<String> {
        differences(&Self::default(), self)
    }
}

/// The names of the settings that differ.
pub(super) fn differences(one: &FromUser, other: &FromUser) -> Vec<String> {
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

/// The largest settings file, in bytes.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Reads the file as a child would see it. A missing file has no settings; an unreadable one is an error.
pub(super) async fn read(files: &Files, file: &Path) -> Result<FromUser, String> {
    match files.read(file, MAX_BYTES).await {
        Ok(read) if read.truncated => Err(format!("{}: the file is too large", file.display())),
        Ok(read) => parse(file, Some(&read.content)),
        Err(FileError::NotFound) => parse(file, None),
        Err(error) => Err(format!("{}: {error}", file.display())),
    }
}

/// Parses the content of a file; `None` if it is missing. An error names the position of the invalid setting.
pub(super) fn parse(file: &Path, content: Option<&[u8]>) -> Result<FromUser, String> {
    let at = |place: &str, why: &dyn std::fmt::Display| format!("{}: {place}{why}", file.display());
    let Some(content) = content else { return Ok(FromUser::default()) };
    let settings: Object = serde_json::from_slice(content).map_err(|error| at("", &error))?;
    let mut taken = FromUser::default();
    let text_at = |key: &str| match settings.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(at(&format!("`{key}` "), &"must be a string")),
    };
    taken.model = text_at("model")?;
    taken.api_key_helper = text_at("apiKeyHelper")?;
    let object_at = |key: &str| match settings.get(key) {
        None | Some(Value::Null) => Ok(Object::new()),
        Some(Value::Object(object)) => Ok(object.clone()),
        Some(_) => Err(at(&format!("`{key}` "), &"must be an object")),
    };
    for (name, value) in object_at("env")? {
        if PROVIDER.contains(&name.as_str()) {
            let value = match value {
                Value::String(text) if !text.contains('\0') => text,
                _ => return Err(at(&format!("`env.{name}` "), &"must be a string")),
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_listed_settings_are_read() {
        let settings = json!({
            "model": "opus", "apiKeyHelper": "key", "hooks": {}, "statusLine": {"type": "command"},
            "env": {"ANTHROPIC_BASE_URL": "http://a", "LD_PRELOAD": "x", "PATH": "/x"},
            "permissions": {"allow": ["Bash"], "deny": ["Bash(rm:*)"], "defaultMode": "acceptEdits"},
        });
        let file = Path::new("settings.json");
        let taken = parse(file, Some(settings.to_string().as_bytes())).unwrap();
        assert_eq!(taken.names(), ["model", "apiKeyHelper", "env.ANTHROPIC_BASE_URL", "permissions.deny"]);
        assert!(parse(file, None).unwrap() == FromUser::default());
    }

    #[test]
    fn unreadable_settings_are_an_error_with_their_location() {
        for (text, place) in [
            ("{", "line 1"),
            ("[]", "expected"),
            (r#"{"model": 1}"#, "`model`"),
            (r#"{"env": []}"#, "`env`"),
            (r#"{"env": {"AWS_REGION": 1}}"#, "`env.AWS_REGION`"),
            (r#"{"permissions": {"deny": "Bash"}}"#, "`permissions.deny`"),
            (r#"{"permissions": {"deny": ["Read", "Bash("]}}"#, "`permissions.deny[1]`"),
        ] {
            let error = parse(Path::new("settings.json"), Some(text.as_bytes())).err().unwrap();
            assert!(error.contains(place) && error.contains("settings.json"), "{text}: {error}");
        }
    }
}
