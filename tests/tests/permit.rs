//! `loopback.permit` for a `claude` that the hub did not start: the session of the approval, the decision, and how the stream
//! over HTTP is lost and resumed. The tests write requests to `/mcp` by hand, because a client library hides these details.

use std::time::Duration;

use anyhow::{Context as _, bail};
use plexus_e2e::{LIMIT, Setup, World, events, script, text};
use plexus_testkit::rpc::{Rpc, RpcError};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

async fn world(config: &str) -> anyhow::Result<World> {
    let world = Setup::scripted().with_config(config).world("permit").await?;
    world.context("the scripted agent is always available")
}

/// A session, and a token for a child of it that the hub did not start.
async fn configured(world: &World, name: &str) -> anyhow::Result<(String, String)> {
    let session = world.create(name, json!({"channel": "mcp"})).await?;
    let answer = world.call("loopback.configure", json!({"session_id": session})).await?;
    assert_eq!(answer["permission_prompt_tool"], "mcp__plexus__loopback_permit");
    let server = &answer["mcp_config"]["mcpServers"]["plexus"];
    assert_eq!((&server["type"], text(&server["url"])), (&json!("http"), format!("{}/mcp", world.hub.url())));
    let token = text(&server["headers"]["Authorization"]).replace("Bearer ", "");
    Ok((session, token))
}

/// The permit request of every test here.
fn question(command: &str) -> Value {
    json!({"tool_name": "Bash", "input": {"command": command}, "tool_use_id": "toolu_1"})
}

/// Requests a permit over `/rpc` in a new task.
fn ask(world: &World, token: &str, question: Value) -> tokio::task::JoinHandle<Result<Value, RpcError>> {
    let rpc = Rpc::new(world.hub.url(), token);
    tokio::spawn(async move { rpc.call("loopback.permit", question).await })
}

/// Waits until this many approvals are open, and returns them.
async fn open(world: &World, count: usize) -> anyhow::Result<Vec<Value>> {
    let mut waited = world.call("loopback.wait", json!({})).await?;
    loop {
        let approvals = world.call("loopback.pending", json!({})).await?["approvals"].take();
        let Value::Array(approvals) = approvals else { bail!("no list: {approvals}") };
        if approvals.len() == count {
            return Ok(approvals);
        }
        let cursor = &waited["cursor"];
        waited = world.call("loopback.wait", json!({"cursor": cursor, "timeout_ms": 10_000})).await?;
    }
}

/// A handwritten HTTP request and the lines of its response. Dropping it closes the connection.
struct Raw {
    status: u16,
    lines: Lines<BufReader<OwnedReadHalf>>,
    _writer: OwnedWriteHalf,
}

/// A server-sent event.
#[derive(Debug, Default)]
struct Sse {
    id: Option<String>,
    retry: Option<String>,
    data: Value,
}

impl Raw {
    async fn send(world: &World, line: &str, headers: &[(&str, &str)], body: &str) -> anyhow::Result<Self> {
        let authority = world.hub.url().replace("http://", "");
        let (reader, mut writer) = TcpStream::connect(&authority).await?.into_split();
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!(
            "{line} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{headers}\r\n",
            body.len()
        );
        writer.write_all(format!("{head}{body}").as_bytes()).await?;
        let mut raw = Self { status: 0, lines: BufReader::new(reader).lines(), _writer: writer };
        let status = raw.line().await?;
        raw.status = status.split(' ').nth(1).context("a status")?.parse()?;
        while !raw.line().await?.is_empty() {}
        Ok(raw)
    }

