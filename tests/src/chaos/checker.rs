//! The promises of several hubs, checked over the records of a chaos run: the agents' own logs, what clients were told, and what the database logged in the
//! order of its transactions. It is pure: records in, violations out.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Everything that was recorded.
#[derive(Debug, Clone, Default)]
pub struct Records {
    /// The calls that the agents ran, from their own logs.
    pub ran: Vec<Ran>,
    /// What the database logged, in the order of its transactions.
    pub log: Vec<Logged>,
    /// The answers that clients were told to be stored.
    pub acknowledged: Vec<Acknowledged>,
    /// The revocations that clients were told to be stored.
    pub revoked: Vec<Revoked>,
    /// The numbers of all feed entries.
    pub feed: Vec<u64>,
    /// The turns of which the operator's feed reports the end.
    pub finished: Vec<Finished>,
    /// For each client that followed the feed: the turns whose end it was told, in order.
    pub followers: Vec<Vec<Finished>>,
    /// The audit log as it was stored, in the order of its numbers, and what `audit.verify` returned on each hub.
    pub audit: Audit,
}

/// A call that an agent ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Its unique name.
    pub call: String,
    /// The host whose agent ran it.
    pub host: String,
    /// When the agent sent its last request about the call, on the monotonic clock.
    pub requested_at_ns: u64,
}

/// One line of the log of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// What was written.
    pub what: What,
    /// The hub that wrote it; `None` if no hub had fenced the transaction.
    pub by: Option<Writer>,
}

/// The hub of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// Its host.
    pub host: String,
    /// Its epoch.
    pub epoch: u64,
}

/// What a transaction wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// An approval was resolved.
    Resolved {
        /// The approval.
        approval: String,
        /// The call.
        call: String,
        /// The host of its session.
        owner: String,
        /// Its status.
        status: String,
        /// The rule that decided.
        rule: Option<u64>,
    },
    /// The gate answered a call.
    Gate {
        /// The call.
        call: String,
        /// The host of its session.
        owner: String,
        /// The answer: `allow`, `deny`, `ask`, `own_course` or `held`.
        answer: String,
        /// The label of the rule that matches this call.
        rule: Option<u64>,
    },
    /// A rule was created.
    RuleCreated(u64),
    /// A rule was revoked.
    RuleRevoked(u64),
    /// A budget has these amounts.
    Budget {
        /// Its session.
        session: String,
        /// The granted amount.
        granted: u64,
        /// What is used and reserved.
        claimed: u64,
    },
}

/// An answer that a client was told to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acknowledged {
    /// The approval.
    pub approval: String,
    /// The status that the answer gave it.
    pub status: String,
}

/// A revocation that a client was told to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revoked {
    /// The rule.
    pub rule: u64,
    /// When the client was told, on the monotonic clock.
    pub at_ns: u64,
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Finished {
    /// The session.
    pub session: String,
    /// The turn.
    pub turn: u64,
}

/// The audit log.
#[derive(Debug, Clone, Default)]
pub struct Audit {
    /// The numbers of its entries.
    pub numbers: Vec<u64>,
    /// For each hub: why its chain does not verify; `None` if it does.
    pub broken: Vec<Option<String>>,
}

/// The violations in these records.
pub fn violations(records: &Records) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(unfenced(records));
    found.extend(decided_twice(records));
    found.extend(not_allowed_by_owner(records));
    found.extend(lost_answers(records));
    found.extend(allowed_after_revocation(records));
    found.extend(exceeded_budgets(records));
    found.extend(gaps(records));
    found.extend(broken_chains(records));
    found
}

/// Every transaction is of a hub, and no hub writes after a later one of its host has started.
fn unfenced(records: &Records) -> Vec<String> {
    let mut epochs: HashMap<&str, u64> = HashMap::new();
    let mut found = Vec::new();
    for logged in &records.log {
        let Some(by) = &logged.by else {
            found.push(format!("no hub has fenced the transaction that wrote {:?}", logged.what));
            continue;
        };
        let latest = epochs.entry(&by.host).or_insert(by.epoch);
        if by.epoch < *latest {
            found.push(format!("{by:?} wrote {:?} after epoch {latest} had started", logged.what));
        }
        *latest = by.epoch.max(*latest);
    }
    found
}

fn decided_twice(records: &Records) -> Vec<String> {
    let mut approvals: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut gate: BTreeMap<&str, usize> = BTreeMap::new();
    for logged in &records.log {
        match &logged.what {
            What::Resolved { approval, status, .. } => approvals.entry(approval).or_default().push(status),
            // A held call is answered later.
            What::Gate { call, answer, .. } if answer != "held" => *gate.entry(call).or_default() += 1,
            _ => {}
        }
    }
    let approvals = approvals.into_iter().filter(|(_, all)| all.len() > 1);
    let calls = gate.into_iter().filter(|(_, times)| *times > 1);
    approvals
        .map(|(approval, all)| format!("{approval} was resolved {} times: {all:?}", all.len()))
        .chain(calls.map(|(call, times)| format!("the gate answered {call} {times} times")))
        .collect()
}

