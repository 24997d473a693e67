//! A chain of rule lists, from the root of a session tree down to one session, and its verdict on a call. Deny
//! overrides ask, and ask overrides allow, at every level. An allow rule applies only within the authority of the level
//! that gave it.

mod allow;
mod repositories;
mod restrict;
mod scope;

use std::collections::HashSet;
use std::path::Path;

use globset::{GlobSet, GlobSetBuilder};

use crate::call::Call;
use crate::entry::{RuleEffect, RuleEntry};
use crate::paths::Target;
use crate::rule::Specifier;
use crate::subject::Subject;

pub use scope::{Scope, ScopeChain, covers};

/// The rules of one level of the chain.
#[derive(Debug, Clone)]
pub struct Level {
    /// The name of the level in reasons, e.g. the session's name.
    pub name: String,
    /// The authority of its allow rules.
    pub authority: Authority,
    /// The rules, anchored.
    pub rules: Vec<RuleEntry>,
}

/// The authority of a level's allow rules. Deny and ask rules apply at every level.
#[derive(Debug, Clone)]
pub enum Authority {
    /// The operator or another root of the tree: every allow rule applies.
    Root,
    /// A session that can only restrict: none of its allow rules applies.
    Narrows,
    /// A session that may allow some calls in advance: those within its own scope and every ancestor's scope.
    Within(ScopeChain),
}

/// A compiled policy.
#[derive(Debug)]
pub struct Policy {
    levels: Vec<Level>,
    /// Every rule that can apply: deny, ask and allow rules separately.
    deny: Vec<RulePosition>,
    ask: Vec<RulePosition>,
    allow: Vec<RulePosition>,
    paths: PathIndex,
}

/// The position of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RulePosition {
    level: usize,
    index: usize,
    /// Its number among the path rules.
    path: Option<usize>,
}

/// All path rules in one index.
#[derive(Debug)]
struct PathIndex {
    globs: GlobSet,
    /// The path rule that each glob belongs to.
    owners: Vec<usize>,
    /// For each deny and ask rule, a name that occurs in every path it matches.
    required_names: HashSet<String>,
}

/// Why a policy cannot be used. A session with an unusable policy may do nothing.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The patterns of its path rules are too large to compile.
    #[error("the path rules of this policy cannot be combined: {0}; use fewer or simpler path rules")]
    Paths(#[from] globset::Error),
}

/// The verdict of a policy on a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict<'p> {
    /// The effect on the call.
    pub effect: VerdictEffect,
    /// The rules that caused it. An allowed command line may need several.
    pub by: Vec<Decider<'p>>,
    /// The reason, as text.
    pub why: String,
}

/// The effect of a verdict, from the most to the least restrictive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum VerdictEffect {
    /// The call does not run.
    Deny,
    /// The call needs approval.
    Ask,
    /// No rule matches: Claude Code's permission rules decide.
    Unmentioned,
    /// The call runs.
    Allow,
}

/// A rule that caused a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decider<'p> {
    /// The position of its level in the chain, from the root.
    pub level: usize,
    /// The name of that level.
    pub level_name: &'p str,
    /// Its position in the level.
    pub index: usize,
    /// The rule.
    pub entry: &'p RuleEntry,
}

impl Policy {
    /// Compiles a policy from a chain, root first.
    pub fn new(levels: Vec<Level>) -> Result<Self, PolicyError> {
        let (mut deny, mut ask, mut allow) = (Vec::new(), Vec::new(), Vec::new());
        let mut builder = GlobSetBuilder::new();
        let mut owners = Vec::new();
        let mut required_names = HashSet::new();
        let mut paths = 0;
        for (level, rules) in levels.iter().enumerate() {
            for (index, entry) in rules.rules.iter().enumerate() {
                if entry.effect() == RuleEffect::Allow && matches!(rules.authority, Authority::Narrows) {
                    continue;
                }
                let mut position = RulePosition { level, index, path: None };
                if let Specifier::Path(_, pattern) = &entry.rule().specifier {
                    let mut globs = pattern.globs()?;
                    if entry.effect() != RuleEffect::Allow {
                        required_names.insert(pattern.required_name());
                    }
                    // A rule that restricts also applies to the target of its path. A rule that allows does not: links
                    // change, and the party that may change them is not the one that created the rule.
                    if let Some(real) = pattern
                        .resolved()
                        .filter(|_| entry.effect() != RuleEffect::Allow && pattern.is_absolute())
                    {
                        globs.extend(real.globs()?);
                        required_names.insert(real.required_name());
                    }
                    for glob in globs {
                        builder.add(glob);
                        owners.push(paths);
                    }
                    position.path = Some(paths);
                    paths += 1;
                }
                match entry.effect() {
                    RuleEffect::Deny => deny.push(position),
                    RuleEffect::Ask => ask.push(position),
                    RuleEffect::Allow => allow.push(position),
                }
            }
        }
        Ok(Self {
            levels,
            deny,
            ask,
            allow,
            paths: PathIndex { globs: builder.build()?, owners, required_names },
        })
    }

    /// The effect on a call, and the rules that cause it.
    pub fn evaluate(&self, call: &Call<'_>) -> Verdict<'_> {
        let subject = Subject::of(call);
        self.restricts(call, &subject).unwrap_or_else(|| self.allows(call, &subject))
    }

    fn entry(&self, position: RulePosition) -> &RuleEntry {
        &self.levels[position.level].rules[position.index]
    }

    fn decider(&self, position: RulePosition) -> Decider<'_> {
        let level = &self.levels[position.level];
        Decider {
            level: position.level,
            level_name: &level.name,
            index: position.index,
            entry: &level.rules[position.index],
        }
    }

    /// The rules of a list that have not expired.
    fn in_force<'s>(
        &'s self,
        positions: &'s [RulePosition],
        call: &Call<'_>,
    ) -> impl Iterator<Item = RulePosition> + use<'s> {
        let now = call.now;
        positions.iter().copied().filter(move |position| self.entry(*position).is_in_force_at(now))
    }
}

/// Excludes paths below some directory that no deny or ask rule can match: such a path must contain a required name.
struct NameFilter<'p> {
    /// `None` if any path may match.
    names: Option<&'p HashSet<String>>,
}

impl NameFilter<'_> {
    /// Whether any rule can match a file.
    fn may_match(&self, file: &Path) -> bool {
        let Some(names) = self.names else { return true };
        file.components().any(|part| part.as_os_str().to_str().is_none_or(|part| names.contains(part)))
    }
}

impl PathIndex {
    fn name_filter(&self, cwd: &Path) -> NameFilter<'_> {
        let named = |part: &str| self.required_names.contains(part);
        let of_cwd = cwd.components().any(|part| part.as_os_str().to_str().is_none_or(named));
        NameFilter { names: if of_cwd || named("") { None } else { Some(&self.required_names) } }
    }

    /// The path rules that match this path.
    fn matching(&self, path: &Path) -> Vec<usize> {
        self.globs.matches(path).into_iter().map(|glob| self.owners[glob]).collect()
    }

    /// The path rules that match a target by its lexical path or by its resolved paths.
    fn matching_any(&self, target: &Target) -> Vec<usize> {
        let mut found = self.matching(&target.lexical);
        for real in target.real.iter().filter(|real| **real != target.lexical) {
            found.extend(self.matching(real));
        }
        found
    }
}