    /// Requests a permit over `/mcp`, as Claude Code does.
    async fn permit(world: &World, token: &str, id: &Value, question: &Value) -> anyhow::Result<Self> {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": "loopback_permit", "arguments": question, "_meta": {"progressToken": "p-1"},
        }});
        let bearer = format!("Bearer {token}");
        let headers: &[_] = if token.is_empty() { &[] } else { &[("Authorization", bearer.as_str())] };
        Self::send(world, "POST /mcp", headers, &call.to_string()).await
    }

    /// Resumes a stream.
    async fn resume(world: &World, token: &str, last_event_id: &str) -> anyhow::Result<Self> {
        let bearer = format!("Bearer {token}");
        let headers = [("Authorization", bearer.as_str()), ("Last-Event-ID", last_event_id)];
        Self::send(world, "GET /mcp", &headers, "").await
    }

    async fn line(&mut self) -> anyhow::Result<String> {
        let line = tokio::time::timeout(LIMIT, self.lines.next_line()).await.context("no line in time")??;
        line.context("the connection was closed")
    }

    /// The next event. It skips the sizes of HTTP chunks between the lines.
    async fn event(&mut self) -> anyhow::Result<Sse> {
        let mut event = Sse::default();
        let mut begun = false;
        loop {
            let line = self.line().await?;
            match line.split_once(": ").or(line.strip_suffix(':').map(|name| (name, ""))) {
                Some(("id", id)) => event.id = Some(id.to_owned()),
                Some(("retry", retry)) => event.retry = Some(retry.to_owned()),
                Some(("data", "")) => {}
                Some(("data", data)) => event.data = serde_json::from_str(data)?,
                Some(_) => {}
                None if line.is_empty() && begun => return Ok(event),
                None => continue,
            }
            begun = true;
        }
    }

    /// The decision at the end of the stream, and the number of progress notifications before it.
    async fn decision(&mut self, id: &Value) -> anyhow::Result<(Value, usize)> {
        let mut signs = 0;
        loop {
            let message = self.event().await?.data;
            if message["method"] == "notifications/progress" {
                assert_eq!(message["params"]["progressToken"], "p-1");
                signs += 1;
                continue;
            }
            if message.is_null() {
                continue;
            }
            assert_eq!(&message["id"], id, "{message}");
            let result = &message["result"];
            assert_eq!(
                (&result["isError"], result["content"].as_array().map(Vec::len)),
                (&json!(false), Some(1))
            );
            return Ok((serde_json::from_str(&text(&result["content"][0]["text"]))?, signs));
        }
    }
}

