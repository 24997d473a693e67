//! `plexus mcp`: MCP on stdio, with and without a running hub.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use plexus_testkit::impostor::Impostor;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::support::{LIMIT, TestHub, plexus};

/// The public key by which relays identify this hub while it runs.
fn hub_key(hub: &TestHub) -> String {
    let note = std::fs::read(hub.process.data_dir().join("hub.json")).unwrap();
    let note: Value = serde_json::from_slice(&note).unwrap();
    note["key"].as_str().unwrap().to_owned()
}

struct Relay {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
}

impl Relay {
    async fn start(home: &Path, args: &[&str], env: &[(&str, &str)]) -> Self {
        let mut command = tokio::process::Command::from(plexus(home));
        command.arg("mcp").args(args).envs(env.iter().copied()).env("PLEXUS_PROGRESS_MS", "50");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut relay = Self { child, stdin, stdout };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        relay.send(json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello})).await;
        assert_eq!(relay.next().await["result"]["serverInfo"]["name"], "plexus");
        relay.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        relay
    }

    async fn parent(hub: &TestHub, name: &str) -> Self {
        let data_dir = hub.process.data_dir().to_str().unwrap();
        Self::start(hub.folder.path(), &["--data-dir", data_dir, "--as", name], &[]).await
    }

    async fn child(hub: &TestHub, token: &str) -> Self {
        let key = hub_key(hub);
        let env = [
            ("PLEXUS_HUB_URL", hub.process.url()),
            ("PLEXUS_TOKEN", token),
            ("PLEXUS_HUB_KEY", key.as_str()),
        ];
        Self::start(hub.folder.path(), &[], &env).await
    }

    async fn send(&mut self, message: Value) {
        let line = format!("{message}\n");
        self.stdin.as_mut().unwrap().write_all(line.as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let line =
            tokio::time::timeout(LIMIT, self.stdout.next_line()).await.expect("a line").unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn call_tool(&mut self, id: u64, name: &str, arguments: Value) {
        let params = json!({"name": name, "arguments": arguments, "_meta": {"progressToken": id}});
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await;
    }

    async fn tools(&mut self) -> Value {
        self.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
        self.answer(1).await["tools"].clone()
    }

    async fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next().await;
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    }

    /// The text of a tool's result, as JSON.
    async fn result(&mut self, id: u64) -> Value {
        let result = self.answer(id).await;
        serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
    }
}

fn permit(tool_use_id: &str) -> Value {
    json!({"tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": tool_use_id})
}

