//! Formats events and approvals for `plexus demo` at the terminal.

use std::fmt;
use std::path::Path;

use serde_json::Value;

use super::DemoHub;
use crate::escape::safe;
use crate::review::{Reviewed, Row, rows};
use crate::show::{Requested, changed, short};
use crate::terminal::now;

/// Events as lines.
#[derive(Default)]
pub(super) struct Events(Requested);

impl Events {
    /// The lines of an event; `None` for an event that is not shown.
    pub(super) fn event(&mut self, event: &Value) -> Option<String> {
        let change = self.0.record(event);
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

/// Text in a column, with the speaker in front of the first line.
fn block(who: &str, text: &str) -> String {
    let text = safe(text);
    let lines =
        text.lines().enumerate().map(|(n, line)| format!("{:<7}| {line}", if n == 0 { who } else { "" }));
    lines.collect::<Vec<_>>().join("\n")
}

/// An approval, and the command that answers it.
pub(super) struct Request<'a> {
    reviewed: &'a Reviewed,
    program: &'a Path,
    data_dir: &'a Path,
}

impl<'a> Request<'a> {
    pub(super) fn new(reviewed: &'a Reviewed, hub: &'a DemoHub) -> Self {
        Self { reviewed, program: hub.program(), data_dir: hub.data_dir() }
    }
}

impl fmt::Display for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reviewed, program, data_dir } = self;
        let (program, data_dir) = (program.display(), data_dir.display());
        let id = reviewed.approval.id.to_string();
        writeln!(f, "\nplexus | APPROVAL NEEDED. The agent waits until you answer:")?;
        writeln!(f, "{}", block("", &text_of(&rows(reviewed, now()))))?;
        writeln!(f, "\nFrom another terminal (`deny` instead of `approve` denies it):\n")?;
        writeln!(f, "  {program} approve {} --data-dir {data_dir}", short(&id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_approval_shows_tool_and_input_and_the_exact_command() {
        let id = "0b5c0000-0000-4000-8000-000000000000";
        let approval = json!({
            "id": id, "session_id": id, "session_name": "demo", "kind": "tool", "tool_name": "Bash", "tool_use_id": "t",
            "input": {"command": "ls -la"}, "status": "pending", "created_at": 0, "asked_of": {"kind": "operator"}, "cwd": "/",
        });
        let reviewed = Reviewed::read(json!({"approval": approval})).unwrap();
        let request =
            Request { reviewed: &reviewed, program: Path::new("/bin/plexus"), data_dir: Path::new("/data") };
        let shown = request.to_string();
        for part in ["Bash", "ls -la", "/bin/plexus approve 0b5c0000 --data-dir /data\n"] {
            assert!(shown.contains(part), "{part} is not in {shown}");
        }
    }

    #[test]
    fn a_long_output_is_cut() {
        let shown =
            event(&json!({"type": "tool_result", "output": "a\n".repeat(20), "is_error": false})).unwrap();
        assert_eq!(shown.lines().count(), 9);
        assert!(shown.ends_with('…'));
    }
}