/// Every call that ran was allowed once, by the hub of the host that ran it. Nothing else is ever allowed by another hub.
fn not_allowed_by_owner(records: &Records) -> Vec<String> {
    let mut allowed: HashMap<&str, &str> = HashMap::new();
    let mut found = Vec::new();
    for logged in &records.log {
        let (subject, call, owner) = match &logged.what {
            What::Resolved { approval, call, owner, status, .. } if status == "allowed" => {
                (approval, call, owner)
            }
            What::Gate { call, owner, answer, .. } if answer == "allow" => (call, call, owner),
            _ => continue,
        };
        match &logged.by {
            Some(by) if by.host == *owner => drop(allowed.insert(call, owner)),
            by => found.push(format!("{subject} of {owner} was allowed by {by:?}")),
        }
    }
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for Ran { call, host, .. } in &records.ran {
        *times.entry(call).or_default() += 1;
        match allowed.get(call.as_str()) {
            Some(owner) if owner == host => {}
            Some(owner) => found.push(format!("{call} ran on {host} and was allowed by {owner}")),
            None => found.push(format!("{call} ran on {host}, and nobody allowed it")),
        }
    }
    let again = times.into_iter().filter(|(_, times)| *times > 1);
    found.extend(again.map(|(call, times)| format!("{call} ran {times} times")));
    found
}

fn lost_answers(records: &Records) -> Vec<String> {
    let mut stored: HashMap<&str, &str> = HashMap::new();
    for logged in &records.log {
        if let What::Resolved { approval, status, .. } = &logged.what {
            stored.insert(approval, status);
        }
    }
    let mut found = Vec::new();
    for Acknowledged { approval, status } in &records.acknowledged {
        match stored.get(approval.as_str()) {
            Some(stored) if stored == status => {}
            Some(stored) => {
                found.push(format!("{approval} was acknowledged as {status} and is stored as {stored}"))
            }
            None => found.push(format!("{approval} was acknowledged as {status}, and no decision is stored")),
        }
    }
    found
}

/// No rule allows anything after its revocation, neither in the order of the transactions nor in that of the clients.
fn allowed_after_revocation(records: &Records) -> Vec<String> {
    let mut revoked: HashSet<u64> = HashSet::new();
    let mut by_gate: HashMap<&str, u64> = HashMap::new();
    let mut found = Vec::new();
    for logged in &records.log {
        let (call, rule) = match &logged.what {
            What::RuleRevoked(rule) => {
                revoked.insert(*rule);
                continue;
            }
            What::Resolved { call, status, rule: Some(rule), .. } if status == "allowed" => (call, rule),
            What::Gate { call, answer, rule: Some(rule), .. } if answer == "allow" => {
                by_gate.insert(call, *rule);
                (call, rule)
            }
            _ => continue,
        };
        if revoked.contains(rule) {
            found.push(format!("rule {rule} allowed {call} after its revocation"));
        }
    }
    let told: HashMap<u64, u64> = records.revoked.iter().map(|told| (told.rule, told.at_ns)).collect();
    for Ran { call, requested_at_ns, .. } in &records.ran {
        let rule = by_gate.get(call.as_str());
        if let Some((rule, told_at)) = rule.and_then(|rule| Some((rule, told.get(rule)?)))
            && told_at < requested_at_ns
        {
            found.push(format!(
                "{call} was requested after a client knew that rule {rule} was revoked, which allowed it"
            ));
        }
    }
    found
}

fn exceeded_budgets(records: &Records) -> Vec<String> {
    let exceeded = records.log.iter().filter_map(|logged| match &logged.what {
        What::Budget { session, granted, claimed } if claimed > granted => {
            Some(format!("session {session} used {claimed} of a budget of {granted}"))
        }
        _ => None,
    });
    exceeded.collect()
}

/// The feed has no gaps, and each follower receives the end of each turn exactly once.
fn gaps(records: &Records) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(gap_in(&records.feed).map(|after| format!("the feed has a gap after entry {after}")));
    let all: BTreeSet<&Finished> = records.finished.iter().collect();
    for (number, told) in records.followers.iter().enumerate() {
        let mut seen = BTreeSet::new();
        for finished in told {
            if !seen.insert(finished) {
                found.push(format!("follower {number} was told of {finished:?} twice"));
            }
        }
        for missing in all.difference(&seen) {
            found.push(format!("follower {number} was never told of {missing:?}"));
        }
    }
    found
}

fn broken_chains(records: &Records) -> Vec<String> {
    let Audit { numbers, broken } = &records.audit;
    let gap = gap_in(numbers).map(|after| format!("the audit log has a gap after entry {after}"));
    let broken = broken.iter().enumerate();
    broken
        .filter_map(|(hub, why)| why.as_ref().map(|why| format!("audit.verify on hub {hub}: {why}")))
        .chain(gap)
        .collect()
}

/// The number before the first gap in numbers that start with 1.
fn gap_in(numbers: &[u64]) -> Option<u64> {
    let expected = 1..=numbers.len() as u64;
    let gap = numbers.iter().zip(expected).find(|(number, expected)| **number != *expected);
    gap.map(|(_, expected)| expected - 1)
}