#[tokio::test]
async fn a_parent_supervises_a_child_without_any_secret() {
    let hub = TestHub::start().await;
    let mut relay = Relay::parent(&hub, "me").await;
    relay.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
    let tools = relay.answer(1).await;
    assert!(tools["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "claudecode_create"));
    let prompt = json!([{"tool": "Bash", "input": {"command": "touch made"}}]).to_string();
    let create = json!({"name": "a", "working_dir": hub.work(), "prompt": prompt});
    relay.call_tool(2, "claudecode_create", create).await;
    let session = relay.result(2).await["id"].clone();
    let approval = hub.first_approval(session.as_str().unwrap()).await;
    relay.call_tool(3, "loopback_wait", json!({})).await;
    let asked = relay.result(3).await;
    assert_eq!(asked["approvals"][0]["id"], approval.as_str());
    assert_eq!(asked["approvals"][0]["asked_of"], json!({"kind": "parent", "id": "me"}));
    let answer =
        json!({"approval_id": approval, "approve": true, "wait_ms": 10_000, "cursor": asked["cursor"]});
    relay.call_tool(4, "loopback_respond", answer).await;
    relay.result(4).await;
    relay.call_tool(5, "claudecode_get", json!({"name": "nobody"})).await;
    let refused = relay.answer(5).await;
    assert_eq!(refused["isError"], true);

    let mut stranger = Relay::parent(&hub, "someone-else").await;
    stranger.call_tool(1, "claudecode_get", json!({"session_id": session})).await;
    assert_eq!(stranger.result(1).await["type"], "session_not_found");
}

#[tokio::test]
async fn a_relayed_chat_that_would_wait_for_its_own_caller_is_refused() {
    let hub = TestHub::start().await;
    let mut parent = Relay::parent(&hub, "me").await;
    let prompt = json!([{"tool": "Bash", "input": {"command": "touch made"}}]).to_string();
    parent.call_tool(1, "claudecode_create", json!({"name": "a", "working_dir": hub.work()})).await;
    let session = parent.result(1).await["id"].clone();
    parent.call_tool(2, "claudecode_chat", json!({"session_id": session, "prompt": prompt})).await;
    // A call that waits sends progress, so the limit of one line is not enough.
    let refused = tokio::time::timeout(LIMIT, parent.result(2)).await.expect("an answer at once");
    assert_eq!(refused["type"], "would_wait_for_itself", "{refused}");
    for tool in ["claudecode_chat_async", "loopback_wait", "claudecode_poll"] {
        assert!(refused["message"].as_str().unwrap().contains(tool), "{refused}");
    }
    let poll = hub.call("claudecode.poll", json!({"session_id": session})).await.unwrap();
    assert_eq!((&poll["status"], &poll["turn"]), (&json!("idle"), &json!(0)), "no turn was started");

    let lead = json!({"name": "lead", "working_dir": hub.work(), "hub_tools": true, "approve_scope": ["*"]});
    let lead = hub.call("claudecode.create", lead).await.unwrap()["id"].clone();
    let mut lead = Relay::child(&hub, &hub.token_of_outside_run(lead.as_str().unwrap()).await).await;
    lead.call_tool(1, "claudecode_create", json!({"name": "b", "working_dir": hub.work()})).await;
    let session = lead.result(1).await["id"].clone();
    lead.call_tool(2, "claudecode_chat", json!({"session_id": session, "prompt": prompt})).await;
    let refused = tokio::time::timeout(LIMIT, lead.result(2)).await.expect("an answer at once");
    assert_eq!(refused["type"], "would_wait_for_itself", "{refused}");
}

#[tokio::test]
async fn a_session_manages_its_children_within_its_own_mode() {
    let hub = TestHub::start().await;
    let lead = json!({"name": "lead", "working_dir": hub.work(), "hub_tools": true});
    let lead = hub.call("claudecode.create", lead).await.unwrap()["id"].clone();
    let mut lead = Relay::child(&hub, &hub.token_of_outside_run(lead.as_str().unwrap()).await).await;
    lead.call_tool(1, "claudecode_create", json!({"name": "child", "working_dir": hub.work()})).await;
    let child = lead.result(1).await["id"].clone();
    let get = || hub.call("claudecode.get", json!({"session_id": child}));

    let looser = json!({"session_id": child, "new_name": "other", "permission_mode": "acceptEdits"});
    lead.call_tool(2, "claudecode_update", looser).await;
    let refused = lead.result(2).await;
    assert_eq!((&refused["type"], &refused["field"]), (&json!("forbidden"), &json!("permission_mode")));
    let view = get().await.unwrap()["session"].clone();
    assert_eq!(
        (&view["name"], &view["permission_mode"]),
        (&json!("child"), &json!("default")),
        "all or nothing"
    );

    let update = json!({"name": "child", "new_name": "other", "permission_mode": "plan", "model": "sonnet"});
    lead.call_tool(3, "claudecode_update", update).await;
    assert_eq!(lead.result(3).await["updated"], json!(["new_name", "permission_mode", "model"]));
    let view = get().await.unwrap()["session"].clone();
    assert_eq!(
        (&view["name"], &view["permission_mode"], &view["model"]),
        (&json!("other"), &json!("plan"), &json!("sonnet"))
    );
    let stopped = hub.run(&["stop", "lead/other"]).await;
    assert!(stopped.status.success(), "the operator names a child by its path: {stopped:?}");
    lead.call_tool(4, "claudecode_update", json!({"session_id": child})).await;
    assert_eq!(lead.result(4).await["type"], "invalid_params", "an update without a change");
    lead.call_tool(5, "claudecode_update", json!({"name": "lead", "new_name": "boss"})).await;
    assert_eq!(lead.result(5).await["type"], "session_not_found", "it cannot change itself");
    lead.call_tool(6, "claudecode_delete", json!({"session_id": child})).await;
    assert_eq!(lead.result(6).await["type"], "ok");
    assert_eq!(get().await.unwrap_err()["data"]["type"], "session_not_found");
}

#[tokio::test]
async fn a_permit_outlives_a_hub_that_is_killed() {
    let mut hub = TestHub::start().await;
    let (session, token) = hub.outside_session("outside").await;
    let mut relay = Relay::child(&hub, &token).await;
    relay.call_tool(1, "loopback_permit", permit("t1")).await;
    let approval = hub.first_approval(&session).await;
    hub.process.kill9().await.unwrap();
    for _ in 0..5 {
        assert_eq!(
            relay.next().await["method"],
            "notifications/progress",
            "it sends progress without the hub"
        );
    }
    hub.process.restart().await.unwrap();
    hub.call("loopback.respond", json!({"approval_id": approval, "approve": true})).await.unwrap();
    let decision = relay.result(1).await;
    assert_eq!(decision, json!({"behavior": "allow", "updatedInput": {"command": "ls"}}));
    let open = hub.call("loopback.pending", json!({})).await.unwrap();
    assert_eq!(open["approvals"], json!([]), "the repeated request has the same approval");
}

#[tokio::test]
async fn an_impostor_on_the_hubs_port_neither_decides_nor_gets_the_token() {
    let mut hub = TestHub::start().await;
    let (session, token) = hub.outside_session("outside").await;
    let mut relay = Relay::child(&hub, &token).await;
    let url = hub.process.url().to_owned();
    hub.process.kill9().await.unwrap();
    let impostor = Impostor::listen(&url).await.unwrap();
    relay.call_tool(1, "loopback_permit", permit("t1")).await;
    let until = tokio::time::Instant::now() + LIMIT;
    while impostor.heard().len() < 3 {
        assert!(tokio::time::Instant::now() < until, "the relay requests the identity");
        assert_eq!(relay.next().await["method"], "notifications/progress", "nothing is decided");
    }
    for heard in impostor.heard() {
        assert!(heard.starts_with("GET /identity?nonce=") && !heard.contains(&token), "{heard}");
    }
    impostor.stop().await;
    hub.process.restart().await.unwrap();
    let approval = hub.first_approval(&session).await;
    hub.call("loopback.respond", json!({"approval_id": approval, "approve": false, "message": "no"}))
        .await
        .unwrap();
    assert_eq!(relay.result(1).await, json!({"behavior": "deny", "message": "no"}));
}

/// A program between a relay and the hub. It forwards all bytes in both directions and records what the relay sends.
async fn between(hub: SocketAddr, relays: TcpListener, heard: Arc<Mutex<Vec<u8>>>) {
    while let Ok((relay, _)) = relays.accept().await {
        let heard = Arc::clone(&heard);
        tokio::spawn(async move {
            let (mut from_relay, mut to_relay) = relay.into_split();
            let (mut from_hub, mut to_hub) = TcpStream::connect(hub).await.unwrap().into_split();
            let answers = tokio::spawn(async move { tokio::io::copy(&mut from_hub, &mut to_relay).await });
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = from_relay.read(&mut piece).await {
                heard.lock().unwrap().extend_from_slice(&piece[..count]);
                to_hub.write_all(&piece[..count]).await.unwrap();
            }
            answers.abort();
        });
    }
}

#[tokio::test]
async fn a_relayed_proof_is_rejected() {
    let relays = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = relays.local_addr().unwrap().to_string();
    // The hub signs for this host, as it does for its own if a program has taken a connection on the hub's port.
    let hub = TestHub::with_settings(&format!("[console]\nallowed_hosts = [\"{address}\"]\n")).await;
    let (_, token) = hub.outside_session("outside").await;
    let heard: Arc<Mutex<Vec<u8>>> = Arc::default();
    let hub_address = hub.process.url().trim_start_matches("http://").parse().unwrap();
    tokio::spawn(between(hub_address, relays, Arc::clone(&heard)));
    let (key, url) = (hub_key(&hub), format!("http://{address}"));
    let env = [("PLEXUS_HUB_URL", url.as_str()), ("PLEXUS_TOKEN", &token), ("PLEXUS_HUB_KEY", &key)];
    let mut relay = Relay::start(hub.folder.path(), &[], &env).await;
    relay.call_tool(1, "loopback_permit", permit("t1")).await;
    let text = || String::from_utf8_lossy(&heard.lock().unwrap()).into_owned();
    let until = tokio::time::Instant::now() + LIMIT;
    while text().matches("GET /identity?nonce=").count() < 3 {
        assert!(tokio::time::Instant::now() < until, "the relay requests the identity");
        assert_eq!(relay.next().await["method"], "notifications/progress", "nothing is decided");
    }
    assert!(!text().contains(&token), "{}", text());
}

#[tokio::test]
async fn a_hub_does_not_share_its_port() {
    let mut hub = TestHub::start().await;
    let url = hub.process.url().to_owned();
    let address: SocketAddr = url.trim_start_matches("http://").parse().unwrap();
    hub.process.kill9().await.unwrap();
    // Bound like the hub's socket, but not listening: the kernel would connect it to a peer whose port it guesses.
    let impostor = tokio::net::TcpSocket::new_v4().unwrap();
    impostor.set_reuseaddr(true).unwrap();
    impostor.bind(address).unwrap();
    hub.process.restart().await.unwrap();
    assert_ne!(hub.process.url(), url);
}

#[tokio::test]
async fn a_permit_outlives_a_regular_stop_of_the_hub() {
    let mut hub = TestHub::start().await;
    let (session, token) = hub.outside_session("outside").await;
    let mut relay = Relay::child(&hub, &token).await;
    relay.call_tool(1, "loopback_permit", permit("t1")).await;
    let approval = hub.first_approval(&session).await;
    hub.process.restart().await.unwrap();
    hub.call("loopback.respond", json!({"approval_id": approval, "approve": false, "message": "no"}))
        .await
        .unwrap();
    assert_eq!(relay.result(1).await, json!({"behavior": "deny", "message": "no"}));
}

#[tokio::test]
async fn a_permit_rejected_for_load_is_retried() {
    let hub = TestHub::with_settings("[doors]\ncalls_per_caller = 1\n").await;
    let (session, token) = hub.outside_session("outside").await;
    let (mut first, mut second) = (Relay::child(&hub, &token).await, Relay::child(&hub, &token).await);
    first.call_tool(1, "loopback_permit", permit("t1")).await;
    let approval = hub.first_approval(&session).await;
    second.call_tool(2, "loopback_permit", permit("t2")).await;
    hub.figure_becomes("plexus_turned_away_total{limit=\"calls_per_caller\"}", |times| times >= 2.0).await;
    let deny = json!({"approval_id": approval, "approve": false, "message": "no"});
    hub.call("loopback.respond", deny).await.unwrap();
    assert_eq!(first.result(1).await["behavior"], "deny");
    let approval = hub.first_approval(&session).await;
    hub.call("loopback.respond", json!({"approval_id": approval, "approve": true})).await.unwrap();
    assert_eq!(second.result(2).await["behavior"], "allow");
}

#[tokio::test]
async fn a_permit_with_an_invalid_token_is_denied() {
    let hub = TestHub::start().await;
    let mut relay = Relay::child(&hub, "a-token-nobody-has").await;
    relay.call_tool(1, "loopback_permit", permit("t1")).await;
    assert_eq!(relay.result(1).await["behavior"], "deny");
}

#[tokio::test]
async fn a_relay_starts_before_the_hub_and_waits_for_it() {
    let mut hub = TestHub::start().await;
    hub.process.terminate().await.unwrap();
    let mut relay = Relay::parent(&hub, "me").await;
    relay.call_tool(2, "claudecode_list", json!({})).await;
    assert_eq!(relay.next().await["method"], "notifications/progress");
    hub.process.restart().await.unwrap();
    assert_eq!(relay.result(2).await["type"], "ok");
}

#[tokio::test]
async fn a_relay_lists_the_tools_of_the_hub_even_without_a_hub() {
    let mut hub = TestHub::start().await;
    let (_, token) = hub.outside_session("outside").await;
    let url = hub.process.url().to_owned();
    let key = hub_key(&hub);
    let child =
        [("PLEXUS_HUB_URL", url.as_str()), ("PLEXUS_TOKEN", &token), ("PLEXUS_HUB_KEY", key.as_str())];
    let with_tools = [child[0], child[1], child[2], ("PLEXUS_HUB_TOOLS", "1")];
    let for_parents = hub.tools(&hub.bearer()).await;
    let for_children = hub.tools(&format!("Bearer {token}")).await;
    assert_eq!(for_children[0]["name"], "loopback_permit", "{for_children}");
    hub.process.terminate().await.unwrap();

    let mut parent = Relay::parent(&hub, "me").await;
    assert_eq!(parent.tools().await, for_parents);
    let mut relay = Relay::start(hub.folder.path(), &[], &child).await;
    assert_eq!(relay.tools().await, for_children);
    let mut relay = Relay::start(hub.folder.path(), &[], &with_tools).await;
    let (with_tools, parents) = (relay.tools().await, for_parents.as_array().unwrap().len());
    assert_eq!(with_tools.as_array().unwrap().len(), parents + 1, "{with_tools}");
}

#[tokio::test]
async fn a_cancelled_call_frees_its_slot() {
    let hub = TestHub::start().await;
    let cursor = hub.call("loopback.wait", json!({})).await.unwrap()["cursor"].clone();
    let mut relay = Relay::parent(&hub, "me").await;
    relay.call_tool(1, "loopback_wait", json!({"cursor": cursor, "timeout_ms": 600_000})).await;
    assert_eq!(relay.next().await["method"], "notifications/progress");
    relay
        .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}))
        .await;
    relay.call_tool(2, "claudecode_list", json!({})).await;
    assert_eq!(relay.result(2).await["type"], "ok");
}

