//! Event streams: replayed from any position and then live, with disconnects and slow readers, for one listener or a hundred. Each
//! event arrives once and in order, and only callers with the right see a stream.

use anyhow::Context as _;
use plexus_e2e::{Channel, DoorKind, LIMIT, Setup, World, events, script, text};
use plexus_testkit::rpc::{CallError, Listener, SseEvent};
use serde_json::{Value, json};
use tokio::time::Instant;

const FLOOD: usize = 10_000;

async fn scripted() -> anyhow::Result<World> {
    Setup::scripted().world("streams").await?.context("the scripted agent is always available")
}

fn bash(command: &str) -> Value {
    json!({"tool": "Bash", "input": {"command": command}})
}

/// An event of a session as it was received.
#[derive(Debug, Clone, PartialEq)]
struct Received {
    id: String,
    event: Value,
}

impl Received {
    fn of(told: SseEvent) -> anyhow::Result<Self> {
        anyhow::ensure!(told.kind.is_none(), "{told:?}");
        let id = told.id.context("every event has an id")?;
        let data: Value = serde_json::from_str(&told.data)?;
        assert_eq!(id, format!("{}-{}", data["turn"], data["seq"]));
        assert!(data["at"].is_u64(), "{data}");
        Ok(Self { id, event: data["event"].clone() })
    }

    fn kind(&self) -> &str {
        self.event["type"].as_str().unwrap_or_default()
    }

    fn is_end(&self) -> bool {
        matches!(self.kind(), "complete" | "error")
    }
}

async fn listen(world: &World, session: &str, query: &str, last: Option<&str>) -> anyhow::Result<Listener> {
    let path = format!("/sessions/{session}/events{query}");
    Ok(Listener::open(world.hub.url(), &path, &world.hub.token()?, last).await?)
}

async fn next(listener: &mut Listener) -> anyhow::Result<Received> {
    Received::of(listener.next().await?.context("the stream is open")?)
}

/// Reads to the end of a turn.
async fn rest_of_turn(listener: &mut Listener) -> anyhow::Result<Vec<Received>> {
    let mut heard = Vec::new();
    while !heard.last().is_some_and(Received::is_end) {
        heard.push(next(listener).await?);
    }
    Ok(heard)
}

/// The events of a poll, as a listener must receive them.
fn polled(poll: &Value) -> Vec<Received> {
    let all = poll["events"].as_array().cloned().unwrap_or_default();
    let heard = |numbered: Value| Received {
        id: format!("{}-{}", poll["turn"], numbered["seq"]),
        event: numbered["event"].clone(),
    };
    all.into_iter().map(heard).collect()
}

#[tokio::test]
async fn a_session_is_replayed_from_any_position_and_followed_across_turns() -> anyhow::Result<()> {
    let world = scripted().await?;
    let steps = json!([{"say": "one"}, bash("touch it.txt"), {"say": "two"}]);
    let session = world.create("followed", json!({"prompt": script(&steps)})).await?;
    let (_, approval) = world.asked(&session).await?;

    let mut live = listen(&world, &session, "", None).await?;
    let mut first = Vec::new();
    while first.last().is_none_or(|heard: &Received| heard.kind() != "approval_requested") {
        first.push(next(&mut live).await?);
    }
    assert_eq!(first.last().map(|asked| asked.event["approval_id"].clone()), Some(approval["id"].clone()));
    world.allow(&approval).await?;
    first.extend(rest_of_turn(&mut live).await?);
    let poll = world.ended(&session).await?;
    assert_eq!(first, polled(&poll));
    let kinds: Vec<&str> = first.iter().map(Received::kind).filter(|kind| *kind != "system").collect();
    let wanted = [
        "start",
        "content",
        "tool_use",
        "approval_requested",
        "approval_resolved",
        "tool_result",
        "content",
        "complete",
    ];
    assert_eq!(kinds, wanted, "approvals and decisions are in order");

    world.chat(&session, &script(&json!([{"say": "three"}]))).await?;
    let second = rest_of_turn(&mut live).await?;
    assert_eq!(second, polled(&world.ended(&session).await?));
    assert_eq!((second[0].id.as_str(), second[0].kind()), ("2-0", "start"));

    let mut latest = listen(&world, &session, "", None).await?;
    assert_eq!(rest_of_turn(&mut latest).await?, second, "the latest turn unless said otherwise");
    let mut from = listen(&world, &session, "?turn=1&from_seq=3", None).await?;
    assert_eq!(rest_of_turn(&mut from).await?, first[3..]);
    assert_eq!(rest_of_turn(&mut from).await?, second);
    let mut from = listen(&world, &session, "?turn=1", None).await?;
    assert_eq!(rest_of_turn(&mut from).await?, first);
    for (seen, heard) in first.iter().enumerate() {
        let mut after = listen(&world, &session, "?turn=1", Some(&heard.id)).await?;
        let next = next(&mut after).await?;
        assert_eq!(Some(&next), first.get(seen + 1).or(second.first()), "after {}", heard.id);
    }
    Ok(())
}

