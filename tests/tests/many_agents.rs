//! Two hundred children at once, each with an approval. Eight clients answer in random order, sometimes the same approval. Every
//! turn ends, no approval is mixed up, and none is decided twice.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use plexus_e2e::{LIMIT, Setup, World, events, text};
use plexus_testkit::rpc::{Rpc, RpcError};
use serde_json::{Value, json};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::Instant;

const CHILDREN: usize = 200;
const CLIENTS: usize = 8;

/// The answer of one client to one approval.
#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Allow,
    Edit(String),
    Deny(String),
}

impl Answer {
    /// A random answer with a text that no other answer has.
    fn random(random: &mut Random, child: usize, client: usize) -> Self {
        match random.below(3) {
            0 => Self::Allow,
            1 => Self::Edit(format!("echo edited-by-{client} > made-{child}.txt")),
            _ => Self::Deny(format!("not for child {child}, says client {client}")),
        }
    }

    fn params(&self, approval: &str) -> Value {
        match self {
            Self::Allow => json!({"approval_id": approval, "approve": true}),
            Self::Edit(command) => {
                json!({"approval_id": approval, "approve": true, "updated_input": {"command": command}})
            }
            Self::Deny(why) => json!({"approval_id": approval, "approve": false, "message": why}),
        }
    }

    /// The command that must run, if any.
    fn command(&self, child: usize) -> Option<String> {
        match self {
            Self::Allow => Some(command(child)),
            Self::Edit(command) => Some(command.clone()),
            Self::Deny(_) => None,
        }
    }
}

/// One answer in a client's list. Clients with the same approval start together.
struct Task {
    child: usize,
    approval: String,
    answer: Answer,
    together: Option<Arc<Barrier>>,
}

/// The hub's result for one answer.
struct Said {
    child: usize,
    answer: Answer,
    result: Value,
}

/// A small random number generator with a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.below(last + 1));
        }
    }
}

fn command(child: usize) -> String {
    format!("echo of-{child} > made-{child}.txt")
}

#[tokio::test]
async fn two_hundred_children_are_answered_by_eight_clients() -> anyhow::Result<()> {
    let seed = match std::env::var("PLEXUS_TEST_SEED") {
        Ok(given) => given.parse()?,
        Err(_) => std::time::UNIX_EPOCH.elapsed()?.as_nanos() as u64,
    };
    println!("PLEXUS_TEST_SEED={seed}");
    let mut random = Random(seed);
    let world = Setup::scripted().world("crowd").await?.context("the scripted agent")?;

    let began = Instant::now();
    let sessions = create_all(&world).await?;
    let (cursor, asked) = all_asked(&world).await?;
    let all_asked_after = began.elapsed();
    check_asked(&sessions, &asked)?;
    let pending = world.call("loopback.pending", json!({})).await?;
    assert_eq!(pending["approvals"].as_array().map(Vec::len), Some(CHILDREN));
    assert!(!world.log.exists(), "something ran before it was allowed");

    let lists = deal(&mut random, &asked)?;
    let answering = Instant::now();
    let said = answer_all(&world, lists).await?;
    let answered_after = answering.elapsed();
    let finished = all_finished(&world, cursor).await?;
    let finished_after = answering.elapsed();
    let figures = Figures::of(world.hub.pid())?;

    let decided = winners(&said)?;
    assert_eq!(decided.len(), CHILDREN, "every approval was answered");
    let ran = what_ran(&world)?;
    for (child, session) in sessions.iter().enumerate() {
        check_child(&world, child, session, &decided[&child], &ran).await?;
        assert!(finished.contains(session), "child {child} finished");
    }
    let runs = decided.iter().filter(|(child, answer)| answer.command(**child).is_some()).count();
    assert_eq!(ran.len(), runs, "nothing ran but what was allowed");

    println!(
        "{CHILDREN} children asked after {all_asked_after:.1?}; {} answers by {CLIENTS} clients in {answered_after:.1?}, \
         all finished after {finished_after:.1?}; hub: {figures:?}",
        said.len(),
    );
    // One thread of a slow machine is fast enough, unless the hub reads every child for each answer.
    assert!(finished_after < LIMIT / 3, "the hub was slow: {finished_after:?}");
    Ok(())
}

/// The hub's use of memory and processor time.
#[derive(Debug)]
#[expect(dead_code, reason = "printed")]
struct Figures {
    rss_mib: u64,
    peak_rss_mib: u64,
    open_files: usize,
    threads: u64,
}

impl Figures {
    fn of(pid: u32) -> anyhow::Result<Self> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or_default()
        };
        Ok(Self {
            rss_mib: number("VmRSS:") / 1024,
            peak_rss_mib: number("VmHWM:") / 1024,
            open_files: std::fs::read_dir(format!("/proc/{pid}/fd"))?.count(),
            threads: number("Threads:"),
        })
    }
}

