//! The text of a draft. A tool with one main text (a command, the content of a file, a plan) is edited as that text, every other input
//! as JSON. This module also turns the saved text back into an input; `editor` owns the file and the process.

use std::path::Path;

use plexus_protocol::{Approval, ApprovalKind, Object};
use serde_json::{Value, json};

/// The longest extension that is taken from the path of an edited file.
const MAX_EXTENSION: usize = 12;

/// An input that can be edited.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Editable {
    pub(crate) input: Object,
    form: Form,
}

/// What the editor shows.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    /// The whole input.
    Json,
    /// One field as plain text.
    Text { field: &'static str, extension: String, empty: Empty },
}

/// Whether the text may be empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Empty {
    /// An empty file, or an edit that deletes.
    Allowed,
    /// An empty command or plan is more likely a failed save than a decision.
    Refused,
}

impl Editable {
    /// The input of an approval. For a budget request it is the amount to add.
    pub(crate) fn of(approval: &Approval) -> Self {
        if approval.kind == ApprovalKind::Budget {
            let more = approval.input.get("more").cloned().unwrap_or_else(|| json!(1));
            return Self { input: Object::from_iter([("more".to_owned(), more)]), form: Form::Json };
        }
        let input = approval.input.clone();
        let form = form(&approval.tool_name, &input).unwrap_or(Form::Json);
        Self { input, form }
    }

    /// The name of the draft. Its extension selects the editor's highlighting.
    pub(super) fn file_name(&self) -> String {
        match &self.form {
            Form::Json => "input.json".to_owned(),
            Form::Text { field, extension, .. } => format!("{field}.{extension}"),
        }
    }

    /// The initial content of the draft.
    pub(super) fn text(&self) -> String {
        match &self.form {
            Form::Json => format!("{}\n", serde_json::to_string_pretty(&self.input).unwrap_or_default()),
            Form::Text { field, .. } => self.field(field).to_owned(),
        }
    }

    /// The input with the saved text, or what is wrong with the text.
    pub(super) fn read(&self, saved: &str) -> Result<Object, String> {
        match &self.form {
            Form::Json => {
                serde_json::from_str(saved).map_err(|error| format!("this is not a JSON object: {error}"))
            }
            Form::Text { field, empty: Empty::Refused, .. } if saved.trim().is_empty() => {
                Err(format!("the {field} is empty"))
            }
            Form::Text { field, .. } => {
                // Most editors add a newline to the last line when they save.
                let added = !self.field(field).ends_with('\n');
                let text = saved.strip_suffix('\n').filter(|_| added).unwrap_or(saved);
                let mut input = self.input.clone();
                input.insert((*field).to_owned(), Value::String(text.to_owned()));
                Ok(input)
            }
        }
    }

    fn field(&self, name: &str) -> &str {
        self.input.get(name).and_then(Value::as_str).unwrap_or_default()
    }
}

/// The main text of a tool; `None` if it has none, or if the input does not have the expected type.
fn form(tool: &str, input: &Object) -> Option<Form> {
    let (field, extension, empty) = match tool {
        "Bash" | "Monitor" => ("command", "sh".to_owned(), Empty::Refused),
        "PowerShell" => ("command", "ps1".to_owned(), Empty::Refused),
        "Write" => ("content", extension_of(input), Empty::Allowed),
        "Edit" => ("new_string", extension_of(input), Empty::Allowed),
        "ExitPlanMode" => ("plan", "md".to_owned(), Empty::Refused),
        _ => return None,
    };
    input.get(field).filter(|value| value.is_string())?;
    Some(Form::Text { field, extension, empty })
}

/// The extension of the edited file, if it is harmless in the name of a draft.
fn extension_of(input: &Object) -> String {
    let path = input.get("file_path").and_then(Value::as_str).map(Path::new);
    path.and_then(Path::extension)
        .and_then(|extension| extension.to_str())
        .filter(|it| {
            (1..=MAX_EXTENSION).contains(&it.len()) && it.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
        .unwrap_or("txt")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn editable(tool: &str, input: Value) -> Editable {
        let input = input.as_object().unwrap().clone();
        let form = form(tool, &input).unwrap_or(Form::Json);
        Editable { input, form }
    }

    #[test]
    fn a_main_text_is_edited_as_plain_text_with_a_fitting_extension() {
        for (tool, input, name, text) in [
            ("Bash", json!({"command": "echo \"a\"\nls", "timeout": 5}), "command.sh", "echo \"a\"\nls"),
            ("Write", json!({"file_path": "/x/a.rs", "content": "fn a() {}\n"}), "content.rs", "fn a() {}\n"),
            ("Write", json!({"file_path": "/x/Makefile", "content": "a"}), "content.txt", "a"),
            (
                "Edit",
                json!({"file_path": "a.b/c.py", "old_string": "x", "new_string": "y"}),
                "new_string.py",
                "y",
            ),
            ("ExitPlanMode", json!({"plan": "# Plan"}), "plan.md", "# Plan"),
        ] {
            let editable = editable(tool, input);
            assert_eq!((editable.file_name().as_str(), editable.text().as_str()), (name, text), "{tool}");
        }
    }

    #[test]
    fn an_input_without_one_main_text_is_edited_as_json() {
        for (tool, input) in [
            ("Bash", json!({"command": ["ls"]})),
            ("MultiEdit", json!({"file_path": "a", "edits": []})),
            ("WebFetch", json!({"url": "http://x", "prompt": "y"})),
        ] {
            let editable = editable(tool, input);
            assert_eq!(editable.file_name(), "input.json");
            assert_eq!(editable.read(&editable.text()).as_ref(), Ok(&editable.input), "{tool}");
        }
        let other = editable("Other", json!({"a": 1}));
        assert_eq!(other.text(), "{\n  \"a\": 1\n}\n");
        assert!(other.read("{").unwrap_err().starts_with("this is not a JSON object"));
    }

    #[test]
    fn the_saved_text_runs_and_a_newline_of_the_editor_changes_nothing() {
        let command = editable("Bash", json!({"command": "ls", "timeout": 5}));
        assert_eq!(command.read("ls\n").as_ref(), Ok(&command.input));
        assert_eq!(command.read("ls").as_ref(), Ok(&command.input));
        assert_eq!(
            command.read("ls -l\n\n").unwrap(),
            *json!({"command": "ls -l\n", "timeout": 5}).as_object().unwrap()
        );
        let file = editable("Write", json!({"file_path": "a", "content": "a\n"}));
        assert_eq!(file.read("a\n").as_ref(), Ok(&file.input));
        assert_eq!(file.read("a").unwrap()["content"], "a", "a removed newline is a change");
        assert_eq!(file.read("").unwrap()["content"], "");
    }

    #[test]
    fn an_empty_command_is_refused() {
        for saved in ["", " \n"] {
            assert_eq!(
                editable("Bash", json!({"command": "ls"})).read(saved),
                Err("the command is empty".to_owned())
            );
        }
    }

    #[test]
    fn a_path_cannot_choose_another_directory_for_the_draft() {
        for path in ["a.x/../../y", "a.é", "a. b", "a.\u{1b}", "a.aaaaaaaaaaaaaaaaaaa", "a."] {
            let name = editable("Write", json!({"file_path": path, "content": ""})).file_name();
            assert_eq!(name, "content.txt", "{path:?}");
        }
    }
}
