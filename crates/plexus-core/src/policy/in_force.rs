//! The rules in force, and their ruling on a call of one session. They are a copy of the store in memory, loaded at the
//! start and updated after each commit. A rule that cannot be read denies every call.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use plexus_policy::{Authority, Call, Level, Policy, RuleEntry, VerdictEffect, is_hub_tool};
use plexus_protocol::policy::{Counts, Effect, RuleView};
use plexus_protocol::{ApprovalKind, Decider, SessionId};
use plexus_store::{NewRule, RuleAuthority, RuleChange, RuleRow, RulesInForce};
use serde_json::Value;

use super::gate::{GateDecision, NamedPolicy};
use super::restriction::Restriction;
use crate::lineage::Lineage;
use plexus_book::now;

/// All rules in force, with the judges built from them.
#[derive(Default)]
pub(crate) struct Policies {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    rules: BTreeMap<u64, RuleRow>,
    /// The deny rules of the user's own settings, for all sessions.
    user: Arc<Restriction>,
    /// Incremented whenever the rules change.
    version: u64,
    /// The version of the store that the rules are those of ([`RulesInForce`]).
    stored_version: u64,
    /// The judges built since the rules last changed, by session.
    judges: HashMap<SessionId, Arc<Judge>>,
}

/// Judges the calls of one session.
pub(crate) struct Judge {
    /// The version of the store that the rules are those of.
    version: u64,
    named: Vec<&'static NamedPolicy>,
    rules: Rules,
    home: Option<PathBuf>,
}

enum Rules {
    /// No rule applies to the session.
    None,
    /// The policy, and the numbers of the rules at each of its levels.
    Some { policy: Box<Policy>, numbers: Vec<Vec<u64>> },
    /// The rules cannot be used, for this reason.
    Broken(String),
}

/// The decision about a call, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ruling {
    pub(crate) decision: GateDecision,
    /// The reason, in words.
    pub(crate) why: String,
    /// The numbers of the rules that decided.
    pub(crate) rules: Vec<u64>,
}

impl Policies {
    /// Loads the rules in force when a hub starts.
    pub(crate) fn load(&self, rules: RulesInForce) {
        while !self.load_at(self.version(), rules.clone()) {}
    }

