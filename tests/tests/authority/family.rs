//! A family of sessions with a token for each: a grandparent, a parent, the session in the middle with an open approval,
//! its child and its sibling. There are also callers that do not belong to the family.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context as _;
use plexus_e2e::{Setup, World, text};
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};

/// The kind of caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    Operator,
    ReadingToken,
    DecidingToken,
    Grandparent,
    Parent,
    Itself,
    Child,
    Sibling,
    Stranger,
    Expired,
    None,
}

impl Caller {
    pub const ALL: [Self; 11] = [
        Self::Operator,
        Self::ReadingToken,
        Self::DecidingToken,
        Self::Grandparent,
        Self::Parent,
        Self::Itself,
        Self::Child,
        Self::Sibling,
        Self::Stranger,
        Self::Expired,
        Self::None,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::ReadingToken => "token `read`",
            Self::DecidingToken => "token `decide`",
            Self::Grandparent => "grandparent",
            Self::Parent => "parent",
            Self::Itself => "itself",
            Self::Child => "child",
            Self::Sibling => "sibling",
            Self::Stranger => "stranger",
            Self::Expired => "ended token",
            Self::None => "no token",
        }
    }
}

/// The family and its tokens.
pub struct Family {
    pub world: World,
    pub work: PathBuf,
    /// The session in the middle.
    pub target: String,
    /// Its conversation tree, and its head in that tree.
    pub tree: String,
    pub node: String,
    /// Its open approval.
    pub approval: String,
    pub reading_token: String,
    /// A rule that the operator added for it.
    pub rule: u64,
    /// An entry of the user's configuration, as `claudecode.import` takes it.
    pub import: Value,
    tokens: Vec<String>,
    /// The sessions that the operator created.
    roots: Vec<String>,
    names: AtomicU32,
}

impl Family {
    pub async fn new() -> anyhow::Result<Self> {
        let setup = Setup::scripted().with_config("durability = \"normal\"\n[limits]\nsessions = 10000");
        let world = setup.world("scripted").await?.context("the scripted agent is always available")?;
        let work = world.work.clone();
        let (target, tree, node, approval, reading_token) = Default::default();
        let mut family = Self {
            world,
            work,
            target,
            tree,
            node,
            approval,
            reading_token,
            rule: 0,
            import: Value::Null,
            tokens: Vec::new(),
            roots: Vec::new(),
            names: 1.into(),
        };
        family.import = family.importable().await?;
        family.renew().await?;
        let asks = json!({"steps": [{"tool": "Bash", "input": {"command": "true"}}]}).to_string();
        family.world.chat(&family.target, &asks).await?;
        Ok(family)
    }

    async fn importable(&self) -> anyhow::Result<Value> {
        let dir = self.world.home.join(".claude");
        std::fs::create_dir_all(&dir)?;
        std::fs::write(dir.join("settings.json"), r#"{"permissions": {"ask": ["WebSearch"]}}"#)?;
        let items = self.world.call("claudecode.imports", json!({})).await?;
        let item = &items["items"][0];
        Ok(json!({"kind": item["kind"], "name": item["name"], "digest": item["digest"]}))
    }

    pub fn token(&self, who: Caller) -> &str {
        &self.tokens[Caller::ALL.iter().position(|one| *one == who).unwrap_or_default()]
    }

    pub fn fresh_name(&self) -> String {
        format!("n{}", self.names.fetch_add(1, Ordering::Relaxed))
    }

    /// Replaces the family with a new one that no attempt has changed.
    pub async fn renew(&mut self) -> anyhow::Result<()> {
        for root in std::mem::take(&mut self.roots) {
            self.world.call("claudecode.delete", json!({"session_id": root})).await?;
        }
        let operator = self.world.hub.token()?;
        let (root, grandparent) = self.member(&operator).await?;
        let (_, parent) = self.member(&grandparent).await?;
        let (target, itself) = self.member(&parent).await?;
        let (_, child) = self.member(&itself).await?;
        let (_, sibling) = self.member(&parent).await?;
        let (other, stranger) = self.member(&operator).await?;
        self.roots = vec![root, other];
        let (ended, expired) = self.member(&operator).await?;
        self.world.call("claudecode.delete", json!({"session_id": ended})).await?;
        let (reading_token, reads) = self.named("read").await?;
        let (_, decides) = self.named("decide").await?;
        self.approval = self.asks(&target, &itself).await?;
        let got = self.world.call("claudecode.get", json!({"session_id": target})).await?;
        let head = &got["session"]["head"];
        (self.tree, self.node) = (text(&head["tree_id"]), text(&head["node_id"]));
        let rule = json!({"session_id": target, "rules": [{"rule": "Glob", "effect": "ask"}]});
        let made = self.world.call("policy.add", rule).await?;
        self.rule = made["rules"][0]["number"].as_u64().context("its number")?;
        (self.target, self.reading_token) = (target, reading_token);
        self.tokens = vec![
            operator,
            reads,
            decides,
            grandparent,
            parent,
            itself,
            child,
            sibling,
            stranger,
            expired,
            String::new(),
        ];
        Ok(())
    }

    /// Creates a session with this token. Returns it with its own token.
    async fn member(&self, maker: &str) -> anyhow::Result<(String, String)> {
        let (maker, operator) = (self.rpc(maker), self.rpc(&self.world.hub.token()?));
        let params = json!({"name": self.fresh_name(), "working_dir": self.work, "hub_tools": true, "approve_scope": ["*"]});
        let id = text(&maker.call("claudecode.create", params).await?["id"]);
        let given = operator.call("loopback.configure", json!({"session_id": id})).await?;
        let header = text(&given["mcp_config"]["mcpServers"]["plexus"]["headers"]["Authorization"]);
        Ok((id, header.trim_start_matches("Bearer ").to_owned()))
    }

    async fn named(&self, right: &str) -> anyhow::Result<(String, String)> {
        let name = self.fresh_name();
        let made = self.world.call("token.new", json!({"name": name, "right": right})).await?;
        Ok((name, text(&made["token"])))
    }

    /// Requests a permit for a session. Returns the id of the approval.
    async fn asks(&self, session: &str, token: &str) -> anyhow::Result<String> {
        let rpc = self.rpc(token);
        tokio::spawn(async move {
            let call = json!({"tool_name": "Bash", "input": {"command": "true"}, "tool_use_id": "toolu_1"});
            let _ = rpc.call("loopback.permit", call).await;
        });
        let poll = json!({"session_id": session, "wait_ms": 10_000});
        loop {
            let pending = self.world.call("loopback.pending", json!({"session_id": session})).await?;
            if let Some(id) = pending["approvals"][0]["id"].as_str() {
                return Ok(id.to_owned());
            }
            let _: Value = self.world.call("claudecode.poll", poll.clone()).await?;
        }
    }

    fn rpc(&self, token: &str) -> Rpc {
        Rpc::new(self.world.hub.url(), token)
    }
}
