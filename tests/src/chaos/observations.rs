//! The observations of a chaos run, and the final comparison: every turn is complete, every acknowledged decision stands, and every call ran
//! once if it was allowed and never if it was not.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};

use super::forks::{self, Fork};
use super::{Disk, Options, Run, Victims};

/// Everything that the clients of a chaos run observed.
#[derive(Debug, Default)]
pub(super) struct Observations {
    observed: Mutex<Observed>,
}

#[derive(Debug, Default)]
struct Observed {
    faults: Vec<String>,
    /// The status that each acknowledged answer gave its approval.
    decided: HashMap<String, &'static str>,
    /// The budget approvals that were allowed.
    granted: Vec<String>,
    /// The status that a second decider received, by approval.
    reported: HashMap<String, String>,
    /// The call of each approval.
    asked: HashMap<String, String>,
    turns: Vec<Turn>,
    /// The present sessions of the agents.
    sessions: Vec<String>,
    forks: Vec<Fork>,
}

/// A turn, as its reader received it.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) session: String,
    pub(super) turn: u64,
    pub(super) status: String,
    pub(super) events: Vec<Value>,
}

/// The result of a chaos run.
#[derive(Debug)]
pub struct Report {
    /// Violations of the promises.
    pub faults: Vec<String>,
    seed: u64,
    kills: usize,
    turns: usize,
    forks: usize,
    events: usize,
    approvals: usize,
    acknowledged: usize,
    ran: usize,
    absences: Vec<Duration>,
    spans: usize,
    refused_calls: usize,
    refused_starts: usize,
    /// Additional lines.
    notes: Vec<String>,
    kept: Vec<PathBuf>,
}

impl Report {
    pub(super) fn with_the_rest(self, mut absences: Vec<Duration>, kept: Option<PathBuf>) -> Self {
        absences.sort();
        Self { kills: absences.len(), absences, kept: kept.into_iter().collect(), ..self }
    }

    /// The report of a run with several hubs.
    pub(super) fn of_fleet(self, kills: usize, notes: Vec<String>, kept: Vec<PathBuf>) -> Self {
        Self { kills, notes, kept, ..self }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let longest = self.absences.last().copied().unwrap_or_default();
        let middle = self.absences.get(self.absences.len() / 2).copied().unwrap_or_default();
        let what = if self.notes.is_empty() { "kills" } else { "faults of hubs, links and the database" };
        writeln!(f, "seed {}: {} {what}", self.seed, self.kills)?;
        self.notes.iter().try_for_each(|note| writeln!(f, "  {note}"))?;
        writeln!(f, "  {} turns, {} events, each received once and in order", self.turns, self.events)?;
        writeln!(f, "  {} forks, each created once and with its complete history", self.forks)?;
        writeln!(
            f,
            "  {} approvals, {} answers acknowledged, {} calls run",
            self.approvals, self.acknowledged, self.ran
        )?;
        if !self.absences.is_empty() {
            writeln!(f, "  the hub restarts in {middle:.0?} (median), at most {longest:.0?}")?;
        }
        if self.spans > 0 {
            writeln!(
                f,
                "  the disk failed {} times; {} calls and {} starts failed because of it",
                self.spans, self.refused_calls, self.refused_starts
            )?;
        }
        writeln!(f, "  {} violations", self.faults.len())?;
        self.kept.iter().try_for_each(|kept| writeln!(f, "  the files are in {}", kept.display()))?;
        self.faults.iter().try_for_each(|fault| writeln!(f, "  - {fault}"))
    }
}

