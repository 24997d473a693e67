//! What someone may decide: a list of patterns, and whether a call is among what they mean. The same question is asked of
//! a single rule, to find the open approvals that it settles.

use std::sync::Arc;

use super::{Authority, Level, Policy, PolicyError, VerdictEffect};
use crate::call::Call;
use crate::entry::{RuleEffect, RuleEntry};
use crate::rule::Rule;

/// The calls that a session may allow for those below it.
#[derive(Debug, Clone)]
pub struct Scope {
    rules: Arc<[Rule]>,
    policy: Arc<Policy>,
}

impl Scope {
    /// A scope of rules that are anchored. One that is no allow rule, such as `mcp__*`, is left to mean nothing.
    pub fn new(rules: &[Rule]) -> Result<Self, PolicyError> {
        let entries = rules
            .iter()
            .filter_map(|rule| RuleEntry::new(rule.clone(), RuleEffect::Allow, None).ok())
            .collect();
        let level = Level { name: "the scope".to_owned(), authority: Authority::Root, rules: entries };
        Ok(Self { rules: rules.into(), policy: Arc::new(Policy::new(vec![level])?) })
    }

    /// Whether a call is among what may be allowed: all of it has to be.
    pub fn may_allow(&self, call: &Call<'_>) -> bool {
        self.policy.evaluate(call).effect == VerdictEffect::Allow
    }

    /// The rules it is made of.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The first rule of this scope that another one does not contain, if there is one. It errs on the side of finding one.
    pub fn exceeds(&self, wider: &Self) -> Option<&Rule> {
        self.rules.iter().find(|rule| !wider.rules.iter().any(|wide| rule.is_within(wide)))
    }
}

/// Whether a rule alone surely means a call, or for a rule that restricts, may mean it.
pub fn covers(entry: &RuleEntry, call: &Call<'_>) -> Result<bool, PolicyError> {
    let level = Level { name: "the rule".to_owned(), authority: Authority::Root, rules: vec![entry.clone()] };
    let effect = Policy::new(vec![level])?.evaluate(call).effect;
    Ok(match entry.effect() {
        RuleEffect::Allow => effect == VerdictEffect::Allow,
        RuleEffect::Deny => effect == VerdictEffect::Deny,
        RuleEffect::Ask => effect == VerdictEffect::Ask,
    })
}
