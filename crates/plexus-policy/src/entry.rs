//! A rule with its effect and expiry. Settings, the wire and the store use this form.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::rule::{Rule, RuleError, Specifier};

/// What happens to the calls that match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleEffect {
    /// They run.
    Allow,
    /// They do not run.
    Deny,
    /// They need approval.
    Ask,
}

/// One rule of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, JsonSchema)]
pub struct RuleEntry {
    rule: Rule,
    effect: RuleEffect,
    /// When it expires, in seconds since 1970
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
}

/// The serialised form, before validation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEntry {
    rule: Rule,
    effect: RuleEffect,
    #[serde(default)]
    expires_at: Option<u64>,
}

impl RuleEntry {
    /// Creates an entry. Rejects an allow rule whose tool name has a wildcard that is not bound to one MCP server.
    pub fn new(rule: Rule, effect: RuleEffect, expires_at: Option<u64>) -> Result<Self, RuleError> {
        if effect == RuleEffect::Allow
            && rule.tool != "*"
            && let Some(star) = rule.tool.find('*')
        {
            let bound = rule.tool[..star]
                .strip_prefix("mcp__")
                .is_some_and(|rest| rest.find("__").is_some_and(|end| end > 0));
            if !bound {
                let expected = "no wildcard before `mcp__<server>__` in an allow rule".to_owned();
                return Err(RuleError { text: rule.to_string(), at: star, expected });
            }
        }
        Ok(Self { rule, effect, expires_at })
    }

    /// Creates an entry without an expiry.
    pub fn parse(rule: &str, effect: RuleEffect) -> Result<Self, RuleError> {
        Self::new(rule.parse()?, effect, None)
    }

    /// The rule.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// The effect of the rule.
    pub fn effect(&self) -> RuleEffect {
        self.effect
    }

    /// When it expires, in seconds since 1970.
    pub fn expires_at(&self) -> Option<u64> {
        self.expires_at
    }

    /// Whether it is still in force.
    pub fn is_in_force_at(&self, now: u64) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }

    /// The entry with its path made absolute according to its effect: a rule that restricts matches more than one that
    /// allows. Call this once, when the rule is created.
    #[must_use]
    pub fn anchored(&self, base: &Path, home: Option<&Path>) -> Self {
        let rule = match (&self.rule.specifier, self.effect) {
            (Specifier::Path(..), RuleEffect::Deny | RuleEffect::Ask) => {
                self.rule.anchored_widely(base, home)
            }
            _ => self.rule.anchored(base, home),
        };
        Self { rule, ..self.clone() }
    }
}

impl<'de> Deserialize<'de> for RuleEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RawEntry { rule, effect, expires_at } = RawEntry::deserialize(deserializer)?;
        Self::new(rule, effect, expires_at).map_err(serde::de::Error::custom)
    }
}
