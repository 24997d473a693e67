//! One rule in Claude Code's own syntax: `Tool` or `Tool(specifier)`. This module owns the grammar, the canonical text
//! and the anchoring of relative paths. `policy` applies rules to calls.

mod parse;
mod within;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::command_pattern::{BETWEEN, CommandPattern, Tail};
use crate::paths::PathPattern;
use crate::tools::Family;

/// A rule, e.g. `Bash(npm run test:*)`. Two rules are equal if they match the same calls of the same tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rule {
    pub(crate) tool: String,
    pub(crate) specifier: Specifier,
}

/// Which calls of the tool match.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Specifier {
    /// All calls.
    Whole,
    Command(CommandPattern),
    Path(Family, PathPattern),
    /// A host name, optionally prefixed with `*.`.
    Domain(String),
    /// The name of a sub-agent or a skill, which may contain `*`.
    Name(String),
}

/// Why a text is not a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid rule: at byte {at}: expected {expected}")]
pub struct RuleError {
    /// The input.
    pub text: String,
    /// The byte offset of the error.
    pub at: usize,
    /// What is expected there.
    pub expected: String,
}

impl Rule {
    /// The rule with its path made absolute, for use in an allow rule: below `base`, or below `home` if it starts with
    /// `~`. Without a home such a rule stays unchanged. An unanchored rule never allows anything.
    pub fn anchored(&self, base: &Path, home: Option<&Path>) -> Self {
        self.with_path(|path| path.anchored(base, home))
    }

    /// The same for a deny or ask rule, in which `src/**` matches any `src` below `base`.
    pub fn anchored_widely(&self, base: &Path, home: Option<&Path>) -> Self {
        self.with_path(|path| path.anchored_widely(base, home))
    }

    /// Whether it matches the same calls wherever it is applied.
    pub fn is_anchored(&self) -> bool {
        !matches!(&self.specifier, Specifier::Path(_, path) if !path.is_absolute())
    }

    /// The name of its tool, which may contain `*`.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The command line in a command rule, with `x` for each `*`; `None` for other rules.
    pub(crate) fn spelled_out(&self) -> Option<String> {
        let Specifier::Command(pattern) = &self.specifier else { return None };
        let line = pattern.segments.join("x");
        let quoted = |word: &str| format!("'{}'", word.replace('\'', r"'\''"));
        Some(line.split(BETWEEN).map(quoted).collect::<Vec<_>>().join(" "))
    }

    fn with_path(&self, change: impl FnOnce(&PathPattern) -> PathPattern) -> Self {
        let specifier = match &self.specifier {
            Specifier::Path(family, path) => Specifier::Path(*family, change(path)),
            other => other.clone(),
        };
        Self { tool: self.tool.clone(), specifier }
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        parse::rule(text)
    }
}

impl TryFrom<String> for Rule {
    type Error = RuleError;

    fn try_from(text: String) -> Result<Self, RuleError> {
        text.parse()
    }
}

impl From<Rule> for String {
    fn from(rule: Rule) -> Self {
        rule.to_string()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tool)?;
        match &self.specifier {
            Specifier::Whole => Ok(()),
            Specifier::Command(pattern) => write!(f, "({pattern})"),
            Specifier::Path(_, pattern) => write!(f, "({pattern})"),
            Specifier::Domain(domain) => write!(f, "(domain:{domain})"),
            Specifier::Name(name) => write!(f, "({name})"),
        }
    }
}

impl fmt::Display for CommandPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for (at, segment) in self.segments.iter().enumerate() {
            if at > 0 {
                // `:*` would be parsed as further words.
                if at + 1 == self.segments.len()
                    && segment.is_empty()
                    && self.tail == Tail::End
                    && text.ends_with(':')
                {
                    text.insert(text.len() - 1, '\\');
                }
                text.push('*');
            }
            for c in segment.chars() {
                match c {
                    BETWEEN => text.push(' '),
                    ' ' | '\t' | '\'' | '"' | '\\' | '*' => text.extend(['\\', c]),
                    _ => text.push(c),
                }
            }
        }
        f.write_str(&text)?;
        if self.tail == Tail::Words { f.write_str(":*") } else { Ok(()) }
    }
}

impl JsonSchema for Rule {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Rule".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A rule in Claude Code's syntax: Bash(npm run test:*), Edit(src/**), mcp__github__*, WebFetch(domain:example.com)",
        })
    }
}
