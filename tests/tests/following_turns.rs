//! Following a turn: events over a WebSocket, the result over `/rpc`, and pages for several pollers, each with its own position.

use anyhow::{Context as _, bail};
use futures::{SinkExt as _, StreamExt as _};
use plexus_e2e::{Channel, DoorKind, LIMIT, Setup, World, events, script, text};
use plexus_testkit::model::Step;
use plexus_testkit::rpc::{CallError, Door as _, McpClient, Rpc};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

async fn scripted(test: &str) -> anyhow::Result<World> {
    Setup::scripted().world(test).await?.context("the scripted agent is always available")
}

/// A turn with two texts and one approval.
fn prompt(file: &str) -> String {
    script(&json!([
        {"say": "I begin."},
        {"tool": "Write", "input": {"file_path": file, "content": "x"}},
        {"say": "I am done."},
    ]))
}

struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    async fn connect(world: &World) -> anyhow::Result<Self> {
        let url = world.hub.url().replace("http://", "ws://");
        let mut request = format!("{url}/rpc").into_client_request()?;
        request.headers_mut().insert("authorization", format!("Bearer {}", world.hub.token()?).parse()?);
        Ok(Self(connect_async(request).await?.0))
    }

    async fn call(&mut self, id: u64, method: &str, params: Value) -> anyhow::Result<()> {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        Ok(self.0.send(Message::text(request.to_string())).await?)
    }

    async fn next(&mut self) -> anyhow::Result<Value> {
        loop {
            match timeout(LIMIT, self.0.next()).await?.context("the socket was closed")?? {
                Message::Text(text) => return Ok(serde_json::from_str(&text)?),
                Message::Ping(_) => {}
                other => bail!("not a text: {other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn a_chat_over_websocket_sends_each_event_in_order_and_then_the_result() -> anyhow::Result<()> {
    let world = scripted("chat over websocket").await?;
    let session = world.create("talker", json!({})).await?;
    let mut socket = Socket::connect(&world).await?;
    socket.call(7, "claudecode.chat", json!({"session_id": session, "prompt": prompt("ws.txt")})).await?;
    let (mut received, mut answer) = (Vec::new(), Value::Null);
    let result = loop {
        let message = socket.next().await?;
        if message["id"] == 8 {
            // The result of another call arrives between the events.
            answer = message["result"]["type"].clone();
            continue;
        }
        if message["id"] == 7 {
            break message["result"].clone();
        }
        assert_eq!(
            (&message["method"], &message["jsonrpc"]),
            (&json!("claudecode.chat.event"), &json!("2.0"))
        );
        let params = &message["params"];
        assert_eq!((&params["id"], &params["seq"]), (&json!(7), &json!(received.len())), "{message}");
        if params["event"]["type"] == "approval_requested" {
            assert!(!world.file("ws.txt").exists());
            let allow = json!({"approval_id": params["event"]["approval_id"], "approve": true});
            socket.call(8, "loopback.respond", allow).await?;
        }
        received.push(params["event"].clone());
    };
    assert_eq!(answer, "ok");
    assert_eq!((&result["status"], &result["turn"]), (&json!("complete"), &json!(1)));
    let whole: Vec<Value> =
        result["events"].as_array().into_iter().flatten().map(|event| event["event"].clone()).collect();
    assert_eq!(received, whole, "the events are the stored ones");
    assert_eq!(events(&result, "complete")[0]["result"], "I am done.");
    assert!(world.file("ws.txt").exists());
    Ok(())
}

/// The deltas of a model's answer are sent with the events of a chat, before the complete text.
async fn deltas_over_websocket(version: &'static str) -> anyhow::Result<()> {
    let setup = Setup::cli(version, Channel::Control, DoorKind::Rpc);
    let Some(world) = setup.world("deltas over websocket").await? else { return Ok(()) };
    let answer = "A text that comes in three pieces.";
    world.model.script("IN-PIECES", vec![Step::text(answer)]);
    let session = world.create("talker", json!({"deltas": true})).await?;
    let mut socket = Socket::connect(&world).await?;
    socket.call(7, "claudecode.chat", json!({"session_id": session, "prompt": "IN-PIECES"})).await?;
    let (mut deltas, mut seqs) = (String::new(), Vec::new());
    loop {
        let message = socket.next().await?;
        let params = &message["params"];
        match message["method"].as_str() {
            Some("claudecode.chat.delta") => {
                assert_eq!(params["id"], 7);
                deltas.push_str(params["delta"]["event"]["delta"]["text"].as_str().unwrap_or_default());
            }
            Some("claudecode.chat.event") => {
                assert!(params["event"]["type"] != "content" || deltas == answer, "{deltas:?}");
                seqs.extend(params["seq"].as_u64());
            }
            _ => {
                assert_eq!(message["result"]["status"], "complete", "{message}");
                let total = message["result"]["total_events"].as_u64().unwrap_or_default();
                assert_eq!(
                    seqs,
                    (0..total).collect::<Vec<_>>(),
                    "each event once, in order, before the result"
                );
                return Ok(());
            }
        }
    }
}

#[tokio::test]
async fn a_chat_over_websocket_sends_deltas_cli_197() -> anyhow::Result<()> {
    deltas_over_websocket("2.1.197").await
}

#[tokio::test]
async fn a_chat_over_websocket_sends_deltas_cli_325() -> anyhow::Result<()> {
    deltas_over_websocket("2.1.325").await
}

#[tokio::test]
async fn a_chat_over_websocket_that_is_read_late_loses_nothing() -> anyhow::Result<()> {
    let world = scripted("a slow websocket").await?;
    let session = world.create("flooded", json!({})).await?;
    let mut socket = Socket::connect(&world).await?;
    let flood = script(&json!([{"flood": {"events": 10_000, "bytes": 1000}}]));
    socket.call(7, "claudecode.chat", json!({"session_id": session, "prompt": flood})).await?;
    // Nothing is read until the child has finished. The child does not wait for its reader.
    let total = loop {
        let poll = json!({"session_id": session, "wait_ms": 1000, "limit": 1});
        let poll = world.call("claudecode.poll", poll).await?;
        if poll["status"] == "complete" {
            break poll["total_events"].as_u64().unwrap_or_default();
        }
    };
    assert!(total > 10_000);
    for seq in 0..total {
        assert_eq!(socket.next().await?["params"]["seq"], seq);
    }
    assert_eq!(socket.next().await?["id"], 7);
    Ok(())
}

#[tokio::test]
async fn a_chat_over_rpc_returns_the_whole_turn() -> anyhow::Result<()> {
    let world = scripted("chat over rpc").await?;
    let session = world.create("talker", json!({})).await?;
    let operator = Rpc::new(world.hub.url(), &world.hub.token()?);
    let chat = operator.call("claudecode.chat", json!({"session_id": session, "prompt": prompt("rpc.txt")}));
    let answer = async {
        let (_, approval) = world.asked(&session).await?;
        world.allow(&approval).await
    };
    let (result, answered) = tokio::join!(chat, answer);
    answered?;
    let result = result?;
    assert_eq!((&result["type"], &result["status"]), (&json!("ok"), &json!("complete")));
    assert_eq!(events(&result, "tool_result").len(), 1);
    assert_eq!(result["has_more"], false);
    Ok(())
}

#[tokio::test]
async fn a_decider_cannot_wait_for_the_end_of_a_turn_over_mcp() -> anyhow::Result<()> {
    let world = scripted("chat over mcp").await?;
    let session = world.create("talker", json!({})).await?;
    let parent = McpClient::connect(world.hub.url(), &world.hub.token()?).await?;
    let chat = json!({"session_id": session, "prompt": prompt("mcp.txt")});
    let refused = parent.call("claudecode.chat", chat).await.err().and_then(|error: CallError| error.kind);
    assert_eq!(refused.as_deref(), Some("would_wait_for_itself"));
    let poll = world.call("claudecode.poll", json!({"session_id": session})).await?;
    assert_eq!((&poll["status"], &poll["turn"]), (&json!("idle"), &json!(0)), "no turn was started");
    Ok(())
}

fn seqs(poll: &Value) -> Vec<u64> {
    poll["events"].as_array().into_iter().flatten().filter_map(|event| event["seq"].as_u64()).collect()
}

/// A child with five texts that now waits for approval, and a client of the session that created it.
async fn waiting_child(world: &World) -> anyhow::Result<(String, Value, McpClient)> {
    let more = json!({"hub_tools": true, "approve_scope": ["*"], "prompt": prompt("boss.txt")});
    let boss = world.create("boss", more).await?;
    world.asked(&boss).await?;
    let boss = world.door_of(&boss).await?;
    let child = json!({"name": "child", "working_dir": world.work, "prompt": prompt("child.txt")});
    let child = text(&boss.call("claudecode.create", child).await?["id"]);
    world.asked(&child).await?;
    // A poll may show an approval before its event; the next poll shows both.
    let poll = world.call("claudecode.poll", json!({"session_id": child, "from_seq": 0})).await?;
    Ok((child, poll, boss))
}

#[tokio::test]
async fn each_poller_has_its_own_position() -> anyhow::Result<()> {
    let world = scripted("positions").await?;
    let (child, whole, boss) = waiting_child(&world).await?;
    let total = whole["total_events"].as_u64().context("a count")?;
    let all: Vec<u64> = (0..total).collect();

    // In pages, each from the end of the previous one.
    let piece = json!({"session_id": child, "limit": 2});
    let first = world.call("claudecode.poll", piece.clone()).await?;
    assert_eq!(seqs(&first), [0, 1]);
    assert_eq!((&first["read_position"], &first["has_more"]), (&json!(2), &json!(true)));
    assert_eq!(seqs(&world.call("claudecode.poll", piece.clone()).await?), [2, 3]);
    // The other reader starts at the beginning. It is an agent, which gets an approval instead of the event of its request.
    let news = boss.call("claudecode.poll", json!({"session_id": child})).await?;
    let is_news = |event: &&Value| {
        event["event"]["type"] != "approval_requested" && event["event"]["subtype"] != "init"
    };
    let new = whole["events"].as_array().into_iter().flatten().filter(is_news);
    assert_eq!(seqs(&news), new.filter_map(|event| event["seq"].as_u64()).collect::<Vec<_>>());
    assert_eq!(news["pending_approvals"].as_array().map(Vec::len), Some(1), "{news}");
    // A poll with an explicit position returns every event, and moves no reader.
    assert_eq!(seqs(&boss.call("claudecode.poll", json!({"session_id": child, "from_seq": 0})).await?), all);
    let look = json!({"session_id": child, "from_seq": 1, "limit": 1});
    assert_eq!(seqs(&world.call("claudecode.poll", look).await?), [1]);
    assert_eq!(seqs(&world.call("claudecode.poll", piece.clone()).await?)[0], 4);
    let nothing = boss.call("claudecode.poll", json!({"session_id": child})).await?;
    assert_eq!(seqs(&nothing), Vec::<u64>::new());
    Ok(())
}

#[tokio::test]
async fn a_position_moves_only_when_the_next_poll_arrives() -> anyhow::Result<()> {
    let mut world = scripted("positions").await?;
    let (child, _, _) = waiting_child(&world).await?;
    let piece = json!({"session_id": child, "limit": 2});
    // If the caller did not get the answer, the same poll returns the same events.
    for _ in 0..2 {
        assert_eq!(seqs(&world.call("claudecode.poll", piece.clone()).await?), [0, 1]);
        world.hub.kill9().await?;
        world.hub.restart().await?;
    }
    assert_eq!(seqs(&world.call("claudecode.poll", piece.clone()).await?), [0, 1]);
    assert_eq!(position(&world, &child).await?, 0, "it was returned, but its arrival is not known");
    assert_eq!(seqs(&world.call("claudecode.poll", piece.clone()).await?), [2, 3]);
    let deadline = tokio::time::Instant::now() + LIMIT;
    while position(&world, &child).await? != 2 {
        assert!(tokio::time::Instant::now() < deadline, "the next poll moves it");
    }
    world.hub.kill9().await?;
    world.hub.restart().await?;
    assert_eq!(seqs(&world.call("claudecode.poll", piece).await?), [2, 3]);
    Ok(())
}

/// The stored position of the operator in the running turn.
async fn position(world: &World, session: &str) -> anyhow::Result<u64> {
    let streams = world.call("claudecode.streams", json!({})).await?;
    let mut streams = streams["streams"].as_array().into_iter().flatten();
    let stream = streams.find(|stream| stream["session_id"] == session).context("no running turn")?;
    stream["read_position"].as_u64().context("a position")
}

#[tokio::test]
async fn streams_lists_the_turns_of_one_session_and_those_that_have_ended() -> anyhow::Result<()> {
    let world = scripted("streams").await?;
    let prompt = script(&json!([{"say": "Done."}]));
    let two =
        [world.create("one", json!({"prompt": prompt})).await?, world.create("other", json!({})).await?];
    world.ended(&two[0]).await?;
    world.chat(&two[0], &prompt).await?;
    world.ended(&two[0]).await?;
    assert_eq!(world.call("claudecode.streams", json!({"name": "one"})).await?["streams"], json!([]));
    let ended = world.call("claudecode.streams", json!({"session_id": two[0], "finished": true})).await?;
    let ended = ended["streams"].as_array().cloned().unwrap_or_default();
    let turns: Vec<(&Value, &Value)> = ended.iter().map(|turn| (&turn["turn"], &turn["status"])).collect();
    assert_eq!(turns, [(&json!(2), &json!("complete")), (&json!(1), &json!("complete"))]);
    assert!(ended.iter().all(|turn| turn["ended_at"].is_u64() && turn["total_events"].as_u64() > Some(1)));
    let of_other = world.call("claudecode.streams", json!({"name": "other", "finished": true})).await?;
    assert_eq!(of_other["streams"], json!([]));
    let unknown = world.refused("claudecode.streams", json!({"name": "nobody"})).await?;
    assert_eq!(unknown.kind.as_deref(), Some("session_not_found"));
    Ok(())
}

#[tokio::test]
async fn a_turn_that_ends_before_the_first_wait_is_still_reported() -> anyhow::Result<()> {
    let world = scripted("a quick turn").await?;
    let prompt = script(&json!([{"say": "Done already."}]));
    let params = json!({"name": "quick", "working_dir": world.work, "prompt": prompt});
    let created = world.call("claudecode.create", params).await?;
    world.ended(&text(&created["id"])).await?;
    let news = world.call("loopback.wait", json!({"cursor": created["cursor"]})).await?;
    assert_eq!(news["finished"][0]["session_id"], created["id"], "{news:#}");
    Ok(())
}
