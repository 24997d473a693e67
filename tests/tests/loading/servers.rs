//! MCP servers of a session: their tool calls pass the gate, their secrets are shown nowhere, and a session grants a child no server
//! that it does not have.

use anyhow::Context as _;
use plexus_e2e::{Setup, World, events, over, processes_of, script, text};
use plexus_testkit::model::Step;
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{calls, get, noted, tool_server};

over!(channels: a_call_to_a_server_needs_approval);
over!(clis:
    annotations_of_a_servers_tools_grant_nothing,
    a_server_runs_in_the_sandbox_and_ends_with_its_session,
    servers_are_available_after_a_restart_of_the_hub,
    headers_reach_a_server_over_http,
    a_server_that_does_not_start_blocks_nothing,
);

fn note(tool: &str, text: &str) -> Step {
    Step::tool(format!("mcp__notes__{tool}"), json!({"text": text}))
}

async fn a_call_to_a_server_needs_approval(world: World) -> anyhow::Result<()> {
    let servers = json!({"notes": tool_server(&world, "notes.log")?});
    let rule = json!([{"rule": "mcp__notes__note", "effect": "deny"}]);
    world.model.script("NOTE", vec![note("note", "first"), note("note", "second"), Step::text("Noted.")]);
    let session = world.create("noter", json!({"mcp_servers": servers.clone()})).await?;
    world.chat(&session, "NOTE").await?;
    let (_, approval) = world.asked(&session).await?;
    assert_eq!(
        (&approval["tool_name"], &approval["input"]["text"]),
        (&json!("mcp__notes__note"), &json!("first"))
    );
    assert_eq!(calls(&world, "notes.log"), Vec::<Value>::new(), "it was called before it was allowed");
    world.respond(&approval, json!({"approve": false})).await?;
    let (_, approval) = world.asked(&session).await?;
    assert_eq!(calls(&world, "notes.log"), Vec::<Value>::new(), "it was called though it was denied");
    world.allow(&approval).await?;
    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    assert_eq!(calls(&world, "notes.log"), [json!("second")]);
    let results = events(&poll, "tool_result");
    assert!(results[1].to_string().contains("THE-SERVER-ANSWERED"), "{results:#?}");

    // Claude Code knows the server's config and reports it to the hub on request.
    let mut shown = poll.to_string() + &world.hub.stderr();
    for (method, params) in [("claudecode.get", json!({"session_id": session})), ("audit.list", json!({}))] {
        shown += &world.call(method, params).await?.to_string();
    }
    assert!(!shown.contains("THE-SECRET-KEY"), "{shown}");

    // Rules apply to such a call as to any other.
    world.model.script("RULED", vec![note("note", "third"), Step::text("No.")]);
    let ruled = world.create("ruled", json!({"mcp_servers": servers, "rules": rule})).await?;
    world.chat(&ruled, "RULED").await?;
    let poll = world.ended(&ruled).await?;
    assert!(events(&poll, "approval_requested").is_empty(), "{poll:#}");
    assert_eq!(calls(&world, "notes.log"), [json!("second")]);
    Ok(())
}

async fn annotations_of_a_servers_tools_grant_nothing(world: World) -> anyhow::Result<()> {
    let servers = json!({"notes": tool_server(&world, "notes.log")?});
    world.model.script("PEEK", vec![note("peek", "look"), Step::text("Peeked.")]);
    let session =
        world.create("peeker", json!({"mcp_servers": servers, "permission_mode": "acceptEdits"})).await?;
    world.chat(&session, "PEEK").await?;
    let (_, approval) = world.asked(&session).await?;
    assert_eq!(approval["tool_name"], "mcp__notes__peek", "a read-only hint grants nothing");
    assert_eq!(calls(&world, "notes.log"), Vec::<Value>::new());
    world.respond(&approval, json!({"approve": false})).await?;
    world.ended(&session).await?;
    assert_eq!(calls(&world, "notes.log"), Vec::<Value>::new());
    Ok(())
}

