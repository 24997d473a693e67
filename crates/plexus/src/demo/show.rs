//! How the demo shows what happens: one line, or a few, for each event worth a word.

use std::fmt;
use std::path::Path;

use serde_json::Value;

/// An event as the demo tells it; `None` for those that would only distract.
pub(super) fn event(event: &Value) -> Option<String> {
    let text = |key: &str| event[key].as_str().unwrap_or_default();
    match text("type") {
        "content" => Some(block("agent", text("text"))),
        "tool_use" => Some(block("agent", &format!("[uses {}] {}", text("tool_name"), event["input"]))),
        "approval_resolved" => Some(block("plexus", &format!("decided: {}", text("status")))),
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
    let lines =
        text.lines().enumerate().map(|(n, line)| format!("{:<7}| {line}", if n == 0 { who } else { "" }));
    lines.collect::<Vec<_>>().join("\n")
}

/// An approval, and every way to answer it.
pub(super) struct Question<'a> {
    pub(super) id: &'a str,
    pub(super) approval: &'a Value,
    pub(super) program: &'a Path,
    pub(super) data_dir: &'a Path,
    pub(super) url: &'a str,
}

impl fmt::Display for Question<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, approval, program, data_dir, url } = self;
        let (program, data_dir) = (program.display(), data_dir.display());
        let tool = approval["tool_name"].as_str().unwrap_or_default();
        writeln!(f, "\nplexus | PERMISSION NEEDED. The agent is stopped until this is answered:")?;
        writeln!(f, "       |   {:<12} {tool}", "tool")?;
        for (name, value) in approval["input"].as_object().into_iter().flatten() {
            let value =
                value.as_str().map_or_else(|| value.to_string(), |text| text.trim_end().replace('\n', "\\n"));
            writeln!(f, "       |   {name:<12} {value}")?;
        }
        writeln!(f, "\nFrom another terminal:\n")?;
        writeln!(
            f,
            "  {program} loopback respond --data-dir {data_dir} --approval-id {id} --approve true\n"
        )?;
        writeln!(f, "or from any program (deny with \"approve\":false and a \"message\"):\n")?;
        writeln!(f, "  curl -s {url}/rpc -H \"Authorization: Bearer $(cat {data_dir}/operator.token)\" \\")?;
        writeln!(
            f,
            "    -d '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"loopback.respond\",\"params\":{{\"approval_id\":\"{id}\",\"approve\":true}}}}'"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_question_shows_tool_and_input_and_the_exact_command() {
        let approval = json!({"tool_name": "Bash", "input": {"command": "ls -la"}});
        let question = Question {
            id: "0b5c",
            approval: &approval,
            program: Path::new("/bin/plexus"),
            data_dir: Path::new("/data"),
            url: "http://127.0.0.1:1",
        };
        let shown = question.to_string();
        for part in [
            "Bash",
            "ls -la",
            "/bin/plexus loopback respond --data-dir /data --approval-id 0b5c --approve true",
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
