//! The difference between a tool's input and its edited version, as data: the changed fields with their lines. This
//! module does no I/O and no formatting; the transcript, the log and the terminal each format the result themselves.

use std::time::{Duration, Instant};

use plexus_protocol::Object;
use serde_json::Value;
use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{DiffOp, DiffTag, DiffableStr as _};

/// The time limit for the search for the shortest diff; after that any correct diff is used.
const SEARCH: Duration = Duration::from_millis(100);

/// What happened to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The line is in both texts.
    Same,
    /// The line is only in the first text.
    Removed,
    /// The line is only in the second text.
    Added,
    /// A remark about the previous line, not part of either text.
    Note,
}

impl Mark {
    /// The sign in front of a line.
    pub fn sign(self) -> char {
        match self {
            Self::Same => ' ',
            Self::Removed => '-',
            Self::Added => '+',
            Self::Note => '\\',
        }
    }
}

/// One line of a diff, without its newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    /// What happened to the line.
    pub mark: Mark,
    /// The text, not escaped.
    pub text: String,
}

/// A field that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldChange {
    /// Its name, not escaped.
    pub name: String,
    /// All its lines, including unchanged ones.
    pub lines: Vec<DiffLine>,
}

/// The difference between two inputs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputChange {
    /// The fields that differ.
    pub fields: Vec<FieldChange>,
    /// The names of the fields that are equal.
    pub unchanged: Vec<String>,
}

/// Compares two inputs, field by field.
pub fn input_change(before: &Object, after: &Object) -> InputChange {
    let mut change = InputChange::default();
    let added = after.keys().filter(|name| !before.contains_key(*name));
    for name in before.keys().chain(added) {
        let (old, new) = (before.get(name), after.get(name));
        if old == new {
            change.unchanged.push(name.clone());
            continue;
        }
        let lines = match (old, new) {
            (Some(Value::String(old)), Some(Value::String(new))) => line_diff(old, new),
            // The type may be the only difference, so both are shown as JSON.
            (Some(old), Some(new)) => line_diff(&pretty(old), &pretty(new)),
            (old, new) => {
                let mark = if new.is_some() { Mark::Added } else { Mark::Removed };
                all(mark, &old.or(new).map(plain).unwrap_or_default())
            }
        };
        change.fields.push(FieldChange { name: name.clone(), lines });
    }
    change
}

/// Compares two texts line by line. Every line of both is in the result.
pub fn line_diff(old: &str, new: &str) -> Vec<DiffLine> {
    let (old_lines, new_lines) = (old.tokenize_lines(), new.tokenize_lines());
    let last_newline_differs = old.ends_with('\n') != new.ends_with('\n');
    let mut lines = Vec::new();
    let mut add = |mark, texts: &[&str]| {
        for text in texts {
            lines.push(DiffLine { mark, text: text.strip_suffix('\n').unwrap_or(text).to_owned() });
            // Without this, a line that only lost its newline would look unchanged.
            if last_newline_differs && !text.ends_with_newline() {
                lines.push(DiffLine { mark: Mark::Note, text: "no newline at the end".to_owned() });
            }
        }
    };
    for op in edit_script(&old_lines, &new_lines) {
        let (old_range, new_range) = (op.old_range(), op.new_range());
        if op.tag() == DiffTag::Equal {
            add(Mark::Same, &old_lines[old_range]);
        } else {
            add(Mark::Removed, &old_lines[old_range]);
            add(Mark::Added, &new_lines[new_range]);
        }
    }
    lines
}

/// The operations that turn one list of lines into the other. `TextDiff` computes the same, but adds 0.7 MB to the
/// program, because it chooses the algorithm at run time.
fn edit_script(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let deadline = Some(Instant::now() + SEARCH);
    let mut hook = Compact::new(Replace::new(Capture::new()), old, new);
    let Ok(()) = myers::diff_deadline(&mut hook, old, 0..old.len(), new, 0..new.len(), deadline);
    hook.into_inner().into_inner().into_ops()
}

/// All lines of a text under one mark.
pub fn all(mark: Mark, text: &str) -> Vec<DiffLine> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.split('\n').map(|line| DiffLine { mark, text: line.to_owned() }).collect()
}

/// The answers in an edited input of `AskUserQuestion`, which are a reply and not an edit; `None` if anything else
/// changed.
pub fn answers(before: &Object, after: &Object) -> Option<Vec<(String, String)>> {
    let answers = after.get("answers").filter(|_| !before.contains_key("answers"))?.as_object()?;
    let rest_is_same = after
        .iter()
        .filter(|(name, _)| *name != "answers")
        .all(|(name, value)| before.get(name) == Some(value));
    let same_fields = after.len() == before.len() + 1;
    (rest_is_same && same_fields)
        .then(|| answers.iter().map(|(question, answer)| (question.clone(), plain(answer))).collect())
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| pretty(value), str::to_owned)
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Object {
        value.as_object().unwrap().clone()
    }

    fn shown(change: &InputChange) -> Vec<String> {
        let line = |line: &DiffLine| format!("{}{}", line.mark.sign(), line.text);
        change
            .fields
            .iter()
            .flat_map(|field| std::iter::once(field.name.clone()).chain(field.lines.iter().map(line)))
            .collect()
    }

    #[test]
    fn changed_added_and_removed_fields_are_named_with_their_lines() {
        let before = object(json!({"command": "a\nb\nc", "timeout": 1, "gone": "x"}));
        let after = object(json!({"command": "a\nB\nc", "timeout": 1, "new": true}));
        let change = input_change(&before, &after);
        assert_eq!(shown(&change), ["command", " a", "-b", "+B", " c", "gone", "-x", "new", "+true"]);
        assert_eq!(change.unchanged, ["timeout"]);
    }

    #[test]
    fn a_change_of_type_or_of_the_last_newline_is_visible() {
        let change = input_change(&object(json!({"n": "1", "t": "a"})), &object(json!({"n": 1, "t": "a\n"})));
        assert_eq!(shown(&change), ["n", "-\"1\"", "+1", "t", "-a", "\\no newline at the end", "+a"]);
    }

    #[test]
    fn answers_are_a_reply_only_when_nothing_else_changed() {
        let before = object(json!({"questions": [{"question": "Which?"}]}));
        let mut after = before.clone();
        after.insert("answers".to_owned(), json!({"Which?": "blue"}));
        assert_eq!(answers(&before, &after), Some(vec![("Which?".to_owned(), "blue".to_owned())]));
        after.insert("questions".to_owned(), json!([]));
        assert_eq!(answers(&before, &after), None);
        assert_eq!(answers(&before, &before), None);
    }
}
