//! Signing in to the web console, and its files, over plain HTTP. The tests in a browser are in `tests/tests/console/`.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use plexus_testkit::executable;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::support::{Events, LIMIT, TestHub, read, text};

impl TestHub {
    /// The code of a new link.
    async fn code(&self) -> String {
        let printed = self.run(&["console", "--print"]).await;
        assert!(printed.status.success(), "{}", text(&printed.stderr));
        let link = text(&printed.stdout);
        let (page, code) = link.trim().split_once("/#login=").unwrap();
        assert_eq!(page, self.process.url());
        code.to_owned()
    }

    async fn login(&self, code: &str, origin: Option<&str>) -> (StatusCode, Value) {
        let mut request = Request::post("/console/login").header("content-type", "application/json");
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        read(self.send(request, json!({"code": code}).to_string()).await).await
    }

    async fn sign_in(&self) -> Value {
        let (status, answer) = self.login(&self.code().await, Some(self.process.url())).await;
        assert_eq!(status, 200, "{answer}");
        answer
    }

    async fn events(&self, token: &Value, query: &str) -> Events {
        let bearer = format!("Bearer {}", token["token"].as_str().unwrap());
        let request = Request::get(format!("/events{query}")).header("authorization", bearer);
        Events::of(self.send(request, "").await)
    }

    fn links(&self) -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(self.process.data_dir()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|kind| kind == "html")).collect()
    }
}

impl Events {
    /// The next event: its name and its data. It skips comments.
    async fn next_event(&mut self) -> (String, Value) {
        loop {
            let event = self.next().await.expect("the stream is open");
            let of = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
            if let Some(data) = of("data: ") {
                return (of("event: ").unwrap(), serde_json::from_str(&data).unwrap());
            }
        }
    }

    /// The first event of each of these names, in any order.
    async fn each<const N: usize>(&mut self, names: [&str; N]) -> [Value; N] {
        let mut found = [const { Value::Null }; N];
        let all = async {
            while found.iter().any(Value::is_null) {
                let (name, data) = self.next_event().await;
                if let Some(at) = names.iter().position(|wanted| *wanted == name)
                    && found[at].is_null()
                {
                    found[at] = data;
                }
            }
        };
        tokio::time::timeout(LIMIT, all).await.expect("an event of each name");
        found
    }

    async fn named(&mut self, name: &str) -> Value {
        let [data] = self.each([name]).await;
        data
    }
}

#[tokio::test]
async fn the_page_is_public_and_loads_only_its_own_files() {
    let hub = TestHub::start().await;
    let page = hub.send(Request::get("/"), "").await;
    assert_eq!(page.status(), 200);
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "connect-src 'self'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.headers()["x-frame-options"], "DENY");
    assert!(!page.headers().contains_key("set-cookie"));
    let (_, page) = read(page).await;
    let page = page.as_str().unwrap().to_owned();
    let script = page.split("src=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a script");
    let zipped = hub.send(Request::get(script).header("accept-encoding", "gzip, br"), "").await;
    assert_eq!(
        (zipped.status(), &zipped.headers()["content-encoding"]),
        (StatusCode::OK, &"gzip".parse().unwrap())
    );
    assert!(zipped.headers()["cache-control"].to_str().unwrap().contains("immutable"));
    let foreign = hub.send(Request::get("/").header("host", "evil.example"), "").await;
    assert_eq!(foreign.status(), 403);
}

#[tokio::test]
async fn a_link_signs_in_once_and_only_from_a_page_of_the_hub() {
    let hub = TestHub::start().await;
    let code = hub.code().await;
    let file = hub.links().pop().expect("a file that leads there");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(std::fs::read_to_string(&file).unwrap().contains(&code));
    for origin in [None, Some("http://127.0.0.1:1"), Some("null")] {
        assert_eq!(hub.login(&code, origin).await.0, 403, "{origin:?}");
    }
    let (status, answer) = hub.login(&code, Some(hub.process.url())).await;
    assert_eq!(status, 200, "{answer}");
    assert!(hub.links().is_empty(), "its file goes with it");
    let (status, again) = hub.login(&code, Some(hub.process.url())).await;
    assert_eq!(status, 401);
    assert!(again["error"]["message"].as_str().unwrap().contains("plexus console"), "{again}");
    assert_eq!(hub.login("rubbish", Some(hub.process.url())).await.0, 401);

    // The signed-in page acts as the operator, is listed among the tokens and can be signed out.
    let tokens = hub.call("token.list", json!({})).await.unwrap();
    assert_eq!(
        (&tokens["tokens"][0]["name"], &tokens["tokens"][0]["right"]),
        (&answer["name"], &json!("operator"))
    );
    let mut events = hub.events(&answer, "").await;
    assert_eq!(events.named("hello").await["may"], json!(["read", "watch", "decide", "act", "rule"]));
    hub.call("token.revoke", json!({"name": answer["name"]})).await.unwrap();
    while events.next().await.is_some() {}
}

