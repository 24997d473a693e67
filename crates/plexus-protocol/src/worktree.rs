//! A session's own git worktree: as `claudecode.create` requests it, as the hub stores it, and as `get`,
//! `list` and `delete` show it.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{SessionId, SessionName};

/// How to isolate a session: the word `worktree`, or an object with details.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Isolation(pub WorktreeIsolation);

impl JsonSchema for Isolation {
    fn schema_name() -> Cow<'static, str> {
        "Isolation".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [IsolationKind::json_schema(generator), generator.subschema_for::<WorktreeIsolation>()],
        })
    }
}

/// The kind of isolation; there is only one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IsolationKind {
    /// A git worktree and a branch of its own.
    #[default]
    Worktree,
}

impl JsonSchema for IsolationKind {
    fn schema_name() -> Cow<'static, str> {
        "IsolationKind".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "const": "worktree"})
    }
}

/// A worktree and its setup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(description = "")]
pub struct WorktreeIsolation {
    /// Always `worktree`.
    #[serde(rename = "type")]
    #[schemars(description = "")]
    pub kind: IsolationKind,
    /// Shell command that sets it up, run before create returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// Default 600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup_timeout_secs: Option<u64>,
    /// Files and directories to copy, relative to the repository's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<Vec<String>>,
    /// Base revision; default HEAD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

/// A manual implementation, so that an error names the invalid field and not all accepted forms.
impl<'de> Deserialize<'de> for Isolation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Form)
    }
}

struct Form;

impl<'de> Visitor<'de> for Form {
    type Value = Isolation;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"worktree\" or an object with \"type\":\"worktree\"")
    }

    fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Isolation, E> {
        match word {
            "worktree" => Ok(Isolation(WorktreeIsolation::default())),
            other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Isolation, A::Error> {
        WorktreeIsolation::deserialize(MapAccessDeserializer::new(map)).map(Isolation)
    }
}

/// A session's worktree, as the hub stores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// The root of the working tree.
    pub path: String,
    /// Its branch, such as `plexus/fix-1a2b3c4d`.
    pub branch: String,
    /// Its base commit.
    pub base: String,
    /// The git directory of its repository.
    pub repo: String,
    /// The branch that `base` was taken from, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_branch: Option<String>,
    /// The root of the repository's main working tree, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
}

/// A session's worktree, as `get` and `list` return it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeView {
    /// Its root.
    pub path: String,
    /// Its branch.
    pub branch: String,
    /// Its base commit; in `get` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The changes of the session; in `get` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<WorktreeChanges>,
    /// The branch that it started from; in `get` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_branch: Option<String>,
    /// Its relation to that branch; in `get` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<BranchState>,
    /// Why `changes` is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The differences from the initial state of the worktree: its base commit, copied files and setup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeChanges {
    /// The number of files that differ, including new ones.
    pub files: u64,
    /// The number of added lines.
    pub insertions: u64,
    /// The number of deleted lines.
    pub deletions: u64,
    /// The number of untracked files among them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub untracked: u64,
    /// The number of commits since the base commit.
    pub commits: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// How far a worktree is from being merged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BranchState {
    /// The number of changed files whose content is not committed.
    pub uncommitted: u64,
    /// The number of commits that the base branch lacks; omitted without a base branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u64>,
    /// The number of commits of the base branch that the worktree's branch lacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<u64>,
    /// Whether the base branch contains everything that is committed here.
    pub merged: bool,
}

/// The change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileStatus {
    /// New, and tracked by git.
    Added,
    /// Its content changed.
    Modified,
    /// Deleted.
    Deleted,
    /// Its path changed; its content is the same, or similar.
    Renamed,
    /// New, and not tracked by git.
    Untracked,
}

/// The kind of a file in git.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileMode {
    /// A plain file.
    Plain,
    /// A file that can be executed.
    Executable,
    /// A symbolic link; its content is the target.
    Link,
    /// A commit of another repository.
    Submodule,
}

/// The differences of one file of a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileDiff {
    /// The path relative to the root of the worktree. Written by the child: do not trust it. If it contains a backslash, a control
    /// character or another misleading character, these are escaped: `\\`, `\n`, `\u{202e}`, `\xff`.
    pub path: String,
    /// The earlier path of a renamed file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_path: Option<String>,
    /// The change.
    pub status: FileStatus,
    /// What it was, if that is not a plain file or has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_mode: Option<FileMode>,
    /// What it is, if that is not a plain file or has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_mode: Option<FileMode>,
    /// A hash of the file before and after, which every change of it changes; omitted if it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The number of added lines.
    pub insertions: u64,
    /// The number of deleted lines.
    pub deletions: u64,
    /// Whether it is a binary file.
    pub binary: bool,
    /// A unified diff; omitted if it cannot be shown. Written by the child: do not trust it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// Whether the diff is truncated, or omitted because the file is too large or unreadable.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// The image before and after, if the file is one; only in a request for this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageDiff>,
}

/// An image before and after, as base64. Written by the child: do not trust it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageDiff {
    /// The media type, by content.
    pub media_type: String,
    /// The old image; omitted if there is none or it is too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The new image; omitted if there is none or it is too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}

/// The outcome for the worktree of a deleted session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftWorktree {
    /// Its current or former path.
    pub path: String,
    /// Its branch.
    pub branch: String,
    /// Whether it was kept. It is deleted with its branch if no work is lost.
    pub kept: bool,
    /// The work that would be lost, a clause for each kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub would_lose: Vec<String>,
    /// Why it was kept although its changes are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The worktree of a session that was deleted together with the one above it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftBelow {
    /// The session.
    pub session_id: SessionId,
    /// Its name.
    pub session_name: SessionName,
    /// Its worktree.
    pub worktree: LeftWorktree,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;
    use serde_json::{Value, json};

    fn read(value: Value) -> Result<Isolation, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn the_short_form_equals_an_object_with_only_the_type() {
        let plain = read(json!("worktree")).unwrap().0;
        assert_eq!(read(json!({"type": "worktree"})).unwrap().0, plain);
        let full = json!({"type": "worktree", "setup": "make", "setup_timeout_secs": 5, "copy": [".env"],
            "base": "main"});
        assert_eq!(read(full).unwrap().0.copy, Some(vec![".env".to_owned()]));
    }

    #[test]
    fn an_invalid_isolation_is_refused_with_the_invalid_part() {
        let wrong = |value| read(value).unwrap_err();
        assert!(wrong(json!("container")).contains("container"));
        assert!(wrong(json!({"type": "worktree", "colour": 1})).contains("unknown field `colour`"));
        assert!(wrong(json!({"setup": "make"})).contains("missing field `type`"));
        assert!(wrong(json!({"type": "vm"})).contains("vm"));
        assert!(wrong(json!(7)).contains("\"worktree\""));
    }

    #[test]
    fn the_schema_has_the_short_form_and_the_object() {
        let schema = Value::Object(schema::of::<Isolation>());
        let forms = schema["anyOf"].as_array().unwrap();
        assert_eq!(forms[0]["type"], "string", "{schema}");
        assert_eq!(forms[1]["properties"]["copy"]["type"], "array", "{schema}");
    }
}
