//! Attacks with the token of a session.

use plexus_e2e::{Channel, World, over, text};
use plexus_testkit::model::Step;
use plexus_testkit::rpc::{Door, McpClient, Rpc};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{asked_then_denied, bash};

over!(mcp_channels: a_sessions_token_can_request_permits_and_nothing_else);
over!(clis: a_session_with_the_hubs_tools_cannot_decide_for_itself);

/// The token of the session's first run, from the config of its child.
fn token(world: &World, session: &str, channel: Channel) -> anyhow::Result<String> {
    let config = std::fs::read_to_string(world.run_dir(session, 1).join("mcp.json"))?;
    let config: Value = serde_json::from_str(&config)?;
    let server = &config["mcpServers"]["plexus"];
    let token = match channel {
        Channel::Http => text(&server["headers"]["Authorization"]).replace("Bearer ", ""),
        Channel::Relay | Channel::Control => text(&server["env"]["PLEXUS_TOKEN"]),
    };
    assert!(token.len() > 20, "{config}");
    Ok(token)
}

async fn kind_of_refusal(door: &dyn Door, method: &str, params: Value) -> Option<String> {
    match door.call(method, params).await {
        Ok(result) => Some(format!("{method} was not refused: {result}")),
        Err(error) => error.kind,
    }
}

async fn a_sessions_token_can_request_permits_and_nothing_else(world: World) -> anyhow::Result<()> {
    world.model.script("ASKING", vec![bash("touch made.txt"), Step::text("Well.")]);
    let session = world.create("asking", json!({})).await?;
    world.chat(&session, "ASKING").await?;
    let (_, approval) = world.asked(&session).await?;
    let token = token(&world, &session, world.setup.channel)?;
    let url = world.hub.url().to_owned();
    let (rpc, mcp) = (Rpc::new(&url, &token), McpClient::connect(&url, &token).await?);

    let tools: Vec<String> = mcp.tools().await?.iter().map(|tool| text(&tool["name"])).collect();
    assert_eq!(tools, ["loopback_permit"]);
    let methods = world.call("rpc.discover", json!({})).await?["methods"].take();
    let methods: Vec<String> =
        methods.as_array().into_iter().flatten().map(|method| text(&method["name"])).collect();
    assert!(methods.len() > 15, "{methods:?}");
    let doors: [&dyn Door; 2] = [&rpc, &mcp];
    for method in methods.iter().filter(|method| *method != "loopback.permit") {
        let params = match method.as_str() {
            "loopback.respond" => json!({"approval_id": approval["id"], "approve": true}),
            _ => json!({"session_id": session}),
        };
        for door in doors {
            assert_eq!(
                kind_of_refusal(door, method, params.clone()).await.as_deref(),
                Some("forbidden"),
                "{method}"
            );
        }
    }
    assert!(down(&url, &token).await?.starts_with("HTTP/1.1 404"), "only the hub's socket has that");
    // The same call with another input does not match the open approval.
    let other =
        json!({"tool_name": "Bash", "tool_use_id": approval["tool_use_id"], "input": {"command": "id"}});
    let answer = rpc.call("loopback.permit", other).await?;
    assert!(answer.to_string().contains("deny"), "{answer}");

    asked_then_denied(&world, &session, "made.txt").await?;
    world.call("claudecode.stop", json!({"session_id": session})).await?;
    for token in [token.as_str(), "", "made-up"] {
        let stale = Rpc::new(&url, token);
        assert_eq!(
            kind_of_refusal(&stale, "loopback.permit", json!({})).await.as_deref(),
            Some("http_401"),
            "{token:?}"
        );
    }
    Ok(())
}

/// Requests the end of the hub as `plexus down` does. Returns the status line.
async fn down(url: &str, token: &str) -> anyhow::Result<String> {
    let host = url.trim_start_matches("http://");
    let mut stream = tokio::net::TcpStream::connect(host).await?;
    let request = format!(
        "POST /down HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\ncontent-length: 0\r\n\
         connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned())
}

async fn a_session_with_the_hubs_tools_cannot_decide_for_itself(world: World) -> anyhow::Result<()> {
    world.model.script("LEADING", vec![bash("touch made.txt"), Step::text("Well.")]);
    let session = world.create("leading", json!({"hub_tools": true})).await?;
    let stranger = world.create("stranger", json!({})).await?;
    world.chat(&session, "LEADING").await?;
    let (_, approval) = world.asked(&session).await?;
    let rpc = Rpc::new(world.hub.url(), &token(&world, &session, world.setup.channel)?);
    let respond = json!({"approval_id": approval["id"], "approve": true});
    let refusals = [
        ("loopback.respond", respond, "approval_not_found"),
        ("loopback.escalate", json!({"approval_id": approval["id"]}), "approval_not_found"),
        ("claudecode.poll", json!({"session_id": stranger}), "session_not_found"),
        ("claudecode.stop", json!({"session_id": session}), "session_not_found"),
        ("claudecode.chat_async", json!({"session_id": stranger, "prompt": "x"}), "session_not_found"),
        (
            "claudecode.create",
            json!({"name": "ungated", "working_dir": world.work, "loopback_enabled": false}),
            "forbidden",
        ),
    ];
    for (method, params, kind) in refusals {
        assert_eq!(kind_of_refusal(&rpc, method, params).await.as_deref(), Some(kind), "{method}");
    }
    assert_eq!(rpc.call("loopback.pending", json!({})).await?["approvals"], json!([]));
    let listed = rpc.call("claudecode.list", json!({})).await?["sessions"].clone();
    assert_eq!((&listed[0]["id"], &listed[1]), (&json!(session), &Value::Null), "only itself: {listed}");
    asked_then_denied(&world, &session, "made.txt").await?;
    Ok(())
}
