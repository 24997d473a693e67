//! A tool call as a reader sees it: the command, the changes of a file, the plan. Fields without a form of their own follow as JSON, so
//! nothing of an input is left out.

use plexus_protocol::Object;
use serde_json::Value;

use crate::approvals::edited::{DiffLine, Mark, all, line_diff};

/// A part of a call.
#[derive(Debug, PartialEq)]
pub(super) enum Part {
    /// A short text: a path or a description.
    Note(String),
    /// Source code, with the name of its language.
    Code { text: String, language: String },
    /// The changes of a file.
    Diff(Vec<DiffLine>),
    /// A text in Markdown.
    Markdown(String),
}

/// The parts of a call.
pub(super) fn parts(tool: &str, input: &Value) -> Vec<Part> {
    let Value::Object(input) = input else { return vec![json(input)] };
    let mut rest = input.clone();
    let mut parts = match tool {
        "Bash" | "Monitor" | "PowerShell" => command(&mut rest),
        "Edit" | "MultiEdit" => edits(&mut rest),
        "Write" => written(&mut rest),
        "ExitPlanMode" => take(&mut rest, "plan").map(Part::Markdown).into_iter().collect(),
        _ => Vec::new(),
    };
    if !rest.is_empty() || parts.is_empty() {
        parts.push(json(&Value::Object(rest)));
    }
    parts
}

fn command(input: &mut Object) -> Vec<Part> {
    let Some(text) = take(input, "command") else { return Vec::new() };
    let description = take(input, "description").map(Part::Note);
    let command = Part::Code { text, language: "bash".to_owned() };
    description.into_iter().chain([command]).collect()
}

fn written(input: &mut Object) -> Vec<Part> {
    let Some(text) = take(input, "content") else { return Vec::new() };
    let path = take(input, "file_path");
    let language = path.as_deref().map(language_of).unwrap_or_default();
    path.map(Part::Note).into_iter().chain([Part::Code { text, language }]).collect()
}

fn edits(input: &mut Object) -> Vec<Part> {
    let mut parts: Vec<Part> = take(input, "file_path").map(Part::Note).into_iter().collect();
    parts.extend(diff(input));
    if let Some(Value::Array(edits)) = input.get("edits") {
        let edits: Option<Vec<Vec<Part>>> = edits.iter().map(edit).collect();
        if let Some(edits) = edits {
            input.remove("edits");
            parts.extend(edits.into_iter().flatten());
        }
    }
    parts
}

/// One of several edits.
fn edit(edit: &Value) -> Option<Vec<Part>> {
    let mut rest = edit.as_object()?.clone();
    let diff = diff(&mut rest)?;
    let rest = (!rest.is_empty()).then(|| json(&Value::Object(rest)));
    Some([diff].into_iter().chain(rest).collect())
}

fn diff(input: &mut Object) -> Option<Part> {
    if !input.get("new_string")?.is_string() {
        return None;
    }
    let old = take(input, "old_string");
    let new = take(input, "new_string")?;
    Some(Part::Diff(old.map_or_else(|| all(Mark::Added, &new), |old| line_diff(&old, &new))))
}

fn take(input: &mut Object, name: &str) -> Option<String> {
    let text = input.get(name)?.as_str()?.to_owned();
    // Unlike `remove`, this keeps the order of the other fields.
    input.shift_remove(name);
    Some(text)
}

fn json(value: &Value) -> Part {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    Part::Code { text, language: "json".to_owned() }
}

/// The name of a file's language: its extension, which Markdown renderers know.
fn language_of(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    let extension = name.rsplit_once('.').map(|(_, extension)| extension).unwrap_or_default();
    let known = !extension.is_empty() && extension.len() <= 10;
    if known && extension.chars().all(|c| c.is_ascii_alphanumeric()) {
        extension.to_lowercase()
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn code(text: &str, language: &str) -> Part {
        Part::Code { text: text.to_owned(), language: language.to_owned() }
    }

    #[test]
    fn known_tools_are_rendered_without_json() {
        let bash = json!({"command": "ls\npwd", "description": "look"});
        assert_eq!(parts("Bash", &bash), [Part::Note("look".to_owned()), code("ls\npwd", "bash")]);
        let write = json!({"file_path": "/a/b.RS", "content": "fn x() {}\n"});
        assert_eq!(parts("Write", &write), [Part::Note("/a/b.RS".to_owned()), code("fn x() {}\n", "rs")]);
        let edit = json!({"file_path": "a", "old_string": "x\n", "new_string": "y\n"});
        assert_eq!(parts("Edit", &edit)[1], Part::Diff(line_diff("x\n", "y\n")));
        assert_eq!(parts("ExitPlanMode", &json!({"plan": "# Do"})), [Part::Markdown("# Do".to_owned())]);
    }

    #[test]
    fn no_field_of_an_input_is_left_out() {
        let bash = json!({"command": "ls", "timeout": 5, "z": 1});
        assert_eq!(parts("Bash", &bash)[1], code("{\n  \"timeout\": 5,\n  \"z\": 1\n}", "json"));
        let edits =
            json!({"file_path": "a", "edits": [{"old_string": "x", "new_string": "y", "replace_all": true}]});
        assert_eq!(parts("MultiEdit", &edits)[2], code("{\n  \"replace_all\": true\n}", "json"));
        for (tool, odd) in [
            ("Bash", json!({"command": 7})),
            ("Edit", json!({"new_string": 7, "old_string": "x"})),
            ("MultiEdit", json!({"edits": [{"new_string": "y"}, "z"]})),
            ("Other", json!({})),
            ("Write", json!("text")),
        ] {
            let text = serde_json::to_string_pretty(&odd).unwrap();
            assert_eq!(parts(tool, &odd), [code(&text, "json")], "{tool}");
        }
    }
}