#[tokio::test]
async fn a_permit_requires_a_valid_token() -> anyhow::Result<()> {
    let world = world("").await?;
    let question = question("true");
    for token in ["", "made-up"] {
        let refused = ask(&world, token, question.clone()).await?.err().context("refused")?;
        assert_eq!(refused.code, 401, "{refused}");
        assert_eq!(Raw::permit(&world, token, &json!(1), &question).await?.status, 401);
        assert_eq!(Raw::send(&world, "GET /mcp", &[("Last-Event-ID", "x")], "").await?.status, 401);
    }
    assert!(open(&world, 0).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_caller_without_the_right_gets_a_denial_and_no_error() -> anyhow::Result<()> {
    let world = world("").await?;
    let operator = world.hub.token()?;
    let denied = ask(&world, &operator, question("true")).await??;
    assert_eq!(denied["behavior"], "deny", "{denied}");
    let (denied, _) =
        Raw::permit(&world, &operator, &json!("a"), &question("true")).await?.decision(&json!("a")).await?;
    assert_eq!(denied["behavior"], "deny", "{denied}");

    let (_, token) = configured(&world, "rubbish").await?;
    for rubbish in [
        json!({}),
        json!({"tool_name": "Bash", "input": {}}),
        json!({"tool_name": 7, "input": {}, "tool_use_id": "t"}),
        json!({"tool_name": "Bash", "input": "ls", "tool_use_id": "t"}),
    ] {
        let denied = ask(&world, &token, rubbish.clone()).await??;
        assert_eq!(denied["behavior"], "deny", "{denied}");
        assert!(!text(&denied["message"]).is_empty());
        let (denied, _) = Raw::permit(&world, &token, &json!(7), &rubbish).await?.decision(&json!(7)).await?;
        assert_eq!(denied["behavior"], "deny", "{denied}");
    }
    assert!(open(&world, 0).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_token_requests_permits_for_its_own_session_only() -> anyhow::Result<()> {
    let world = world("").await?;
    let (first, first_token) = configured(&world, "first").await?;
    let (second, second_token) = configured(&world, "second").await?;
    let of_first = ask(&world, &first_token, question("true"));
    let approval = open(&world, 1).await?.remove(0);
    assert_eq!(approval["session_id"], json!(first));
    world.allow(&approval).await?;
    assert_eq!(of_first.await??["behavior"], "allow");

    // The same call of another session gets another approval.
    let of_second = ask(&world, &second_token, question("true"));
    let approval = open(&world, 1).await?.remove(0);
    assert_eq!(approval["session_id"], json!(second));
    assert!(!of_second.is_finished());

    // A session without the hub's tools decides nothing.
    let rpc = Rpc::new(world.hub.url(), &second_token);
    for (method, params) in [
        ("loopback.respond", json!({"approval_id": approval["id"], "approve": true})),
        ("loopback.get", json!({"approval_id": approval["id"]})),
        ("loopback.pending", json!({})),
        ("claudecode.list", json!({})),
        ("claudecode.create", json!({"name": "third", "working_dir": world.work})),
    ] {
        let refused = rpc.call(method, params).await.err().context("refused")?;
        assert_eq!(refused.data["type"], "forbidden", "{method}: {refused}");
    }
    world.respond(&approval, json!({"approve": false, "message": "not you"})).await?;
    assert_eq!(of_second.await??, json!({"behavior": "deny", "message": "not you"}));

    // The token is invalid after the session is stopped.
    world.call("claudecode.stop", json!({"session_id": second})).await?;
    assert_eq!(ask(&world, &second_token, question("true")).await?.err().context("refused")?.code, 401);
    Ok(())
}

#[tokio::test]
async fn a_broken_stream_can_be_resumed() -> anyhow::Result<()> {
    let world = world("progress_secs = 0.05\nsse_retry_ms = 4000").await?;
    let (_, token) = configured(&world, "far-away").await?;
    let (_, foreign) = configured(&world, "stranger").await?;
    let mut stream = Raw::permit(&world, &token, &json!("call-1"), &question("true")).await?;
    let opening = stream.event().await?;
    assert_eq!(opening.retry.as_deref(), Some("4000"));
    let first = opening.id.context("an id to resume with")?;
    let sign = stream.event().await?.data;
    assert_eq!(
        (&sign["method"], &sign["params"]["progressToken"]),
        (&json!("notifications/progress"), &json!("p-1"))
    );
    drop(stream);

    for (token, id) in [
        (foreign.as_str(), first.as_str()),
        (world.hub.token()?.as_str(), first.as_str()),
        (token.as_str(), "00000000-0000-4000-8000-000000000000"),
        (token.as_str(), "rubbish"),
    ] {
        assert_eq!(Raw::resume(&world, token, id).await?.status, 404);
    }

    let mut again = Raw::resume(&world, &token, &first).await?;
    let opening = again.event().await?;
    let second = opening.id.context("an id to resume with")?;
    assert_ne!(first, second);
    assert_eq!(opening.retry.as_deref(), Some("4000"));
    drop(again);

    // Both ids resume the stream, any number of times.
    let mut third = Raw::resume(&world, &token, &second).await?;
    let mut fourth = Raw::resume(&world, &token, &first).await?;
    let approval = open(&world, 1).await?.remove(0);
    world.allow(&approval).await?;
    for stream in [&mut third, &mut fourth] {
        let (decision, _) = stream.decision(&json!("call-1")).await?;
        assert_eq!(decision, json!({"behavior": "allow", "updatedInput": {"command": "true"}}));
    }
    // The stream can also be resumed after the decision.
    let (decision, _) = Raw::resume(&world, &token, &second).await?.decision(&json!("call-1")).await?;
    assert_eq!(decision["behavior"], "allow");
    Ok(())
}

#[tokio::test]
async fn a_client_that_disconnects_while_it_waits_affects_no_other() -> anyhow::Result<()> {
    let world = world("").await?;
    let bearer = format!("Bearer {}", world.hub.token()?);
    let headers = [("Authorization", bearer.as_str())];
    let session = world.create("alone", json!({})).await?;
    let cursor = world.call("loopback.wait", json!({})).await?["cursor"].clone();
    let prompt = script(&json!([{"tool": "Bash", "input": {"command": "echo on"}}, {"say": "went on"}]));
    for (method, params) in [
        ("loopback.wait", json!({"cursor": cursor, "timeout_ms": 60_000})),
        ("claudecode.poll", json!({"session_id": session, "wait_ms": 60_000})),
        ("claudecode.chat", json!({"session_id": session, "prompt": prompt})),
    ] {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        // The hub does not respond yet: the client disconnects while it waits for the first line.
        let vanished = Raw::send(&world, "POST /rpc", &headers, &call);
        if method == "claudecode.chat" {
            tokio::select! {
                answer = vanished => bail!("{method} answered {}", answer?.status),
                asked = world.asked(&session) => { asked?; }
            }
        } else {
            assert!(tokio::time::timeout(Duration::from_millis(50), vanished).await.is_err(), "{method}");
        }
    }
    // The turn continues without these clients, and another waiter gets all of it.
    let waited = world.call("loopback.wait", json!({"cursor": cursor})).await?;
    assert_eq!(waited["approvals"][0]["session_id"], json!(session), "{waited}");
    world.allow(&waited["approvals"][0]).await?;
    let poll = world.ended(&session).await?;
    assert_eq!(events(&poll, "complete")[0]["result"], "went on", "{poll:#}");
    assert_eq!(world.ran().len(), 1);
    Ok(())
}