    /// Incremented whenever the rules change.
    pub(crate) fn version(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).version
    }

    /// Loads rules that were read at this version. Returns whether the rules had not changed since.
    pub(crate) fn load_at(&self, version: u64, stored: RulesInForce) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = state.version == version;
        if is_current {
            state.rules = stored.rules.into_iter().map(|rule| (rule.number, rule)).collect();
            state.stored_version = stored.version;
            state.judges.clear();
            state.version += 1;
        }
        is_current
    }

    /// Applies committed changes, after which the store has this version of the rules.
    pub(crate) fn on_commit(&self, changes: &[RuleChange], version: Option<u64>) {
        if changes.is_empty() {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for change in changes {
            match change {
                RuleChange::Created(rule) => state.rules.insert(rule.number, rule.clone()),
                RuleChange::Revoked(number) => state.rules.remove(number),
            };
        }
        let next = state.stored_version + changes.len() as u64;
        // With another version, another hub has changed rules that this one has not read yet.
        if version == Some(next) {
            state.stored_version = next;
        }
        state.judges.clear();
        state.version += 1;
    }

    /// A copy with one more rule, as if it had been created. It does not affect the rules in force.
    pub(crate) fn with_rule(&self, rule: RuleRow) -> Self {
        let (rules, user) = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            (state.rules.clone(), Arc::clone(&state.user))
        };
        let extended = Self { state: Mutex::new(State { rules, user, ..State::default() }) };
        extended.on_commit(&[RuleChange::Created(rule)], None);
        extended
    }

    /// Sets the deny rules of the user's own settings.
    pub(crate) fn set_restriction(&self, user: Restriction) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.user = Arc::new(user);
        state.judges.clear();
        state.version += 1;
    }

    /// Whether no rule is in force.
    pub(crate) fn is_empty(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).rules.is_empty()
    }

    /// The rules for a session, including those it inherits; all rules for `None`.
    pub(crate) fn list(&self, of: Option<&Lineage>) -> Vec<RuleView> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = |row: &&RuleRow| of.is_none_or(|of| is_for(row, of));
        state.rules.values().filter(wanted).filter_map(view).collect()
    }

    /// The rules of one session itself, without those it inherits.
    pub(crate) fn of_session(&self, session: SessionId) -> Vec<NewRule> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let own = state.rules.values().filter(|row| row.rule.session == Some(session));
        own.map(|row| row.rule.clone()).collect()
    }

    /// The rule with this number, if it is in force.
    pub(crate) fn rule(&self, number: u64) -> Option<RuleRow> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).rules.get(&number).cloned()
    }

    /// The numbers of the rules from a session's project: the hub creates no other rules.
    pub(crate) fn of_project(&self, session: SessionId) -> Vec<u64> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let from_project =
            |row: &&RuleRow| row.rule.session == Some(session) && row.rule.created_by == Decider::Hub;
        state.rules.values().filter(from_project).map(|row| row.number).collect()
    }

    /// The judge of a session's calls.
    pub(crate) fn judge(&self, of: &Lineage, home: impl FnOnce() -> Option<PathBuf>) -> Arc<Judge> {
        let Some(id) = of.itself().map(|session| session.id) else {
            return Arc::new(Judge::broken("the session of this call is unknown"));
        };
        let (rows, user, version, stored_version) = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(judge) = state.judges.get(&id) {
                return Arc::clone(judge);
            }
            let rows: Vec<RuleRow> = state.rules.values().filter(|row| is_for(row, of)).cloned().collect();
            (rows, Arc::clone(&state.user), state.version, state.stored_version)
        };
        // Building a judge follows symbolic links, so it runs without the lock.
        let judge = Arc::new(Judge { version: stored_version, ..Judge::of(of, &rows, &user, home()) });
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.version == version {
            state.judges.insert(id, Arc::clone(&judge));
        }
        judge
    }
}

fn is_for(row: &RuleRow, of: &Lineage) -> bool {
    row.rule.session.is_none_or(|id| of.sessions().iter().any(|session| session.id == id))
}

/// A rule as callers see it; `None` if it cannot be read or has expired.
pub(crate) fn view(row: &RuleRow) -> Option<RuleView> {
    let entry: RuleEntry = serde_json::from_value(row.rule.entry.clone()).ok()?;
    if !entry.is_in_force_at(now()) {
        return None;
    }
    Some(RuleView {
        number: row.number,
        rule: entry.rule().to_string(),
        effect: match entry.effect() {
            plexus_policy::RuleEffect::Allow => Effect::Allow,
            plexus_policy::RuleEffect::Deny => Effect::Deny,
            plexus_policy::RuleEffect::Ask => Effect::Ask,
        },
        counts: match row.rule.authority {
            RuleAuthority::Root => Counts::Fully,
            RuleAuthority::Narrows => Counts::Narrowing,
            RuleAuthority::Within => Counts::WithinScope,
        },
        session_id: row.rule.session,
        expires_at: entry.expires_at(),
        made_by: row.rule.created_by.clone(),
        created_at: row.created_at,
    })
}

/// The authority of an allow rule that a session created: the same as that of the session's own answers.
fn within(of: &Lineage, created_by: &Decider) -> Authority {
    let author = of.sessions().iter().find(|session| *created_by == Decider::Session { id: session.id });
    author.and_then(|author| of.scopes_of(author.id)).map_or(Authority::Narrows, Authority::Within)
}