impl Observations {
    fn observed(&self) -> MutexGuard<'_, Observed> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn fault(&self, fault: String) {
        self.observed().faults.push(fault);
    }

    pub(super) fn joined(&self, session: &str) {
        self.observed().sessions.push(session.to_owned());
    }

    pub(super) fn forked(&self, fork: Fork) {
        self.observed().forks.push(fork);
    }

    /// Records that an agent continues in another session.
    pub(super) fn moved(&self, from: &str, to: &str) {
        let mut observed = self.observed();
        observed.sessions.retain(|session| session != from);
        observed.sessions.push(to.to_owned());
    }

    pub(super) fn sessions(&self) -> Vec<String> {
        self.observed().sessions.clone()
    }

    /// The number of turns that were read to their end.
    pub(super) fn turns(&self) -> usize {
        self.observed().turns.len()
    }

    pub(super) fn asked(&self, approval: &str, call: &str) {
        self.observed().asked.insert(approval.to_owned(), call.to_owned());
    }

    /// Records an acknowledged answer, which must stand.
    pub(super) fn decided(&self, approval: &str, status: &'static str) {
        let mut observed = self.observed();
        if observed.decided.insert(approval.to_owned(), status).is_some() {
            observed.faults.push(format!("{approval} was decided twice"));
        }
    }

    /// Records an acknowledged answer to a budget approval.
    pub(super) fn granted(&self, approval: &str) {
        self.observed().granted.push(approval.to_owned());
    }

    /// The acknowledged answers: approvals and their statuses.
    pub(super) fn acknowledged(&self) -> Vec<(String, &'static str)> {
        let observed = self.observed();
        let granted = observed.granted.iter().map(|approval| (approval.clone(), "allowed"));
        observed.decided.iter().map(|(approval, status)| (approval.clone(), *status)).chain(granted).collect()
    }

    /// Records the status that a second decider received.
    pub(super) fn already_resolved(&self, approval: &str, status: &str) {
        let mut observed = self.observed();
        if let Some(before) = observed.reported.insert(approval.to_owned(), status.to_owned())
            && before != status
        {
            observed.faults.push(format!("{approval} was {before} and then {status}"));
        }
    }

    /// Records a turn that was read to its end, and checks its texts.
    pub(super) fn turn(&self, victims: Victims, name: &str, turn: Turn, expected: &[String]) {
        let Turn { status, events, .. } = &turn;
        let mut faults = Vec::new();
        let last = events.last().unwrap_or(&Value::Null);
        // `no_permit_tool`: its relay was killed before the agent was connected to it.
        let killed = ["killed", "orphaned", "exited", "no_permit_tool"];
        let killed = killed.contains(&last["reason"].as_str().unwrap_or_default());
        if status != "complete" && !(victims == Victims::Children && killed) {
            faults.push(format!("{name} ended as {status}: {last}"));
        }
        let said: Vec<&str> = of(events, "content").filter_map(|event| event["text"].as_str()).collect();
        if status == "complete" && said != *expected {
            faults.push(format!("{name} said {said:?} instead of {expected:?}"));
        }
        for (once, id) in [
            ("tool_use", "tool_use_id"),
            ("tool_result", "tool_use_id"),
            ("approval_requested", "tool_use_id"),
            ("approval_resolved", "approval_id"),
        ] {
            let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
            for event in of(events, once) {
                *seen.entry(event[id].as_str().unwrap_or_default()).or_default() += 1;
            }
            faults.extend(
                seen.iter()
                    .filter(|(_, n)| **n > 1)
                    .map(|(id, n)| format!("{name}: {once} of {id} came {n} times")),
            );
        }
        let count = |kind| of(events, kind).count();
        if status == "complete" && count("tool_use") != count("tool_result") {
            faults.push(format!("{name}: {} calls, {} results", count("tool_use"), count("tool_result")));
        }
        let mut observed = self.observed();
        observed.faults.append(&mut faults);
        observed.turns.push(turn);
    }

    /// Compares the observations with the store and with the calls that the agents ran.
    pub(super) async fn close(
        &self,
        run: &Run,
        options: &Options,
        logs: &[PathBuf],
        work: &Path,
    ) -> anyhow::Result<Report> {
        let rpc = Rpc::new(&run.hubs[0].url, &run.hubs[0].token);
        let Observed { mut faults, decided, reported, asked, turns, sessions, forks, .. } =
            std::mem::take(&mut *self.observed());
        let mut ran: HashMap<String, usize> = HashMap::new();
        for line in logs.iter().map(|log| lines(log)).collect::<anyhow::Result<Vec<_>>>()?.concat() {
            *ran.entry(crate::text(&line["tool_use_id"])).or_default() += 1;
        }
        for line in std::fs::read_to_string(work.join("ran")).unwrap_or_default().lines() {
            *ran.entry(line.to_owned()).or_default() += 1;
        }
        faults.extend(ran.iter().filter(|(_, n)| **n > 1).map(|(call, n)| format!("{call} ran {n} times")));

        let mut resolved: HashMap<String, String> = HashMap::new();
        let (mut events, mut known, mut allowed) = (0, HashMap::new(), HashSet::new());
        for turn in &turns {
            events += turn.events.len();
            again(&rpc, turn, &mut faults).await?;
            for event in of(&turn.events, "approval_resolved") {
                resolved.insert(crate::text(&event["approval_id"]), crate::text(&event["status"]));
            }
            // A real call is identified by its command, a scripted one by its id.
            for call in of(&turn.events, "tool_use") {
                let command = call["input"]["command"].as_str().and_then(|command| command.split(' ').nth(1));
                let id = crate::text(&call["tool_use_id"]);
                known.insert(id.clone(), command.map_or(id, str::to_owned));
            }
            for event in of(&turn.events, "approval_requested") {
                let id = crate::text(&event["approval_id"]);
                let status = resolved.get(&id).cloned().unwrap_or_default();
                let call = known.get(&crate::text(&event["tool_use_id"])).cloned().unwrap_or_default();
                let times = ran.get(&call).copied().unwrap_or(0);
                match (status.as_str(), times) {
                    ("allowed", 1) => {
                        allowed.insert(call);
                    }
                    ("denied", 0) => {}
                    // The agent, its relay or the command was killed before the call ran.
                    ("allowed" | "withdrawn", 0) if run.victims == Victims::Children => {}
                    _ => faults.push(format!("{call} was {status:?} and ran {times} times")),
                }
            }
        }
        allowed.extend(allowed_by_rules(&rpc).await?);
        let unasked = ran.keys().filter(|call| !allowed.contains(*call));
        faults.extend(unasked.map(|call| format!("{call} ran, and nobody allowed it")));
        for (approval, answered) in &decided {
            let status = resolved.get(approval).map_or("nowhere to be found", String::as_str);
            if status != *answered {
                faults
                    .push(format!("{approval} of {:?} was {answered} and is {status}", asked.get(approval)));
            }
        }
        for (approval, status) in &reported {
            if resolved.get(approval).is_some_and(|now| now != status) {
                faults
                    .push(format!("{approval} was reported as {status} and is {:?}", resolved.get(approval)));
            }
        }
        forks::compare(&rpc, &forks, &sessions, &turns, &mut faults).await?;
        let open = rpc.call("loopback.pending", json!({})).await?;
        if open["approvals"] != json!([]) {
            faults.push(format!("questions are left open: {open}"));
        }
        let refused_calls = run.refused_calls.load(Ordering::SeqCst);
        if options.disk == Disk::Failing && refused_calls == 0 {
            faults.push("no failure of the disk was noticed".to_owned());
        }
        Ok(Report {
            faults,
            seed: options.seed,
            kills: 0,
            turns: turns.len(),
            forks: forks.len(),
            events,
            approvals: resolved.len(),
            acknowledged: decided.len(),
            ran: ran.len(),
            absences: Vec::new(),
            spans: run.spans.load(Ordering::SeqCst),
            refused_calls,
            refused_starts: run.refused_starts.load(Ordering::SeqCst),
            notes: Vec::new(),
            kept: Vec::new(),
        })
    }
}