#[tokio::test]
async fn an_invalid_position_is_refused() -> anyhow::Result<()> {
    let world = scripted().await?;
    let session = world.create("here", json!({})).await?;
    let token = world.hub.token()?;
    for (path, last) in [
        (format!("/sessions/{session}/events?from_seq=1"), None),
        (format!("/sessions/{session}/events?turn=x"), None),
        (format!("/sessions/{session}/events?after=1"), None),
        (format!("/sessions/{session}/events"), Some("7")),
        ("/sessions/nobody/events".to_owned(), None),
        ("/approvals/events?after=-1".to_owned(), None),
        ("/approvals/events".to_owned(), Some("1-1")),
    ] {
        let refused = Listener::open(world.hub.url(), &path, &token, last).await.err();
        assert_eq!(status(refused), "http_400", "{path} {last:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_listener_before_the_first_turn_receives_it() -> anyhow::Result<()> {
    let world = scripted().await?;
    let session = world.create("early", json!({})).await?;
    let mut early = listen(&world, &session, "", None).await?;
    world.chat(&session, &script(&json!([{"say": "hello"}]))).await?;
    let heard = rest_of_turn(&mut early).await?;
    assert_eq!(heard, polled(&world.ended(&session).await?));
    assert_eq!(heard[0].id, "1-0");
    Ok(())
}

/// Waits for the end of a turn without reading all of it. Returns its number of events.
async fn stored(world: &World, session: &str) -> anyhow::Result<usize> {
    let end = json!({"session_id": session, "from_seq": 10 * FLOOD, "wait_ms": 1000});
    let ended = async {
        loop {
            let poll = world.call("claudecode.poll", end.clone()).await?;
            if poll["status"] != "running" {
                assert_eq!(poll["status"], "complete", "{poll:#}");
                return Ok(usize::try_from(poll["total_events"].as_u64().context("a count")?)?);
            }
        }
    };
    tokio::time::timeout(LIMIT, ended).await.context("the turn does not end")?
}

/// The number of an event, without parsing all of it.
fn seq(told: &SseEvent) -> anyhow::Result<usize> {
    let (_, seq) = told.id.as_deref().and_then(|id| id.split_once('-')).context("an id")?;
    Ok(seq.parse()?)
}

#[tokio::test]
async fn a_slow_listener_that_reconnects_gets_each_event_once_and_delays_nobody() -> anyhow::Result<()> {
    let world = scripted().await?;
    let session = world.create("flooded", json!({})).await?;
    // Far more than all buffers between hub and client can hold.
    let steps = vec![json!({"flood": {"events": FLOOD / 50, "bytes": 2000}}); 50];
    let mut listener = listen(&world, &session, "", None).await?;
    world.chat(&session, &script(&json!(steps))).await?;
    let mut heard = Vec::new();
    for _ in 0..5 {
        heard.push(seq(&listener.next().await?.context("the stream is open")?)?);
    }
    // The listener does not read now. The child still finishes.
    let total = stored(&world, &session).await?;
    assert!(total > FLOOD);
    for round in 1.. {
        for _ in 0..round * 100 {
            if heard.len() < total {
                heard.push(seq(&listener.next().await?.context("the stream is open")?)?);
            }
        }
        if heard.len() == total {
            break;
        }
        let last = format!("1-{}", heard.last().context("no event was received")?);
        drop(listener);
        listener = listen(&world, &session, "", Some(&last)).await?;
    }
    assert!(heard.iter().copied().eq(0..total));
    world.chat(&session, &script(&json!([{"say": "on"}]))).await?;
    assert_eq!(next(&mut listener).await?.id, "2-0");
    Ok(())
}

#[tokio::test]
async fn a_listener_that_reconnects_during_a_flood_gets_each_event_once() -> anyhow::Result<()> {
    let world = scripted().await?;
    let session = world.create("cut", json!({})).await?;
    world.chat(&session, &script(&json!([{"flood": {"events": FLOOD, "bytes": 20}}]))).await?;
    let (mut heard, mut cuts): (Vec<usize>, usize) = (Vec::new(), 0);
    'turn: loop {
        let last = heard.last().map(|seq| format!("1-{seq}"));
        let mut listener = listen(&world, &session, "", last.as_deref()).await?;
        for _ in 0..37 + 13 * cuts {
            let told = listener.next().await?.context("the stream is open")?;
            heard.push(seq(&told)?);
            if told.data.contains(r#""type":"complete""#) {
                break 'turn;
            }
        }
        cuts += 1;
    }
    assert!(
        heard.len() > FLOOD && heard.iter().copied().eq(0..heard.len()),
        "{} events, {cuts} cuts",
        heard.len()
    );
    Ok(())
}

/// The duration of the child's turn by its own clock, in milliseconds.
fn took(world: &World, session: &str) -> anyhow::Result<u64> {
    let journal = std::fs::read_to_string(world.run_dir(session, 1).join("journal.jsonl"))?;
    let result = journal.lines().rev().find(|line| line.contains("duration_ms")).context("a result")?;
    let result = &result[result.find('{').context("an object")?..];
    serde_json::from_str::<Value>(result)?["duration_ms"].as_u64().context("a duration")
}

async fn count_turn(mut listener: Listener) -> anyhow::Result<usize> {
    let mut wanted = 0;
    loop {
        let told = listener.next().await?.context("the stream is open")?;
        assert_eq!(seq(&told)?, wanted);
        wanted += 1;
        if told.data.contains(r#""type":"complete""#) {
            return Ok(wanted);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_listeners_get_every_event_and_do_not_delay_the_child() -> anyhow::Result<()> {
    a_hundred_listeners(FLOOD / 10).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow: a million events are read, one to two minutes"]
async fn a_hundred_listeners_get_ten_thousand_events() -> anyhow::Result<()> {
    a_hundred_listeners(FLOOD).await
}

#[expect(clippy::print_stdout, reason = "the figures are part of what these tests show")]
async fn a_hundred_listeners(events: usize) -> anyhow::Result<()> {
    let world = scripted().await?;
    let flood = script(&json!([{"flood": {"events": events, "bytes": 100}}]));
    let mut times = Vec::new();
    for listeners in [0, 100] {
        let session = world.create(&format!("crowd-{listeners}"), json!({})).await?;
        let mut crowd = Vec::new();
        for _ in 0..listeners {
            crowd.push(tokio::spawn(count_turn(listen(&world, &session, "", None).await?)));
        }
        let begun = Instant::now();
        world.chat(&session, &flood).await?;
        let total = stored(&world, &session).await?;
        let stored = begun.elapsed();
        for listener in crowd {
            assert_eq!(listener.await??, total);
        }
        let child = took(&world, &session)?;
        println!(
            "{events} events, {listeners} listeners: child {child} ms, stored in {stored:?}, heard in {:?}",
            begun.elapsed()
        );
        times.push(child.max(1));
    }
    println!(
        "ratio of the child's time with 100 listeners to none: {:.2}",
        times[1] as f64 / times[0] as f64
    );
    // A child that waited for its listeners would take as long as they do.
    assert!(times[1] < times[0] * 20, "{times:?}");
    Ok(())
}

/// The deltas of a model's answer reach connected listeners and are not stored.
async fn deltas(version: &'static str) -> anyhow::Result<()> {
    use plexus_testkit::model::Step;
    let setup = Setup::cli(version, Channel::Control, DoorKind::Rpc);
    let Some(world) = setup.world("deltas").await? else { return Ok(()) };
    world.model.script("IN-PIECES", vec![Step::text("A text that comes in three pieces.")]);
    for (name, wanted) in [("pieces", true), ("whole", false)] {
        let session = world.create(name, json!({"deltas": wanted})).await?;
        let mut listener = listen(&world, &session, "", None).await?;
        world.chat(&session, "IN-PIECES").await?;
        let (mut pieces, mut heard) = (Vec::new(), Vec::new());
        while !heard.last().is_some_and(Received::is_end) {
            let told = listener.next().await?.context("the stream is open")?;
            if told.kind.as_deref() == Some("delta") {
                assert_eq!(told.id, None, "a delta cannot be resumed from");
                let delta: Value = serde_json::from_str(&told.data)?;
                pieces.extend(delta["event"]["delta"]["text"].as_str().map(str::to_owned));
            } else {
                let told = Received::of(told)?;
                assert!(told.kind() != "content" || !wanted || pieces.len() == 3, "the pieces come first");
                heard.push(told);
            }
        }
        let poll = world.ended(&session).await?;
        assert_eq!(heard, polled(&poll), "deltas are not stored");
        assert_eq!(text(&events(&poll, "content")[0]["text"]), "A text that comes in three pieces.");
        if wanted {
            assert_eq!(pieces.len(), 3);
            assert_eq!(pieces.concat(), "A text that comes in three pieces.");
        } else {
            assert!(pieces.is_empty());
        }
        assert!(!poll.to_string().contains("stream_event"), "{poll:#}");
    }
    Ok(())
}

#[tokio::test]
async fn deltas_reach_listeners_and_are_not_stored_cli_197() -> anyhow::Result<()> {
    deltas("2.1.197").await
}

#[tokio::test]
async fn deltas_reach_listeners_and_are_not_stored_cli_325() -> anyhow::Result<()> {
    deltas("2.1.325").await
}

async fn approvals(
    world: &World,
    token: &str,
    query: &str,
    last: Option<&str>,
) -> Result<Listener, CallError> {
    Listener::open(world.hub.url(), &format!("/approvals/events{query}"), token, last).await
}

async fn next_approval(listener: &mut Listener) -> anyhow::Result<(String, Value)> {
    let told = listener.next().await?.context("the stream is open")?;
    Ok((told.id.context("an id")?, serde_json::from_str(&told.data)?))
}

#[tokio::test]
async fn approvals_are_streamed_live_and_replayed_from_any_position() -> anyhow::Result<()> {
    let world = scripted().await?;
    let token = world.hub.token()?;
    let mut live = approvals(&world, &token, "", None).await?;
    let session = world
        .create(
            "asks",
            json!({"prompt": script(&json!([bash("touch a.txt"), bash("touch b.txt"), {"say": "done"}]))}),
        )
        .await?;
    let (mut ids, mut told) = (Vec::new(), Vec::new());
    for answer in [true, false] {
        let (id, asked) = next_approval(&mut live).await?;
        let approval = asked["approval"].clone();
        assert_eq!((&asked["type"], &approval["status"]), (&json!("asked"), &json!("pending")), "{asked:#}");
        assert_eq!(approval["session_id"], session);
        ids.push(id);
        told.push((text(&asked["type"]), approval["id"].clone()));
        world.respond(&approval, json!({"approve": answer})).await?;
        let (id, resolved) = next_approval(&mut live).await?;
        assert_eq!(resolved["type"], "resolved", "{resolved:#}");
        assert_eq!(resolved["approval"]["id"], approval["id"]);
        assert_eq!(resolved["approval"]["status"], if answer { "allowed" } else { "denied" });
        ids.push(id);
        told.push((text(&resolved["type"]), approval["id"].clone()));
    }
    world.ended(&session).await?;
    let numbers: Vec<u64> = ids.iter().map(|id| id.parse()).collect::<Result<_, _>>()?;
    assert!(numbers.is_sorted_by(|a, b| a < b), "{ids:?}");

    let mut replayed = approvals(&world, &token, "?after=0", None).await?;
    for (id, wanted) in ids.iter().zip(&told) {
        let (again, data) = next_approval(&mut replayed).await?;
        assert_eq!((&again, &(text(&data["type"]), data["approval"]["id"].clone())), (id, wanted));
    }
    let mut after = approvals(&world, &token, "?after=0", Some(&ids[1])).await?;
    assert_eq!(next_approval(&mut after).await?.0, ids[2], "the last event id takes precedence");
    Ok(())
}

/// A token of a session.
async fn token_of(world: &World, session: &str) -> anyhow::Result<String> {
    let given = world.call("loopback.configure", json!({"session_id": session})).await?;
    let header = text(&given["mcp_config"]["mcpServers"]["plexus"]["headers"]["Authorization"]);
    Ok(header.strip_prefix("Bearer ").context("a bearer")?.to_owned())
}

fn status(refused: Option<CallError>) -> String {
    refused.and_then(|refused| refused.kind).unwrap_or_else(|| "not refused".to_owned())
}

#[tokio::test]
async fn a_stream_is_only_for_callers_with_access() -> anyhow::Result<()> {
    let world = scripted().await?;
    let parent = world.create("parent", json!({"hub_tools": true, "approve_scope": ["*"]})).await?;
    let plain = world.create("plain", json!({})).await?;
    let stranger = world.create("stranger", json!({"prompt": script(&json!([bash("true")]))})).await?;
    world.asked(&stranger).await?;
    let (of_parent, of_plain) = (token_of(&world, &parent).await?, token_of(&world, &plain).await?);
    let url = world.hub.url();
    for (token, session, wanted) in [
        ("", &stranger, "http_401"),
        ("made-up", &stranger, "http_401"),
        (&of_parent, &stranger, "http_404"),
        (&of_plain, &stranger, "http_403"),
        (&of_plain, &plain, "http_403"),
    ] {
        let path = format!("/sessions/{session}/events");
        assert_eq!(status(Listener::open(url, &path, token, None).await.err()), wanted, "{session}");
    }
    for (token, wanted) in [("", "http_401"), ("made-up", "http_401"), (&of_plain, "http_403")] {
        assert_eq!(status(approvals(&world, token, "?after=0", None).await.err()), wanted);
    }

    // A parent's stream contains the approvals addressed to it, and no others.
    let door = plexus_testkit::rpc::McpClient::connect(url, &of_parent).await?;
    let made = json!({
        "name": "below", "working_dir": world.work, "prompt": script(&json!([bash("true")])),
    });
    let below = text(&plexus_testkit::rpc::Door::call(&door, "claudecode.create", made).await?["id"]);
    let mut heard = approvals(&world, &of_parent, "?after=0", None).await?;
    assert_eq!(next_approval(&mut heard).await?.1["approval"]["session_id"], below);
    let path = format!("/sessions/{below}/events");
    let mut own = Listener::open(url, &path, &of_parent, None).await?;
    assert_eq!(next(&mut own).await?.id, "1-0");
    Ok(())
}
