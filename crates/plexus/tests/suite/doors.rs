//! Peers that send incomplete requests, do not read, or stay silent: each costs the hub little, and the operator and other sessions are
//! served meanwhile. Slow peers with a reason are served, too.

use std::time::Duration;

use futures::future::join_all;
use http::Request;
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::support::{Events, LIMIT, TestHub, read, text};

/// Time limits that a test can wait for and that clients on a busy machine can keep.
const SHORT: &str = "[doors]\nhandshake_secs = 3\nhead_secs = 3\nbody_stall_secs = 3\nbody_secs = 10\n\
                     write_stall_secs = 3\nheartbeat_secs = 0.1\nwaiting = 256\n";
const MIB: usize = 1024 * 1024;
/// The time limit for the hub to close a connection after three seconds, on a busy machine.
const CLOSE_LIMIT: Duration = Duration::from_secs(60);

/// Another session that requests a permit during an attack.
struct Bystander {
    session: String,
    token: String,
}

impl TestHub {
    async fn bystander(&self) -> Bystander {
        let (session, token) = self.outside_session("bystander").await;
        Bystander { session, token }
    }

    /// Checks that the operator is served on both doors, and that another session's permit is decided.
    async fn serves_the_others(&self, bystander: &Bystander) {
        self.call("claudecode.list", json!({})).await.unwrap();
        let listed = self.run(&["ls"]).await;
        assert!(listed.status.success(), "{}", text(&listed.stderr));
        let mut events = Events::of(self.send(mcp(&bystander.token), permit("bystander")).await);
        let approval = self.first_approval(&bystander.session).await;
        let allow = json!({"approval_id": approval, "approve": true});
        self.call("loopback.respond", allow).await.unwrap();
        loop {
            let message = events.message().await.expect("a decision");
            if message["id"] == 42 {
                let said = message["result"]["content"][0]["text"].as_str().unwrap().to_owned();
                return assert!(said.contains("\"allow\""), "{said}");
            }
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.authority()).await.unwrap()
    }

