//! Access rights: every kind of caller tries every method and every door. The outcomes must equal the table in
//! `docs/authority.md` (`PLEXUS_WRITE_DOCS=1` writes it). A method without a row fails the test.

mod family;
mod tokens;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use plexus_core::Needs;
use plexus_testkit::rpc::{Listener, Rpc, get};
use serde_json::{Value, json};

use family::{Caller, Family};

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The caller may do it.
    Yes,
    /// The caller may do it, but sees nothing of this session.
    Nothing,
    /// Forbidden.
    No,
    /// The caller cannot find the session or approval.
    NotFound,
    /// The caller may do it with another method, which does not wait for its own answers.
    UseAsync,
    /// The token is not valid.
    Nobody,
    /// The permit waits for a decision.
    Asks,
    /// The permit was denied at once.
    Denied,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Nothing => "nothing of it",
            Self::No => "no",
            Self::NotFound => "not found",
            Self::UseAsync => "`chat_async`",
            Self::Nobody => "401",
            Self::Asks => "asks",
            Self::Denied => "denied",
        }
    }
}

/// An attempt on the session in the middle of a family.
enum Attempt {
    /// A method for one session or one approval of it.
    Method(&'static str, fn(&Family) -> Value),
    /// A method that lists everything that its caller may see.
    Overview(&'static str, fn(&Family) -> Value),
    /// A path that is not a method.
    Door(&'static str),
}

fn session(family: &Family) -> Value {
    json!({"session_id": family.target})
}

fn rows() -> Vec<Attempt> {
    use Attempt::{Door, Method, Overview};
    vec![
        Overview("claudecode.list", |_| json!({})),
        Overview("claudecode.streams", |_| json!({})),
        Overview("claudecode.timeline", |_| json!({})),
        Method("claudecode.get", session),
        Method("claudecode.diff", session),
        Method("claudecode.poll", session),
        Method("claudecode.event", |f| json!({"session_id": f.target, "turn": 1, "seq": 0})),
        Overview("arbor.tree_list", |_| json!({"limit": 1000})),
        Method("arbor.tree_get", |f| json!({"tree_id": f.tree})),
        Method("arbor.leaves", |f| json!({"tree_id": f.tree})),
        Method("arbor.search", |f| json!({"query": "word", "tree_id": f.tree})),
        Method("arbor.node_get", |f| json!({"node_id": f.node})),
        Method("arbor.children", |f| json!({"node_id": f.node})),
        Method("arbor.path", session),
        Method("arbor.render", session),
        Method("claudecode.transcript", session),
        Door("GET /sessions/{id}/events"),
        Door("GET /sessions/events"),
        Door("GET /events"),
        Door("GET /metrics"),
        Overview("loopback.pending", |_| json!({})),
        Overview("loopback.wait", |_| json!({})),
        Method("loopback.get", |f| json!({"approval_id": f.approval})),
        Door("GET /approvals/events"),
        Method("loopback.respond", |f| json!({"approval_id": f.approval, "approve": false})),
        Method("loopback.escalate", |f| json!({"approval_id": f.approval})),
        Method("loopback.extend", |f| json!({"approval_id": f.approval, "secs": 60})),
        Method("claudecode.create", |f| json!({"name": f.fresh_name(), "working_dir": f.work})),
        Method("claudecode.chat", |f| json!({"session_id": f.target, "prompt": "{\"steps\": []}"})),
        Method("claudecode.chat_async", |f| json!({"session_id": f.target, "prompt": "{\"steps\": []}"})),
        Method("claudecode.send", |f| json!({"session_id": f.target, "prompt": "go on"})),
        Method("claudecode.compact", session),
        Method("claudecode.interrupt", session),
        Method("claudecode.stop", session),
        Method("claudecode.rename", |f| json!({"session_id": f.target, "new_name": f.fresh_name()})),
        Method("claudecode.set_model", |f| json!({"session_id": f.target, "model": "sonnet"})),
        Method("claudecode.set_permission_mode", |f| json!({"session_id": f.target, "mode": "plan"})),
        Method("claudecode.update", |f| json!({"session_id": f.target, "permission_mode": "plan"})),
        Method("claudecode.output", session),
        Method("claudecode.trust_project", session),
        Method("claudecode.user_settings", |_| json!({})),
        Method("claudecode.recent_dirs", |_| json!({})),
        Method("template.save", |_| json!({"name": "template"})),
        Method("template.list", |_| json!({})),
        Method("template.delete", |_| json!({"name": "template"})),
        Method("claudecode.resumable", |_| json!({"working_dir": "/usr"})),
        Method("claudecode.imports", |_| json!({})),
        Method("claudecode.import", |f| json!({"take": [f.import]})),
        Method("claudecode.set_budget", |f| json!({"session_id": f.target, "budget": {"turns": 1000}})),
        Method("claudecode.fork", |f| json!({"session_id": f.target, "new_name": f.fresh_name()})),
        Method("claudecode.commit", |f| json!({"session_id": f.target, "digest": "0", "message": "Do it"})),
        Method("claudecode.merge", |f| json!({"session_id": f.target, "head": "0", "how": "merge"})),
        Method("claudecode.keep_branch", session),
        Method("claudecode.delete", session),
        Method("arbor.delete", |f| json!({"tree_id": f.tree})),
        Method("loopback.configure", session),
        Method("loopback.permit", |_| json!({"tool_name": "Bash", "input": {}, "tool_use_id": "toolu_2"})),
        Method("policy.list", session),
        Method("policy.test", |f| json!({"session_id": f.target, "tool_name": "Bash", "input": {}})),
        Method("policy.preview", |f| json!({"approval_id": f.approval, "rule": "Bash(true)"})),
        Method(
            "policy.add",
            |f| json!({"session_id": f.target, "rules": [{"rule": "Read", "effect": "ask"}]}),
        ),
        Method("policy.revoke", |f| json!({"number": f.rule})),
        Method("token.new", |f| json!({"name": f.fresh_name(), "right": "read"})),
        Method("token.list", |_| json!({})),
        Method("host.list", |_| json!({})),
        Method("host.add", |_| json!({"host": "gone"})),
        Method("host.drain", |_| json!({"host": "gone"})),
        Method("host.undrain", |_| json!({"host": "gone"})),
        Method("host.lose", |_| json!({"host": "gone"})),
        Method("host.remove", |_| json!({"host": "gone"})),
        Method("host.accept_rollback", |_| json!({})),
        Method("token.revoke", |f| json!({"name": f.reading_token})),
        Method("audit.list", |_| json!({})),
        Method("audit.series", |_| json!({"from": 0})),
        Method("audit.verify", |_| json!({})),
        Method("console.link", |_| json!({})),
    ]
}

impl Attempt {
    fn name(&self) -> &'static str {
        match self {
            Self::Method(name, _) | Self::Overview(name, _) | Self::Door(name) => name,
        }
    }

    fn changes_something(&self) -> bool {
        let methods = plexus_server::methods();
        methods.get(self.name()).is_some_and(|method| !matches!(method.needs, Needs::Read | Needs::Watch))
    }

    async fn by(&self, who: Caller, family: &Family) -> anyhow::Result<Outcome> {
        let (url, token) = (family.world.hub.url(), family.token(who));
        let answer = match self {
            Self::Door("GET /metrics") => get(url, "/metrics", token).await.map(Value::from),
            Self::Door(stream) => {
                let path = stream.trim_start_matches("GET ").replace("{id}", &family.target);
                Listener::open(url, &path, token, None).await.map(|_| Value::Null)
            }
            Self::Method(method, params) | Self::Overview(method, params) => {
                let rpc = Rpc::new(url, token).with_limit(Duration::from_secs(10));
                let call = async { Ok(rpc.call(method, params(family)).await?) };
                if *method == "loopback.permit" {
                    // Nobody answers here, so a call that waits has created an approval.
                    match tokio::time::timeout(Duration::from_millis(500), call).await {
                        Ok(answer) => answer,
                        Err(_) => return Ok(Outcome::Asks),
                    }
                } else {
                    call.await
                }
            }
        };
        Ok(match answer {
            Ok(answer) if answer["behavior"] == "deny" => Outcome::Denied,
            Ok(answer) if matches!(self, Self::Overview(..)) && !shows(&answer, &family.target) => {
                Outcome::Nothing
            }
            Ok(_) => Outcome::Yes,
            Err(error) => match error.kind.as_deref() {
                Some("forbidden" | "http_403") => Outcome::No,
                Some(
                    "session_not_found" | "approval_not_found" | "rule_not_found" | "tree_not_found"
                    | "node_not_found" | "http_404",
                ) => Outcome::NotFound,
                Some("would_wait_for_itself") => Outcome::UseAsync,
                Some("http_401") => Outcome::Nobody,
                // The caller had access, but there was nothing to do.
                Some("invalid_params") if self.name().starts_with("host.") => Outcome::Yes,
                Some(
                    "turn_not_found" | "event_not_found" | "run_not_found" | "no_turn" | "tree_in_use"
                    | "no_worktree",
                ) => Outcome::Yes,
                _ => anyhow::bail!("{} by {who:?}: {error}", self.name()),
            },
        })
    }
}

/// Whether a list contains this session or an approval of it.
fn shows(answer: &Value, session: &str) -> bool {
    let lists = answer.as_object().into_iter().flat_map(|answer| answer.values());
    let mut entries = lists.filter_map(Value::as_array).flatten();
    entries.any(|entry| {
        let speaks = entry["sessions"].as_array().into_iter().flatten().any(|one| one["id"] == session);
        entry["id"] == session || entry["session_id"] == session || speaks
    })
}

#[tokio::test]
async fn every_caller_has_exactly_the_documented_rights() -> anyhow::Result<()> {
    let rows = rows();
    let tried: Vec<&str> = rows.iter().map(Attempt::name).collect();
    for method in plexus_server::methods().all() {
        assert!(tried.contains(&method.name), "{} has no row: say who may call it", method.name);
    }
    let mut family = Family::new().await?;
    let mut used = true;
    let mut table = String::from("|");
    for who in Caller::ALL {
        table += &format!(" | {}", who.title());
    }
    table += " |\n|---|";
    table += &"---|".repeat(Caller::ALL.len());
    table.push('\n');
    for row in &rows {
        table += &format!("| `{}`", row.name());
        for who in Caller::ALL {
            if row.changes_something() && used {
                family.renew().await.with_context(|| format!("before {} by {who:?}", row.name()))?;
                used = false;
            }
            let outcome = row.by(who, &family).await?;
            // A refused call changes nothing: the next caller finds the family as it was.
            used |= !matches!(outcome, Outcome::No | Outcome::NotFound | Outcome::UseAsync | Outcome::Nobody);
            table += &format!(" | {}", outcome.word());
        }
        table += " |\n";
    }
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/authority.md");
    let text = std::fs::read_to_string(&page)?;
    let (before, rest) = text.split_once("<!-- table -->\n").context("the start of the table")?;
    let (said, after) = rest.split_once("<!-- end -->").context("the end of the table")?;
    if std::env::var_os("PLEXUS_WRITE_DOCS").is_some() {
        std::fs::write(page, format!("{before}<!-- table -->\n{table}<!-- end -->{after}"))?;
        return Ok(());
    }
    let cells = |table: &str| -> BTreeMap<String, Vec<String>> {
        let row = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
        table.lines().map(row).map(|row| (row[1].clone(), row[2..].to_vec())).collect()
    };
    let (said, seen) = (cells(said), cells(&table));
    for (row, seen) in &seen {
        assert_eq!(said.get(row), Some(seen), "{row}: the documentation differs from the result");
    }
    assert_eq!(said.len(), seen.len(), "the documentation has rows that were not tried");
    Ok(())
}