async fn a_server_runs_in_the_sandbox_and_ends_with_its_session(world: World) -> anyhow::Result<()> {
    let servers = json!({"notes": tool_server(&world, "notes.log")?});
    world.model.script("HELLO", vec![Step::text("Hello.")]);
    let session = world.create("walled", json!({"mcp_servers": servers})).await?;
    world.chat(&session, "HELLO").await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    let started = noted(&world, "notes.log").first().cloned().context("it was started")?;
    assert_eq!(started["args"], json!(["--quiet"]));
    let pid = u32::try_from(started["started"].as_u64().context("its pid")?)?;
    let pid = plexus_e2e::outside(&session, pid).unwrap_or(pid);
    assert!(processes_of(&session).contains(&pid), "its environment names the session");
    let view = get(&world, &session).await?;
    if view["wall"] == "none" {
        plexus_testkit::skip(
            "a_server_runs_in_the_sandbox_and_ends_with_its_session",
            &format!("sandbox: {}", view["wall_missing"]),
        );
    } else {
        assert_eq!(started["could_read"], false, "the operator's token is out of its reach");
    }
    world.call("claudecode.stop", json!({"session_id": session})).await?;
    assert!(!plexus_e2e::is_alive(pid), "it ended with its session");
    Ok(())
}

async fn servers_are_available_after_a_restart_of_the_hub(mut world: World) -> anyhow::Result<()> {
    let servers = json!({"notes": tool_server(&world, "notes.log")?});
    world.model.script("FIRST", vec![Step::text("First.")]);
    let session = world.create("lasting", json!({"mcp_servers": servers})).await?;
    world.chat(&session, "FIRST").await?;
    world.ended(&session).await?;
    world.call("claudecode.stop", json!({"session_id": session})).await?;
    world.hub.kill9().await?;
    world.hub.restart().await?;
    world.model.script("SECOND", vec![note("note", "again"), Step::text("Second.")]);
    world.chat(&session, "SECOND").await?;
    let (_, approval) = world.asked(&session).await?;
    world.allow(&approval).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    assert_eq!(calls(&world, "notes.log"), [json!("again")]);
    Ok(())
}

async fn headers_reach_a_server_over_http(world: World) -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let visited = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await?;
        let mut head = vec![0; 4096];
        let length = stream.read(&mut head).await?;
        stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await?;
        anyhow::Ok(String::from_utf8_lossy(&head[..length]).into_owned())
    });
    let headers = json!({"Authorization": "Bearer THE-SECRET-KEY"});
    world.model.script("REMOTE", vec![Step::text("Well.")]);
    let servers = json!({"remote": {"type": "http", "url": url, "headers": headers}});
    let session = world.create("remote", json!({"mcp_servers": servers})).await?;
    world.chat(&session, "REMOTE").await?;
    let head = tokio::time::timeout(plexus_e2e::LIMIT, visited).await???;
    assert!(head.to_lowercase().contains("authorization: bearer the-secret-key"), "{head}");
    assert_eq!(world.ended(&session).await?["status"], "complete", "it continues without the server");
    Ok(())
}

async fn a_server_that_does_not_start_blocks_nothing(world: World) -> anyhow::Result<()> {
    let servers = json!({
        "gone": {"command": "/nonexistent/program"},
        "failing": {"command": "false"},
        "silent": {"command": "sleep", "args": ["600"]},
        "notes": tool_server(&world, "notes.log")?,
    });
    world.model.script("ANYWAY", vec![note("note", "anyway"), Step::text("Done.")]);
    // Claude Code waits 30 s for a silent server, unless this variable is set.
    let env = json!({"MCP_TIMEOUT": "1000"});
    let session = world.create("anyway", json!({"mcp_servers": servers, "env": env})).await?;
    world.chat(&session, "ANYWAY").await?;
    let (_, approval) = world.asked(&session).await?;
    world.allow(&approval).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    assert_eq!(calls(&world, "notes.log"), [json!("anyway")]);
    Ok(())
}

async fn scripted() -> anyhow::Result<World> {
    Setup::scripted().world("loading").await?.context("the scripted agent is always available")
}