    /// Waits until a figure has this value.
    pub(crate) async fn figure_becomes(&self, name: &str, reached: impl Fn(f64) -> bool) {
        let found = async {
            loop {
                let request = Request::get("/metrics").header("authorization", self.bearer());
                let (_, page) = read(self.send(request, "").await).await;
                let page = page.as_str().unwrap_or_default().to_owned();
                let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
                if line.is_some_and(|value| reached(value.parse().unwrap())) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(CLOSE_LIMIT, found).await.unwrap_or_else(|_| panic!("{name} is never reached"));
    }

    fn memory_mb(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<usize>().unwrap() / 1024
    }
}

fn mcp(token: &str) -> http::request::Builder {
    Request::post("/mcp")
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
}

fn permit(tool_use_id: &str) -> String {
    json!({"jsonrpc": "2.0", "id": 42, "method": "tools/call", "params": {
        "name": "loopback_permit",
        "arguments": {"tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": tool_use_id},
        "_meta": {"progressToken": "p"},
    }})
    .to_string()
}

/// Waits until the hub has closed the connection. Returns its output.
async fn closed(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut said = Vec::new();
    let end = timeout(CLOSE_LIMIT, stream.read_to_end(&mut said)).await;
    // A connection that is closed with unread bytes is reset.
    assert!(end.is_ok(), "the hub does not close the connection; it said {}", text(&said));
    text(&said)
}

/// Writes as much as the hub accepts.
async fn offer(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) {
    let _ = timeout(LIMIT, stream.write_all(bytes)).await;
}

fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

#[tokio::test]
async fn thousands_of_incomplete_heads_are_closed_and_others_are_served() {
    raise_open_files();
    let hub = TestHub::with_settings(SHORT).await;
    let bystander = hub.bystander().await;
    let mut half = Vec::new();
    for _ in 0..3000 {
        let mut stream = hub.connect().await;
        offer(&mut stream, b"POST /rpc HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthor").await;
        half.push(stream);
    }
    hub.serves_the_others(&bystander).await;
    join_all(half.iter_mut().map(closed)).await;
    hub.figure_becomes("plexus_connections{door=\"http\"}", |open| open < 10.0).await;
}

#[tokio::test]
async fn an_endless_head_is_rejected() {
    let hub = TestHub::with_settings(SHORT).await;
    let mut stream = hub.connect().await;
    offer(&mut stream, format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(MIB)).as_bytes()).await;
    closed(&mut stream).await;
    assert!(hub.call("claudecode.list", json!({})).await.is_ok());
}

#[tokio::test]
async fn incomplete_bodies_of_unknown_peers_are_not_buffered() {
    let hub = TestHub::with_settings(SHORT).await;
    let bystander = hub.bystander().await;
    let before = hub.memory_mb();
    let host = hub.authority();
    let mut unfinished = Vec::new();
    for number in 0..150 {
        let mut stream = hub.connect().await;
        let framing = if number % 2 == 0 { "content-length: 2000000" } else { "transfer-encoding: chunked" };
        let head = format!(
            "POST /console/login HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\n{framing}\r\n\r\n"
        );
        offer(&mut stream, head.as_bytes()).await;
        if number % 2 == 1 {
            offer(&mut stream, b"1E847F\r\n").await;
        }
        offer(&mut stream, &vec![b' '; 1_990_000]).await;
        unfinished.push(stream);
    }
    let grown = hub.memory_mb().saturating_sub(before);
    assert!(grown < 60, "the hub grew by {grown} MB");
    hub.serves_the_others(&bystander).await;
    join_all(unfinished.iter_mut().map(closed)).await;
}

#[tokio::test]
async fn a_stalled_login_times_out_and_a_large_one_is_rejected_at_once() {
    let hub = TestHub::with_settings(SHORT).await;
    let host = hub.authority();
    let head = |length: usize| {
        format!(
            "POST /console/login HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    let mut pausing = hub.connect().await;
    offer(&mut pausing, format!("{}{{", head(100)).as_bytes()).await;
    let said = closed(&mut pausing).await;
    assert!(said.starts_with("HTTP/1.1 408") && said.contains("retry-after: 1"), "{said}");
    assert!(said.contains("request_timeout"), "{said}");
    let mut large = hub.connect().await;
    offer(&mut large, head(4097).as_bytes()).await;
    let said = closed(&mut large).await;
    assert!(said.starts_with("HTTP/1.1 413") && said.contains("4096"), "{said}");
}

#[tokio::test]
async fn a_stalled_body_of_a_session_times_out() {
    let hub = TestHub::with_settings(SHORT).await;
    let bystander = hub.bystander().await;
    let (_, token) = hub.outside_session("slow").await;
    let head = format!(
        "POST /rpc HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\ncontent-length: 1000000\r\n\r\n{{",
        hub.authority()
    );
    let mut pausing = Vec::new();
    for _ in 0..300 {
        let mut stream = hub.connect().await;
        offer(&mut stream, head.as_bytes()).await;
        pausing.push(stream);
    }
    hub.serves_the_others(&bystander).await;
    let said = join_all(pausing.iter_mut().map(closed)).await;
    assert!(said.iter().any(|said| said.starts_with("HTTP/1.1 408")), "{said:?}");
}

#[tokio::test]
async fn the_buffered_bodies_of_one_session_are_bounded() {
    let hub = TestHub::with_settings("[doors]\nbodies_per_caller_mb = 16\n").await;
    let bystander = hub.bystander().await;
    let (_, token) = hub.outside_session("greedy").await;
    let before = hub.memory_mb();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n",
        hub.authority(),
        16 * MIB
    );
    let most_of_it = vec![b' '; 15 * MIB];
    let mut unfinished = Vec::new();
    for _ in 0..12 {
        let mut stream = hub.connect().await;
        offer(&mut stream, head.as_bytes()).await;
        offer(&mut stream, &most_of_it).await;
        unfinished.push(stream);
    }
    hub.figure_becomes("plexus_turned_away_total{limit=\"bodies_per_caller_mb\"}", |times| times >= 11.0)
        .await;
    let grown = hub.memory_mb().saturating_sub(before);
    assert!(grown < 80, "the hub grew by {grown} MB");
    hub.serves_the_others(&bystander).await;
    // A rejected request gets its response when its body is complete.
    let last = unfinished.last_mut().unwrap();
    offer(last, &vec![b' '; MIB]).await;
    let mut said = [0; 12];
    timeout(LIMIT, last.read_exact(&mut said)).await.unwrap().unwrap();
    assert_eq!(text(&said), "HTTP/1.1 429");
}

#[tokio::test]
async fn a_peer_that_does_not_read_is_disconnected() {
    let hub = TestHub::with_settings(SHORT).await;
    let bystander = hub.bystander().await;
    let flood = json!([{"flood": {"events": 4000, "bytes": 10_000}}, {"say": "done"}]).to_string();
    let create = json!({"name": "flooding", "working_dir": hub.work(), "prompt": flood});
    let session = hub.call("claudecode.create", create).await.unwrap()["id"].as_str().unwrap().to_owned();
    let mut stream = hub.connect().await;
    let head = format!(
        "GET /sessions/{session}/events HTTP/1.1\r\nhost: {}\r\nauthorization: {}\r\n\r\n",
        hub.authority(),
        hub.bearer()
    );
    offer(&mut stream, head.as_bytes()).await;
    hub.figure_becomes("plexus_listeners{stream=\"session\"}", |listening| listening == 1.0).await;
    hub.serves_the_others(&bystander).await;
    hub.figure_becomes("plexus_listeners{stream=\"session\"}", |listening| listening == 0.0).await;
    drop(stream);
}

#[tokio::test]
async fn an_idle_new_socket_is_closed_and_a_used_one_stays() {
    let hub = TestHub::with_settings(SHORT).await;
    let bystander = hub.bystander().await;
    let open = async || {
        let mut request = format!("ws://{}/rpc", hub.authority()).into_client_request().unwrap();
        request.headers_mut().insert("authorization", hub.bearer().parse().unwrap());
        connect_async(request).await.unwrap().0
    };
    let mut silent = open().await;
    let mut speaking = open().await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "claudecode.list"}).to_string();
    let speak = async |socket: &mut tokio_tungstenite::WebSocketStream<_>| {
        use futures::{SinkExt as _, StreamExt as _};
        socket.send(Message::text(call.clone())).await.unwrap();
        loop {
            match timeout(LIMIT, socket.next()).await.unwrap().unwrap().unwrap() {
                Message::Text(answer) => return assert!(answer.contains("\"id\":1"), "{answer}"),
                other => assert!(other.is_ping(), "{other:?}"),
            }
        }
    };
    speak(&mut speaking).await;
    hub.serves_the_others(&bystander).await;
    closed(silent.get_mut()).await;
    speak(&mut speaking).await;
}