/// The lines of a log of agents.
pub(super) fn lines(log: &Path) -> anyhow::Result<Vec<Value>> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines =
        text.lines().map(|line| serde_json::from_str(line).context("a whole line in the agents' log"));
    lines.collect()
}

/// The calls that rules allowed at the gate, from the audit log.
async fn allowed_by_rules(rpc: &Rpc) -> anyhow::Result<Vec<String>> {
    let (mut calls, mut after) = (Vec::new(), json!(0));
    while !after.is_null() {
        let mut page = rpc.call("audit.list", json!({"kind": "gate", "after": after, "limit": 1000})).await?;
        let entries = page["rows"].as_array().into_iter().flatten().map(|row| &row["entry"]);
        let allowed = entries.filter(|entry| entry["status"] == "allow");
        calls.extend(allowed.map(|entry| crate::text(&entry["tool_use_id"])));
        after = page["next"].take();
    }
    Ok(calls)
}

pub(super) fn of<'a>(events: &'a [Value], kind: &'static str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["type"] == kind)
}

/// Checks that the events that were read during the kills equal the stored events.
async fn again(rpc: &Rpc, turn: &Turn, faults: &mut Vec<String>) -> anyhow::Result<()> {
    let whole = json!({"session_id": turn.session, "turn": turn.turn, "from_seq": 0, "limit": 10_000});
    let poll = rpc.call("claudecode.poll", whole).await?;
    let now: Vec<&Value> =
        poll["events"].as_array().into_iter().flatten().map(|told| &told["event"]).collect();
    if now != turn.events.iter().collect::<Vec<_>>() {
        let Turn { session, turn, events, .. } = turn;
        faults.push(format!(
            "{session} turn {turn}: {} events were read, {} are there",
            events.len(),
            now.len()
        ));
    }
    Ok(())
}