fn clients(world: &World) -> anyhow::Result<Vec<Arc<Rpc>>> {
    let token = world.hub.token()?;
    Ok((0..CLIENTS).map(|_| Arc::new(Rpc::new(world.hub.url(), &token))).collect())
}

/// The ids of the children, by number.
async fn create_all(world: &World) -> anyhow::Result<Vec<String>> {
    let mut tasks = JoinSet::new();
    for (first, client) in clients(world)?.into_iter().enumerate() {
        let work = world.work.clone();
        tasks.spawn(async move {
            let mut made = Vec::new();
            for child in (first..CHILDREN).step_by(CLIENTS) {
                let steps = json!([
                    {"tool": "Bash", "input": {"command": command(child)}},
                    {"say": format!("done-{child}")},
                ]);
                let params = json!({
                    "name": format!("child-{child}"), "working_dir": work, "prompt": steps.to_string(),
                });
                made.push((child, text(&client.call("claudecode.create", params).await?["id"])));
            }
            Ok::<_, RpcError>(made)
        });
    }
    let mut sessions = vec![String::new(); CHILDREN];
    while let Some(made) = tasks.join_next().await {
        for (child, id) in made?? {
            sessions[child] = id;
        }
    }
    Ok(sessions)
}

/// Waits until every child has an open approval. Returns the cursor after that, and the approvals by session.
async fn all_asked(world: &World) -> anyhow::Result<(Value, HashMap<String, Value>)> {
    let deadline = Instant::now() + LIMIT;
    let mut asked = HashMap::new();
    let mut cursor = Value::Null;
    while asked.len() < CHILDREN {
        ensure!(
            Instant::now() < deadline,
            "only {} approvals are open; hub: {}",
            asked.len(),
            world.hub.stderr()
        );
        let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor, "timeout_ms": 1000}) };
        let mut waited = world.call("loopback.wait", params).await?;
        cursor = waited["cursor"].take();
        assert_eq!(waited["finished"], json!([]));
        for approval in waited["approvals"].as_array().into_iter().flatten() {
            let twice = asked.insert(text(&approval["session_id"]), approval.clone());
            ensure!(twice.is_none(), "reported twice: {approval}");
        }
    }
    Ok((cursor, asked))
}

/// Checks that every approval belongs to its session and contains that session's command.
fn check_asked(sessions: &[String], asked: &HashMap<String, Value>) -> anyhow::Result<()> {
    for (child, session) in sessions.iter().enumerate() {
        let approval = asked.get(session).with_context(|| format!("child {child} has not asked"))?;
        assert_eq!(approval["session_name"], format!("child-{child}"));
        assert_eq!(approval["input"]["command"], command(child));
        assert_eq!(approval["status"], "pending");
    }
    let ids: HashSet<String> = asked.values().map(|approval| text(&approval["id"])).collect();
    ensure!(ids.len() == sessions.len(), "approvals share an id");
    Ok(())
}

/// Deals the approvals to the clients in random order. Every fourth goes to several clients, who answer differently and start
/// together. All lists have the same order, so that no two clients wait for each other.
fn deal(random: &mut Random, asked: &HashMap<String, Value>) -> anyhow::Result<Vec<Vec<Task>>> {
    let mut lists: Vec<Vec<Task>> = (0..CLIENTS).map(|_| Vec::new()).collect();
    let mut approvals: Vec<&Value> = asked.values().collect();
    // The order of a hash map does not depend on the seed.
    approvals.sort_by_key(|approval| text(&approval["session_name"]));
    random.shuffle(&mut approvals);
    for approval in approvals {
        let child = text(&approval["session_name"]).trim_start_matches("child-").parse()?;
        let racers = if random.below(4) == 0 { 2 + random.below(CLIENTS - 1) } else { 1 };
        let together = (racers > 1).then(|| Arc::new(Barrier::new(racers)));
        let mut chosen: Vec<usize> = (0..CLIENTS).collect();
        random.shuffle(&mut chosen);
        for &client in &chosen[..racers] {
            let answer = Answer::random(random, child, client);
            let (approval, together) = (text(&approval["id"]), together.clone());
            lists[client].push(Task { child, approval, answer, together });
        }
    }
    Ok(lists)
}

async fn answer_all(world: &World, lists: Vec<Vec<Task>>) -> anyhow::Result<Vec<Said>> {
    let mut tasks = JoinSet::new();
    for (client, list) in clients(world)?.into_iter().zip(lists) {
        tasks.spawn(async move {
            let mut said = Vec::new();
            for Task { child, approval, answer, together } in list {
                if let Some(together) = together {
                    together.wait().await;
                }
                let result = client.call("loopback.respond", answer.params(&approval)).await?;
                assert_eq!(result["approval_id"], approval);
                said.push(Said { child, answer, result });
            }
            Ok::<_, RpcError>(said)
        });
    }
    let mut all = Vec::new();
    while let Some(said) = tasks.join_next().await {
        all.extend(said??);
    }
    Ok(all)
}