#[tokio::test]
async fn an_unfinished_message_closes_the_socket() {
    let hub = TestHub::with_settings(SHORT).await;
    let (_, token) = hub.outside_session("slow").await;
    let mut stream = hub.connect().await;
    let head = format!(
        "GET /rpc HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\nupgrade: websocket\r\n\
         connection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        hub.authority()
    );
    offer(&mut stream, head.as_bytes()).await;
    let mut said = [0; 12];
    timeout(LIMIT, stream.read_exact(&mut said)).await.unwrap().unwrap();
    assert_eq!(text(&said), "HTTP/1.1 101");
    // A ping, which is answered, and then one byte of a frame of 1000 bytes.
    offer(&mut stream, &[0x89, 0x80, 0, 0, 0, 0]).await;
    offer(&mut stream, &[0x81, 0xFE, 0x03, 0xE8, 0, 0, 0, 0, b' ']).await;
    closed(&mut stream).await;
}

#[tokio::test]
async fn silent_connections_to_the_unix_socket_are_closed() {
    let hub = TestHub::with_settings(SHORT).await;
    let bystander = hub.bystander().await;
    let path = hub.process.data_dir().join("hub.sock");
    let mut silent = Vec::new();
    for _ in 0..400 {
        silent.push(UnixStream::connect(&path).await.unwrap());
    }
    hub.serves_the_others(&bystander).await;
    join_all(silent.iter_mut().map(closed)).await;
}

