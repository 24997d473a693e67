//! A chain of rule lists, from the root of a tree of sessions down to one of them, and what it says about a call. Deny
//! beats ask beats allow, at whatever level; an allow counts as far as the authority reaches of whoever gave it.

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

/// The rules of one giver, at one place in the chain.
#[derive(Debug, Clone)]
pub struct Level {
    /// What it is called when it is named as a reason, e.g. the session's name.
    pub name: String,
    /// How far what it allows counts.
    pub authority: Authority,
    /// The rules, anchored.
    pub rules: Vec<RuleEntry>,
}

/// How far an allow rule counts. Deny and ask rules count whoever gave them.
#[derive(Debug, Clone)]
pub enum Authority {
    /// The operator, or whoever else is the root of the tree: what is allowed is allowed.
    Root,
    /// A session: nothing that it allows counts, it can only narrow.
    Narrows,
    /// A session that may allow some calls in advance: those within its scope and every scope above it.
    Within(ScopeChain),
}

/// A policy that is ready to be asked.
#[derive(Debug)]
pub struct Policy {
    levels: Vec<Level>,
    /// Every rule that can have a say: those that deny, those that ask, those that allow.
    deny: Vec<Place>,
    ask: Vec<Place>,
    allow: Vec<Place>,
    paths: PathIndex,
}

/// Where a rule stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    level: usize,
    index: usize,
    /// Its number among the path rules.
    path: Option<usize>,
}

/// All path rules at once.
#[derive(Debug)]
struct PathIndex {
    globs: GlobSet,
    /// Which path rule each glob is of.
    owners: Vec<usize>,
    /// A name for each deny and ask rule that is part of every path it means.
    telling: HashSet<String>,
}

/// Why a policy cannot be used. A session whose policy cannot be used may do nothing.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The patterns of its path rules are too much to be held.
    #[error("the path rules of this policy cannot be used together: {0}; use fewer or simpler ones")]
    Paths(#[from] globset::Error),
}

/// What a policy says about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict<'p> {
    /// What is to happen.
    pub effect: VerdictEffect,
    /// The rules that say so; an allowed command line may need several.
    pub by: Vec<Decider<'p>>,
    /// The reason in words.
    pub why: String,
}

/// What is to happen to a call, from the narrowest to the widest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum VerdictEffect {
    /// It does not run.
    Deny,
    /// Somebody is asked.
    Ask,
    /// No rule says anything: Claude Code takes its own course.
    Unmentioned,
    /// It runs.
    Allow,
}

/// A rule that has decided something.
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
    /// Makes a policy of a chain, root first.
    pub fn new(levels: Vec<Level>) -> Result<Self, PolicyError> {
        let (mut deny, mut ask, mut allow) = (Vec::new(), Vec::new(), Vec::new());
        let mut builder = GlobSetBuilder::new();
        let mut owners = Vec::new();
        let mut telling = HashSet::new();
        let mut paths = 0;
        for (level, rules) in levels.iter().enumerate() {
            for (index, entry) in rules.rules.iter().enumerate() {
                if entry.effect() == RuleEffect::Allow && matches!(rules.authority, Authority::Narrows) {
                    continue;
                }
                let mut place = Place { level, index, path: None };
                if let Specifier::Path(_, pattern) = &entry.rule().specifier {
                    let mut globs = pattern.globs()?;
                    if entry.effect() != RuleEffect::Allow {
                        telling.insert(pattern.telling_name());
                    }
                    // A rule that restricts holds for what its path leads to as well. One that allows does not: links
                    // change, and who may change them is not who made the rule.
                    if let Some(real) = pattern
                        .resolved()
                        .filter(|_| entry.effect() != RuleEffect::Allow && pattern.is_absolute())
                    {
                        globs.extend(real.globs()?);
                        telling.insert(real.telling_name());
                    }
                    for glob in globs {
                        builder.add(glob);
                        owners.push(paths);
                    }
                    place.path = Some(paths);
                    paths += 1;
                }
                match entry.effect() {
                    RuleEffect::Deny => deny.push(place),
                    RuleEffect::Ask => ask.push(place),
                    RuleEffect::Allow => allow.push(place),
                }
            }
        }
        Ok(Self { levels, deny, ask, allow, paths: PathIndex { globs: builder.build()?, owners, telling } })
    }

    /// What is to happen to a call, and which rule says so.
    pub fn evaluate(&self, call: &Call<'_>) -> Verdict<'_> {
        let subject = Subject::of(call);
        self.restricts(call, &subject).unwrap_or_else(|| self.allows(call, &subject))
    }

    fn entry(&self, place: Place) -> &RuleEntry {
        &self.levels[place.level].rules[place.index]
    }

    fn decider(&self, place: Place) -> Decider<'_> {
        let level = &self.levels[place.level];
        Decider {
            level: place.level,
            level_name: &level.name,
            index: place.index,
            entry: &level.rules[place.index],
        }
    }

    /// The rules of a list that are still in force.
    fn in_force<'s>(&'s self, places: &'s [Place], call: &Call<'_>) -> impl Iterator<Item = Place> + use<'s> {
        let now = call.now;
        places.iter().copied().filter(move |place| self.entry(*place).counts_at(now))
    }
}

/// The names without which no deny or ask rule means a path below some directory.
struct NotifyBy<'p> {
    /// None where any path may be meant.
    names: Option<&'p HashSet<String>>,
}

impl NotifyBy<'_> {
    /// Whether a file can be meant at all.
    fn may_mean(&self, file: &Path) -> bool {
        let Some(names) = self.names else { return true };
        file.components().any(|part| part.as_os_str().to_str().is_none_or(|part| names.contains(part)))
    }
}

impl PathIndex {
    fn telling(&self, cwd: &Path) -> NotifyBy<'_> {
        let named = |part: &str| self.telling.contains(part);
        let of_cwd = cwd.components().any(|part| part.as_os_str().to_str().is_none_or(named));
        NotifyBy { names: if of_cwd || named("") { None } else { Some(&self.telling) } }
    }

    /// The path rules that mean this path.
    fn matching(&self, path: &Path) -> Vec<usize> {
        self.globs.matches(path).into_iter().map(|glob| self.owners[glob]).collect()
    }

    /// The path rules that mean a place by its letters or by where it leads.
    fn matching_any(&self, target: &Target) -> Vec<usize> {
        let mut found = self.matching(&target.lexical);
        for real in target.real.iter().filter(|real| **real != target.lexical) {
            found.extend(self.matching(real));
        }
        found
    }
}