/// Waits until every child has finished. Returns their ids.
async fn all_finished(world: &World, mut cursor: Value) -> anyhow::Result<HashSet<String>> {
    let deadline = Instant::now() + LIMIT;
    let mut finished = HashSet::new();
    while finished.len() < CHILDREN {
        ensure!(Instant::now() < deadline, "only {} finished; hub: {}", finished.len(), world.hub.stderr());
        let mut waited = world.call("loopback.wait", json!({"cursor": cursor, "timeout_ms": 1000})).await?;
        cursor = waited["cursor"].take();
        for turn in waited["finished"].as_array().into_iter().flatten() {
            assert_eq!((&turn["status"], &turn["turn"]), (&json!("complete"), &json!(1)), "{turn}");
            let number = text(&turn["session_name"]).replace("child-", "done-");
            assert_eq!(turn["result"], number, "the child's own result");
            ensure!(finished.insert(text(&turn["session_id"])), "reported twice: {turn}");
        }
    }
    Ok(finished)
}

/// The committed answer by child. Exactly one answer was `ok`, and all others got that one's outcome.
fn winners(said: &[Said]) -> anyhow::Result<HashMap<usize, Answer>> {
    let mut decided = HashMap::new();
    for Said { child, answer, .. } in said.iter().filter(|said| said.result["type"] == "ok") {
        let twice = decided.insert(*child, answer.clone());
        ensure!(twice.is_none(), "the approval of child {child} was decided twice");
    }
    for Said { child, result, .. } in said.iter().filter(|said| said.result["type"] != "ok") {
        assert_eq!(result["type"], "already_resolved", "{result}");
        let decision =
            match decided.get(child).with_context(|| format!("no answer was committed for child {child}"))? {
                Answer::Allow => json!(["allowed", true, null, null]),
                Answer::Edit(command) => json!(["allowed", true, null, {"command": command}]),
                Answer::Deny(why) => json!(["denied", false, why, null]),
            };
        let told = &result["decision"];
        let told = json!([result["status"], told["approve"], told["message"], told["updated_input"]]);
        assert_eq!(told, decision, "a late answer gets the committed decision");
    }
    Ok(decided)
}

/// The commands that ran, by tool_use_id.
fn what_ran(world: &World) -> anyhow::Result<HashMap<String, String>> {
    let mut ran = HashMap::new();
    for line in std::fs::read_to_string(&world.log)?.lines() {
        let line: Value = serde_json::from_str(line)?;
        let twice = ran.insert(text(&line["tool_use_id"]), text(&line["input"]["command"]));
        ensure!(twice.is_none(), "ran twice: {line}");
    }
    Ok(ran)
}

/// Checks that the child's actions, its tool result and the audit log match the decision.
async fn check_child(
    world: &World,
    child: usize,
    session: &str,
    decided: &Answer,
    ran: &HashMap<String, String>,
) -> anyhow::Result<()> {
    let poll = world.call("claudecode.poll", json!({"session_id": session, "from_seq": 0})).await?;
    assert_eq!(poll["status"], "complete");
    assert_eq!(poll["pending_approvals"], json!([]));
    let (asks, answers) = (events(&poll, "approval_requested"), events(&poll, "approval_resolved"));
    assert_eq!((asks.len(), answers.len()), (1, 1), "one approval, one answer: {poll:#}");
    let tool_use = &events(&poll, "tool_use")[0];
    assert_eq!(tool_use["input"]["command"], command(child));
    assert_eq!(ran.get(&text(&tool_use["tool_use_id"])), decided.command(child).as_ref(), "child {child}");
    let result = &events(&poll, "tool_result")[0];
    let made = std::fs::read_to_string(world.file(&format!("made-{child}.txt"))).ok();
    match decided {
        Answer::Deny(why) => {
            assert_eq!((&answers[0]["status"], &answers[0]["message"]), (&json!("denied"), &json!(why)));
            assert_eq!(result["is_error"], true);
            assert!(result["output"].to_string().contains(why), "the child receives the reason: {result}");
            assert_eq!(made, None);
        }
        Answer::Allow | Answer::Edit(_) => {
            assert_eq!(answers[0]["status"], "allowed");
            assert_eq!(result["is_error"], false);
            let ran = decided.command(child).unwrap_or_default();
            let word = ran.split_whitespace().nth(1).unwrap_or_default();
            assert_eq!(made.as_deref(), Some(format!("{word}\n").as_str()));
        }
    }
    Ok(())
}
