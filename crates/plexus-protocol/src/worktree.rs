//! A session's own git worktree: how `claudecode.create` asks for one, what is kept of it, and how `get`, `list` and
//! `delete` show it.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{SessionId, SessionName};

/// What keeps a session apart from others: the word `worktree`, or an object with the particulars.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// The one kind there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
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

/// A worktree and what makes it ready.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(description = "")]
pub struct WorktreeIsolation {
    /// Always `worktree`.
    #[serde(rename = "type")]
    #[schemars(description = "")]
    pub kind: IsolationKind,
    /// Shell command that makes it ready, run before create returns.
    #[serde(default)]
    pub setup: Option<String>,
    /// 600 unless said.
    #[serde(default)]
    pub setup_timeout_secs: Option<u64>,
    /// Files and folders to copy in, from the root of the repository.
    #[serde(default)]
    pub copy: Option<Vec<String>>,
    /// Revision to begin at; HEAD unless said.
    #[serde(default)]
    pub base: Option<String>,
}

/// By hand, so that what is wrong with an object is said of its field, and not of all the forms there are.
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

/// A session's worktree, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// The root of the working tree.
    pub path: String,
    /// Its branch, such as `plexus/fix-1a2b3c4d`.
    pub branch: String,
    /// The commit it began at.
    pub base: String,
    /// The git directory of the repository it belongs to.
    pub repo: String,
}

/// A session's worktree, as `get` and `list` show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeView {
    /// Its root.
    pub path: String,
    /// Its branch.
    pub branch: String,
    /// The commit it began at; in `get` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// What the session has made of it; in `get` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<WorktreeChanges>,
    /// Why `changes` is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How a worktree differs from the commit it began at, and from what was copied and set up there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeChanges {
    /// Files that differ, new ones included.
    pub files: u64,
    /// Lines that are new in them.
    pub insertions: u64,
    /// Lines that are gone from them.
    pub deletions: u64,
    /// How many of the files git does not know of.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub untracked: u64,
    /// Commits made on top.
    pub commits: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileStatus {
    /// It is new, and git knows of it.
    Added,
    /// It holds something else.
    Modified,
    /// It is gone.
    Deleted,
    /// It has another path and holds the same.
    Renamed,
    /// It is new, and git does not know of it.
    Untracked,
}

/// How one file of a worktree differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileDiff {
    /// From the root of the worktree. Written by the child: not to be trusted.
    pub path: String,
    /// Where it was before, if it was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_path: Option<String>,
    /// What became of it.
    pub status: FileStatus,
    /// Lines that are new.
    pub insertions: u64,
    /// Lines that are gone.
    pub deletions: u64,
    /// Whether it is not text.
    pub binary: bool,
    /// A unified diff; left out where nothing of it can be shown. Written by the child: not to be trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// Whether the diff is cut, or left out because the file is too large or cannot be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// What became of the worktree of a deleted session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftWorktree {
    /// Where it is, or was.
    pub path: String,
    /// Its branch.
    pub branch: String,
    /// Whether it stays: it does unless it was seen to be unchanged.
    pub kept: bool,
    /// Why it stays although nobody could tell what is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The worktree of a session that was deleted with the one above it.
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
    fn a_word_and_an_object_say_the_same() {
        let plain = read(json!("worktree")).unwrap().0;
        assert_eq!(read(json!({"type": "worktree"})).unwrap().0, plain);
        let full = json!({"type": "worktree", "setup": "make", "setup_timeout_secs": 5, "copy": [".env"],
            "base": "main"});
        assert_eq!(read(full).unwrap().0.copy, Some(vec![".env".to_owned()]));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |value| read(value).unwrap_err();
        assert!(wrong(json!("container")).contains("container"));
        assert!(wrong(json!({"type": "worktree", "colour": 1})).contains("unknown field `colour`"));
        assert!(wrong(json!({"setup": "make"})).contains("missing field `type`"));
        assert!(wrong(json!({"type": "vm"})).contains("vm"));
        assert!(wrong(json!(7)).contains("\"worktree\""));
    }

    #[test]
    fn both_forms_are_published() {
        let schema = Value::Object(schema::of::<Isolation>());
        let forms = schema["anyOf"].as_array().unwrap();
        assert_eq!(forms[0]["type"], "string", "{schema}");
        assert_eq!(forms[1]["properties"]["copy"]["type"], "array", "{schema}");
    }
}