#[tokio::test]
async fn secrets_of_servers_are_never_shown_and_deleted_with_the_session() -> anyhow::Result<()> {
    let world = scripted().await?;
    let servers = json!({
        "notes": tool_server(&world, "notes.log")?,
        "remote": {"type": "http", "url": "https://a.example/mcp", "headers": {"X-Key": "THE-SECRET-KEY"}},
    });
    let prompt = script(&json!([{"say": "here"}]));
    let session = world.create("secretive", json!({"mcp_servers": servers, "prompt": prompt})).await?;
    world.ended(&session).await?;
    assert_eq!(get(&world, &session).await?["loads"], json!({"mcp_servers": ["notes", "remote"]}));
    let config = std::fs::read_to_string(world.run_dir(&session, 1).join("mcp.json"))?;
    assert!(config.contains("THE-SECRET-KEY"), "the agent has it");
    let mut shown = String::new();
    for (method, params) in [
        ("claudecode.get", json!({"session_id": session})),
        ("claudecode.list", json!({})),
        ("claudecode.poll", json!({"session_id": session, "from_seq": 0})),
        ("audit.list", json!({})),
    ] {
        shown += &world.call(method, params).await?.to_string();
    }
    assert!(shown.contains("\"mcp_servers\":[\"notes\",\"remote\"]"), "{shown}");
    shown += &world.hub.stderr();
    shown += &std::fs::read_to_string(world.run_dir(&session, 1).join("launch.json"))?;
    assert!(!shown.contains("THE-SECRET-KEY"), "{shown}");

    world.call("claudecode.delete", json!({"session_id": session})).await?;
    assert!(!world.run_dir(&session, 1).join("mcp.json").exists());
    Ok(())
}

#[tokio::test]
async fn an_invalid_server_is_refused_by_name() -> anyhow::Result<()> {
    let world = scripted().await?;
    for (servers, kind, field) in [
        (json!({"plexus": {"command": "a"}}), "invalid_params", "mcp_servers.plexus"),
        (json!({"a__b": {"command": "a"}}), "invalid_params", "mcp_servers.a__b"),
        (json!({"a b": {"command": "a"}}), "invalid_params", "mcp_servers.a b"),
        (
            json!({"a": {"command": "a", "headersHelper": "sh"}}),
            "unknown_field",
            "mcp_servers.a.headersHelper",
        ),
        (json!({"a": {"type": "carrier-pigeon"}}), "invalid_params", "mcp_servers.a.type"),
        (json!({"a": {"type": "http"}}), "invalid_params", "mcp_servers.a.url"),
        (json!({"a": {"command": "a", "args": "b"}}), "invalid_params", "mcp_servers.a.args"),
        (json!({"a": {"command": "a", "env": {"B": 1}}}), "invalid_params", "mcp_servers.a.env.B"),
        (json!({"a": {"type": "inherited"}}), "invalid_params", "mcp_servers.a.type"),
        (json!([]), "invalid_params", "mcp_servers"),
        (json!({"a": {"command": "a", "args": ["x".repeat(70_000)]}}), "invalid_params", "mcp_servers"),
    ] {
        let params = json!({"name": "bad", "working_dir": world.work, "mcp_servers": servers});
        let error = world.refused("claudecode.create", params).await?;
        assert_eq!((error.kind.as_deref(), &error.data["field"]), (Some(kind), &json!(field)), "{error}");
    }
    assert_eq!(world.call("claudecode.list", json!({})).await?["sessions"], json!([]), "nothing was created");
    Ok(())
}

