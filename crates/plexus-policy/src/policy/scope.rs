//! Scopes: which calls a session may allow. A session's own scope never decides alone: a call must also lie within the
//! scope of every ancestor. Each scope is evaluated on the call itself, never compared by the text of its rules.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::{Authority, Level, Policy, PolicyError, VerdictEffect};
use crate::call::Call;
use crate::entry::{RuleEffect, RuleEntry};
use crate::rule::Rule;

/// The calls that a session may allow for its descendants.
#[derive(Debug, Clone)]
pub struct Scope {
    rules: Arc<[Rule]>,
    policy: Arc<Policy>,
}

impl Scope {
    /// Creates a scope from anchored rules. A rule that is not valid as an allow rule, such as `mcp__*`, matches
    /// nothing.
    pub fn new(rules: &[Rule]) -> Result<Self, PolicyError> {
        let entries = rules
            .iter()
            .filter_map(|rule| RuleEntry::new(rule.clone(), RuleEffect::Allow, None).ok())
            .collect();
        let level = Level { name: "the scope".to_owned(), authority: Authority::Root, rules: entries };
        Ok(Self { rules: rules.into(), policy: Arc::new(Policy::new(vec![level])?) })
    }

    /// Whether the scope covers the whole call.
    pub fn may_allow(&self, call: &Call<'_>) -> bool {
        self.policy.evaluate(call).effect == VerdictEffect::Allow
    }

    /// The rules of the scope.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether a rule is textually contained in this scope, and the call that the rule spells out is covered.
    fn contains(&self, rule: &Rule) -> bool {
        self.rules.iter().any(|wide| rule.is_within(wide))
            && rule.spelled_out().is_none_or(|command| {
                let input = json!({ "command": command });
                let tool_name = rule.tool();
                self.may_allow(&Call { tool_name, input: &input, cwd: Path::new("/"), home: None, now: 0 })
            })
    }
}

/// The scope of a session together with the scopes of all its ancestors, up to the root.
#[derive(Debug, Clone)]
pub struct ScopeChain {
    own: Scope,
    above: Vec<Scope>,
}

impl ScopeChain {
    /// The chain of a session with its own scope and one scope for each ancestor.
    pub fn new(own: Scope, above: Vec<Scope>) -> Self {
        Self { own, above }
    }

    /// Whether the session may allow this call: every scope of the chain must cover all of it.
    pub fn may_allow(&self, call: &Call<'_>) -> bool {
        self.scopes().all(|scope| scope.may_allow(call))
    }

    /// The first of these rules that a scope of the chain does not contain. It lets a caller reject the
    /// rule early and may reject too much; [`Self::may_allow`] decides what a rule allows.
    pub fn first_beyond<'r>(&self, rules: &'r [Rule]) -> Option<&'r Rule> {
        rules.iter().find(|rule| !self.scopes().all(|scope| scope.contains(rule)))
    }

    fn scopes(&self) -> impl Iterator<Item = &Scope> {
        std::iter::once(&self.own).chain(&self.above)
    }
}

/// Whether a rule alone certainly matches a call or, for a rule that restricts, may match it.
pub fn covers(entry: &RuleEntry, call: &Call<'_>) -> Result<bool, PolicyError> {
    let level = Level { name: "the rule".to_owned(), authority: Authority::Root, rules: vec![entry.clone()] };
    let effect = Policy::new(vec![level])?.evaluate(call).effect;
    Ok(match entry.effect() {
        RuleEffect::Allow => effect == VerdictEffect::Allow,
        RuleEffect::Deny => effect == VerdictEffect::Deny,
        RuleEffect::Ask => effect == VerdictEffect::Ask,
    })
}
