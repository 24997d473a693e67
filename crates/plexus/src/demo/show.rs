//! How the demo shows what happens: one line, or a few, for each event worth a word.

use std::fmt;
use std::path::Path;

use serde_json::Value;

use crate::review::{Reviewed, Row, rows};
use crate::show::{Requested, changed};
use crate::terminal::{now, safe};

/// Events as the demo tells them.
#[derive(Default)]
pub(super) struct Events(Requested);

impl Events {
    /// An event in words; `None` for those that would only distract.
    pub(super) fn event(&mut self, event: &Value) -> Option<String> {
        let change = self.0.hear(event);
        let lines = self::event(event)?;
        Some(match change {
            Some(rows) => format!("{lines}\n{}", block("", &text_of(&rows))),
            None => lines,
        })
    }
}

fn text_of(rows: &[Row]) -> String {
    rows.iter().map(|row| format!("{}{}", row.lead, row.text)).collect::<Vec<_>>().join("\n")
}

fn event(event: &Value) -> Option<String> {
    let text = |key: &str| event[key].as_str().unwrap_or_default();
    match text("type") {
        "content" => Some(block("agent", text("text"))),
        "tool_use" => Some(block("agent", &format!("[uses {}] {}", text("tool_name"), event["input"]))),
        "approval_resolved" => {
            Some(block("plexus", &format!("decided: {}{}", text("status"), changed(event))))
        }
        "tool_result" if event["is_error"] == true => {
            Some(block("tool", &format!("did not run: {}", plain(event))))
        }
        "tool_result" => Some(block("tool", &plain(event))),
        "error" => Some(block("plexus", &format!("error: {}", text("message")))),
        "complete" => Some(block("plexus", "the turn is complete")),
        _ => None,
    }
}

fn plain(event: &Value) -> String {
    let whole = match &event["output"] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut lines: Vec<&str> = whole.trim_end().lines().take(8).collect();
    if whole.trim_end().lines().count() > lines.len() {
        lines.push("…");
    }
    lines.join("\n")
}

/// Text in a column behind whose it is.
fn block(who: &str, text: &str) -> String {
    let text = safe(text);
    let lines =
        text.lines().enumerate().map(|(n, line)| format!("{:<7}| {line}", if n == 0 { who } else { "" }));
    lines.collect::<Vec<_>>().join("\n")
}

/// An approval, and every way to answer it.
pub(super) struct Question<'a> {
    pub(super) reviewed: &'a Reviewed,
    pub(super) program: &'a Path,
    pub(super) data_dir: &'a Path,
    pub(super) url: &'a str,
}

impl fmt::Display for Question<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reviewed, program, data_dir, url } = self;
        let (program, data_dir) = (program.display(), data_dir.display());
        let (id, digest) = (reviewed.approval.id, reviewed.approval.digest.as_deref().unwrap_or_default());
        writeln!(f, "\nplexus | PERMISSION NEEDED. The agent is stopped until this is answered:")?;
        writeln!(f, "{}", block("", &text_of(&rows(reviewed, now()))))?;
        writeln!(f, "\nFrom another terminal:\n")?;
        writeln!(
            f,
            "  {program} loopback respond --data-dir {data_dir} --approval-id {id} --approve true --digest {digest}\n"
        )?;
        writeln!(f, "or from any program (deny with \"approve\":false and a \"message\"):\n")?;
        writeln!(f, "  curl -s {url}/rpc -H \"Authorization: Bearer $(cat {data_dir}/operator.token)\" \\")?;
        writeln!(
            f,
            "    -d '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"loopback.respond\",\"params\":{{\"approval_id\":\"{id}\",\"approve\":true,\"digest\":\"{digest}\"}}}}'"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_question_shows_tool_and_input_and_the_exact_command() {
        let id = "0b5c0000-0000-4000-8000-000000000000";
        let approval = json!({
            "id": id, "session_id": id, "session_name": "demo", "kind": "tool", "tool_name": "Bash", "tool_use_id": "t",
            "input": {"command": "ls -la"}, "status": "pending", "created_at": 0, "asked_of": {"kind": "operator"}, "cwd": "/",
        });
        let reviewed = Reviewed::read(json!({"approval": approval})).unwrap();
        let question = Question {
            reviewed: &reviewed,
            program: Path::new("/bin/plexus"),
            data_dir: Path::new("/data"),
            url: "http://127.0.0.1:1",
        };
        let shown = question.to_string();
        for part in [
            "Bash",
            "ls -la",
            "/bin/plexus loopback respond --data-dir /data --approval-id 0b5c0000-0000-4000-8000-000000000000 --approve true --digest ",
        ] {
            assert!(shown.contains(part), "{part} is not in {shown}");
        }
    }

    #[test]
    fn long_outputs_are_shown_by_their_beginning() {
        let shown =
            event(&json!({"type": "tool_result", "output": "a\n".repeat(20), "is_error": false})).unwrap();
        assert_eq!(shown.lines().count(), 9);
        assert!(shown.ends_with('…'));
    }
}