#[tokio::test]
async fn a_relay_exits_with_its_client() {
    let hub = TestHub::start().await;
    let mut relay = Relay::parent(&hub, "me").await;
    relay.call_tool(1, "loopback_wait", json!({"cursor": 0, "timeout_ms": 600_000})).await;
    drop(relay.stdin.take());
    let status = tokio::time::timeout(LIMIT, relay.child.wait()).await.expect("it ends").unwrap();
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn a_relay_exits_when_the_data_directory_is_deleted() {
    for (hub_first, renamed) in [(true, false), (false, true)] {
        let mut hub = TestHub::start().await;
        let mut relay = Relay::parent(&hub, "me").await;
        assert!(relay.tools().await.is_array());
        if hub_first {
            hub.process.kill9().await.unwrap();
        }
        let data_dir = hub.process.data_dir();
        if renamed {
            std::fs::rename(data_dir, data_dir.with_file_name("moved")).unwrap();
        } else {
            std::fs::remove_dir_all(data_dir).unwrap();
        }
        let ended = tokio::time::timeout(LIMIT, relay.child.wait()).await.expect("an end").unwrap();
        assert!(ended.success(), "{ended}");
    }
}

#[tokio::test]
async fn a_relay_exits_with_its_parent_even_if_stdin_stays_open() {
    let hub = TestHub::start().await;
    let relay = plexus(hub.folder.path());
    let mut shell = tokio::process::Command::new("sh");
    // A FIFO that the relay itself has open for writing never ends.
    let [stdin, stdout] = ["stdin", "stdout"].map(|name| hub.folder.path().join(name));
    shell
        .args(["-c", "mkfifo \"$2\"; \"$0\" mcp --data-dir \"$1\" <> \"$2\" > \"$3\" & echo $!; read -r go"])
        .arg(relay.get_program())
        .arg(hub.process.data_dir())
        .args([&stdin, &stdout])
        .env_clear()
        .envs(relay.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    let mut said = BufReader::new(shell.stdout.take().unwrap()).lines();
    let pid: i32 = said.next_line().await.unwrap().unwrap().parse().unwrap();
    let relay = plexus_agent::ProcessIdentity::of(pid).unwrap();
    // After its first response it knows its parent.
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello});
    std::fs::write(&stdin, format!("{hello}\n")).unwrap();
    let answered = async {
        while std::fs::metadata(&stdout).map_or(0, |answer| answer.len()) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, answered).await.expect("an answer");
    drop(shell.stdin.take());
    shell.wait().await.unwrap();
    let ended = async {
        if let Some(relay) = plexus_agent::Keeper::attach(&relay).unwrap() {
            relay.ended().await;
        }
    };
    tokio::time::timeout(LIMIT, ended).await.expect("the relay ends");
}