#[tokio::test]
async fn a_caller_over_its_limit_is_rejected_and_others_are_served() {
    let hub = TestHub::with_settings("[doors]\ncalls_per_caller = 3\n").await;
    let bystander = hub.bystander().await;
    let (_, token) = hub.outside_session("many").await;
    let mut waiting = Vec::new();
    for number in 0..3 {
        waiting.push(Events::of(hub.send(mcp(&token), permit(&number.to_string())).await));
    }
    let refused = hub.send(mcp(&token), permit("3")).await;
    assert_eq!(refused.headers()["retry-after"], "1");
    let (status, answer) = read(refused).await;
    assert_eq!((status.as_u16(), &answer["error"]["data"]["type"]), (429, &json!("too_many_calls")));
    assert_eq!(answer["result"], Value::Null, "which no agent takes for a decision");
    hub.serves_the_others(&bystander).await;
    // A call that ends makes room for the next.
    drop(waiting.pop());
    let found = async { while hub.send(mcp(&token), permit("4")).await.status() != 200 {} };
    timeout(CLOSE_LIMIT, found).await.unwrap();
}

#[tokio::test]
async fn slow_but_active_peers_are_served() {
    let settings = "progress_secs = 0.1\n[doors]\nhandshake_secs = 1\nhead_secs = 1\nbody_stall_secs = 1\nbody_secs = 60\n\
                    write_stall_secs = 1\nheartbeat_secs = 0.1\n";
    let hub = TestHub::with_settings(settings).await;
    let (session, token) = hub.outside_session("patient").await;
    // A permit and followers stay open for longer than every limit.
    let mut waiting = Events::of(hub.send(mcp(&token), permit("patient")).await);
    let follow = async |path: &str| {
        Events::of(hub.send(Request::get(path).header("authorization", hub.bearer()), "").await)
    };
    for path in ["/events", "/approvals/events", "/sessions/events", &format!("/sessions/{session}/events")] {
        let mut events = follow(path).await;
        let mut alive = 0;
        while alive < 15 {
            alive += usize::from(events.next().await.expect("the stream is open") == ": alive");
        }
    }
    for _ in 0..15 {
        assert_eq!(waiting.message().await.expect("the permit waits on")["method"], "notifications/progress");
    }
    // A large body arrives slowly.
    let prompt = format!("{}{}", json!([{"say": "read it"}]), " ".repeat(15 * MIB));
    let chat = json!({"jsonrpc": "2.0", "id": 1, "method": "claudecode.chat_async",
        "params": {"session_id": session, "prompt": prompt}})
    .to_string();
    let mut stream = hub.connect().await;
    let head = format!(
        "POST /rpc HTTP/1.1\r\nhost: {}\r\nauthorization: {}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        hub.authority(),
        hub.bearer(),
        chat.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    for piece in chat.as_bytes().chunks(2 * MIB) {
        stream.write_all(piece).await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let said = closed(&mut stream).await;
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    let approval = hub.first_approval(&session).await;
    hub.call("loopback.respond", json!({"approval_id": approval, "approve": true})).await.unwrap();
    while waiting.message().await.expect("a decision")["id"] != 42 {}
}