/// Other users can see a command line, so it must not contain a secret.
#[tokio::test]
async fn the_browser_gets_a_file_and_no_secret() {
    let hub = TestHub::start().await;
    let bin = hub.folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let opener = bin.join("xdg-open");
    executable::write(&opener, "#!/bin/sh\necho \"$@\" > \"$HOME/opened\"\n").unwrap();
    let mut command = crate::support::plexus(hub.folder.path());
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    command.env("PATH", path).args(["console", "--data-dir"]).arg(hub.process.data_dir());
    let output = tokio::process::Command::from(command).output().await.unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let opened = std::fs::read_to_string(hub.folder.path().join("opened")).unwrap();
    let page = std::fs::read_to_string(opened.trim()).unwrap();
    let code = page.split("#login=").nth(1).and_then(|rest| rest.split('"').next()).expect("a code");
    assert!(
        !opened.contains(code)
            && !text(&output.stdout).contains(code)
            && !text(&output.stderr).contains(code)
    );
    assert_eq!(hub.login(code, Some(hub.process.url())).await.0, 200);
}

#[tokio::test]
async fn one_stream_has_all_events_and_resumes_after_a_restart() {
    let mut hub = TestHub::start().await;
    let token = hub.sign_in().await;
    let mut events = hub.events(&token, "").await;
    let hello = events.named("hello").await;
    let (session, approval) = hub.asking_session("a").await;
    let [asked, _] = events.each(["approval", "changed"]).await;
    assert_eq!((&asked["type"], &asked["approval"]["id"]), (&json!("asked"), &json!(approval)));

    hub.process.kill9().await.unwrap();
    hub.process.restart().await.unwrap();
    let query = format!("?after={}&session={session}&turn=1&from_seq=0", hello["cursor"]);
    let mut events = hub.events(&token, &query).await;
    let [asked, first] = events.each(["approval", "session"]).await;
    assert_eq!(asked["approval"]["id"], approval, "an event that was not received is sent again");
    assert_eq!(first["event"]["type"], "start");
    hub.call("loopback.respond", json!({"approval_id": approval, "approve": true})).await.unwrap();
    assert_eq!(events.named("approval").await["type"], "resolved");

    let unknown = format!("?session={}", "00000000-0000-4000-8000-000000000000");
    let error = hub.events(&token, &unknown).await.named("error").await;
    assert_eq!((&error["type"], &error["session"]), (&json!("session_not_found"), &json!(true)));
}

#[tokio::test]
async fn another_machine_connects_over_tls_and_by_an_allowed_name() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["hub.example".to_owned()]).unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let hub = TestHub::with_settings(&format!(
        "[console]\nallowed_hosts = [\"hub.example:{port}\"]\nlisten = \"127.0.0.1:{port}\"\ntls_cert = \"{}\"\ntls_key = \"{}\"\n[doors]\nhandshake_secs = 2\n",
        cert.display(),
        key.display()
    ))
    .await;
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let get = async |path: &str, host: String| -> Response<Incoming> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let name = ServerName::try_from("hub.example").unwrap();
        let stream = TlsConnector::from(Arc::new(client.clone())).connect(name, stream).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = Request::get(path).header("host", host).header("authorization", hub.bearer());
        sender.send_request(request.body(Empty::<bytes::Bytes>::new()).unwrap()).await.unwrap()
    };
    let own = format!("hub.example:{port}");
    assert_eq!(get("/", own.clone()).await.status(), 200);
    assert_eq!(get("/events", own.clone()).await.status(), 200);
    assert_eq!(get("/", "other.example".to_owned()).await.status(), 403);
    for path in ["/mcp", "/metrics", "/down", "/sessions/events"] {
        assert_eq!(get(path, own.clone()).await.status(), 404, "{path} is for this machine");
    }
    // Connections that never finish a handshake block no other connection, and are closed.
    let mut silent = Vec::new();
    for _ in 0..600 {
        silent.push(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
    }
    let served = tokio::time::timeout(LIMIT, get("/", own.clone())).await;
    assert_eq!(served.expect("an answer beside them").status(), 200);
    for stream in &mut silent {
        let end = tokio::time::timeout(LIMIT, stream.read(&mut [0; 64])).await;
        assert!(end.is_ok_and(|read| !read.is_ok_and(|bytes| bytes > 0)), "the hub closes it");
    }
    // A client without TLS gets nothing.
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let plain = Request::get("/").header("host", own).body(Empty::<bytes::Bytes>::new()).unwrap();
    assert!(sender.send_request(plain).await.is_err());
    let body = get("/health", format!("127.0.0.1:{port}")).await.into_body().collect().await.unwrap();
    assert!(text(&body.to_bytes()).contains("ok"));
}

#[tokio::test]
async fn a_missing_certificate_is_reported_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let lines = format!(
        "[console]\nallowed_hosts = [\"hub.example\"]\nlisten = \"127.0.0.1:0\"\ntls_cert = \"{0}/none.pem\"\ntls_key = \"{0}/none.pem\"\n",
        folder.path().display()
    );
    std::fs::write(data.join("plexus.toml"), lines).unwrap();
    let args = ["serve", "--listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap()];
    let refused = crate::support::run(&args, folder.path()).await;
    assert_eq!(refused.status.code(), Some(5));
    assert!(text(&refused.stderr).contains("none.pem"), "{}", text(&refused.stderr));
}