#[tokio::test]
async fn a_session_grants_only_servers_that_it_has() -> anyhow::Result<()> {
    let world = scripted().await?;
    let own = json!({"command": "their-server", "env": {"KEY": "THE-SECRET-KEY"}});
    let prompt = script(&json!([{"say": "here"}]));
    let more = json!({"hub_tools": true, "prompt": prompt, "mcp_servers": {"own": own, "other": own}});
    let maker = world.create("maker", more).await?;
    world.ended(&maker).await?;
    let door = Rpc::new(world.hub.url(), &world.token_of(&maker)?);
    let create = |name: &str, servers: Value| {
        let params =
            json!({"name": name, "working_dir": world.work, "mcp_servers": servers, "prompt": prompt});
        door.call("claudecode.create", params)
    };
    for servers in [
        json!({"new": {"command": "a"}}),
        json!({"own": {"command": "another-program"}}),
        json!({"theirs": {"type": "inherited"}}),
        json!({"own": {"type": "inherited"}, "more": {"type": "http", "url": "http://127.0.0.1:1/"}}),
    ] {
        let error = create("greedy", servers.clone()).await.err().context("refused")?;
        assert_eq!(error.data["type"], "forbidden", "{servers}: {error}");
        assert!(text(&error.data["field"]).starts_with("mcp_servers."), "{error}");
    }
    let changed = create("changer", json!({"own": {"type": "inherited", "env": {"A": "b"}}})).await;
    assert_eq!(changed.err().context("refused")?.data["type"], "invalid_params");

    let child = text(&create("child", json!({"own": {"type": "inherited"}})).await?["id"]);
    world.ended(&child).await?;
    assert_eq!(get(&world, &child).await?["loads"], json!({"mcp_servers": ["own"]}));
    let config = std::fs::read_to_string(world.run_dir(&child, 1).join("mcp.json"))?;
    let config: Value = serde_json::from_str(&config)?;
    assert_eq!(config["mcpServers"]["own"]["command"], "their-server");
    assert!(config["mcpServers"].get("other").is_none(), "a server that was not granted is missing");

    let plain = text(
        &door.call("claudecode.create", json!({"name": "plain", "working_dir": world.work})).await?["id"],
    );
    assert!(get(&world, &plain).await?.get("loads").is_none(), "nothing is granted by default");
    Ok(())
}

/// Calls a method as an external agent, on the hub's socket.
async fn from_outside(world: &World, method: &str, params: Value) -> anyhow::Result<Value> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let head = format!(
        "POST /rpc HTTP/1.1\r\nhost: localhost\r\nx-plexus-parent: outside\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let mut socket = tokio::net::UnixStream::connect(world.hub.data_dir().join("hub.sock")).await?;
    socket.write_all((head + &body).as_bytes()).await?;
    let mut answer = String::new();
    tokio::time::timeout(plexus_e2e::LIMIT, socket.read_to_string(&mut answer)).await??;
    let (_, answer) = answer.split_once("\r\n\r\n").context("an answer")?;
    let (from, to) = (answer.find('{').context("JSON")?, answer.rfind('}').context("JSON")?);
    Ok(serde_json::from_str(&answer[from..=to])?)
}

#[tokio::test]
async fn an_external_agent_can_give_servers_but_not_trust_a_project() -> anyhow::Result<()> {
    let world = scripted().await?;
    let servers = json!({"own": {"command": "their-server"}});
    let params = json!({"name": "served", "working_dir": world.work, "mcp_servers": servers});
    let made = from_outside(&world, "claudecode.create", params).await?;
    let shown = get(&world, &text(&made["result"]["id"])).await?;
    assert_eq!(shown["answers_to"]["kind"], "parent", "{shown:#}");
    assert_eq!(shown["loads"], json!({"mcp_servers": ["own"]}));
    let params = json!({"name": "trusting", "working_dir": world.work, "trust_project": true});
    let refused = from_outside(&world, "claudecode.create", params).await?["error"]["data"].clone();
    assert_eq!(
        (&refused["type"], &refused["field"]),
        (&json!("forbidden"), &json!("trust_project")),
        "{refused}"
    );
    for method in ["claudecode.trust_project", "claudecode.user_settings"] {
        let params =
            if method.ends_with("project") { json!({"name": "served"}) } else { json!({"accept": true}) };
        let refused = from_outside(&world, method, params).await?["error"]["data"].clone();
        assert_eq!(refused["type"], "forbidden", "{method}: {refused}");
    }
    Ok(())
}