impl Judge {
    fn of(of: &Lineage, rows: &[RuleRow], user: &Restriction, home: Option<PathBuf>) -> Self {
        let named = of.sessions().iter().map(|session| NamedPolicy::of(session.config.policy)).collect();
        let (mut levels, mut numbers): (Vec<Level>, Vec<Vec<u64>>) = (Vec::new(), Vec::new());
        for row in rows {
            let entry: RuleEntry = match serde_json::from_value(row.rule.entry.clone()) {
                Ok(entry) => entry,
                Err(error) => return Self::broken(&format!("cannot read rule {}: {error}", row.number)),
            };
            let (name, authority) = match row.rule.authority {
                RuleAuthority::Root => (String::from("the root"), Authority::Root),
                RuleAuthority::Narrows => (String::from("a session"), Authority::Narrows),
                RuleAuthority::Within => (String::from("a session"), within(of, &row.rule.created_by)),
            };
            levels.push(Level { name, authority, rules: vec![entry] });
            numbers.push(vec![row.number]);
        }
        let dir = of.itself().map(|session| Path::new(&session.config.working_dir));
        match user.rules_in(dir.unwrap_or(Path::new("/")), home.as_deref()) {
            Ok(rules) if rules.is_empty() => {}
            Ok(rules) => {
                levels.push(Level {
                    name: "the user's settings".to_owned(),
                    authority: Authority::Root,
                    rules,
                });
                numbers.push(Vec::new());
            }
            Err(why) => return Self::broken(&why),
        }
        let rules = if levels.is_empty() {
            Rules::None
        } else {
            match Policy::new(levels) {
                Ok(policy) => Rules::Some { policy: Box::new(policy), numbers },
                Err(error) => Rules::Broken(error.to_string()),
            }
        };
        Self { version: 0, named, rules, home }
    }

    fn broken(why: &str) -> Self {
        Self { version: 0, named: Vec::new(), rules: Rules::Broken(why.to_owned()), home: None }
    }

    /// The version of the store that its rules are those of.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Whether judging a call needs its input.
    pub(crate) fn has_rules(&self) -> bool {
        matches!(self.rules, Rules::Some { .. })
    }

    /// Decides about a call. If no rule matches, the most restrictive of the named policies from the root down applies.
    pub(crate) fn judge(&self, tool_name: &str, input: &Value, cwd: &Path, mode: Option<&str>) -> Ruling {
        let verdict = match &self.rules {
            Rules::None => return self.by_name(tool_name, mode),
            Rules::Broken(why) => {
                let why = format!("the rules of this session are invalid, so no call is allowed: {why}");
                return Ruling { decision: GateDecision::Deny, why, rules: Vec::new() };
            }
            Rules::Some { policy, numbers } => {
                let call = Call { tool_name, input, cwd, home: self.home.as_deref(), now: now() };
                let verdict = policy.evaluate(&call);
                let rules = verdict.by.iter().filter_map(|by| numbers.get(by.level)?.get(by.index).copied());
                let rules: Vec<u64> = rules.collect();
                let decision = match verdict.effect {
                    VerdictEffect::Deny => GateDecision::Deny,
                    VerdictEffect::Ask => GateDecision::Ask,
                    // A person answers a question and approves a plan; a rule cannot allow either.
                    VerdictEffect::Allow if ApprovalKind::of_tool(tool_name) == ApprovalKind::Tool => {
                        GateDecision::Allow
                    }
                    VerdictEffect::Allow | VerdictEffect::Unmentioned => GateDecision::NoOpinion,
                };
                Ruling { decision, why: verdict.why, rules }
            }
        };
        if verdict.decision == GateDecision::NoOpinion { self.by_name(tool_name, mode) } else { verdict }
    }

    fn by_name(&self, tool_name: &str, mode: Option<&str>) -> Ruling {
        if is_hub_tool(tool_name) {
            let why = "tools of the hub need no approval: the hub checks the caller itself".to_owned();
            return Ruling { decision: GateDecision::Allow, why, rules: Vec::new() };
        }
        let decisions = self.named.iter().map(|policy| (policy.decision(tool_name, mode), policy.name));
        let (decision, why) = match decisions.min_by_key(|(decision, _)| *decision) {
            Some((GateDecision::NoOpinion, _)) | None => {
                (GateDecision::NoOpinion, "no rule matches".to_owned())
            }
            Some((decision, name)) => (decision, format!("policy `{}`", name.as_str())),
        };
        Ruling { decision, why, rules: Vec::new() }
    }
}
