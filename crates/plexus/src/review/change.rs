//! Formats an edited input: the changed fields line by line, and the names of the unchanged ones. Answers to an agent's questions are
//! shown as answers.

use plexus_core::edited::{Mark, answers, input_change};
use plexus_protocol::{Approval, ApprovalKind, Object};

use super::approval::field;
use super::original::{Escapes, original};
use super::row::{Row, Tone};
use crate::escape::exact;

/// The prefix of the row that names the unchanged fields.
const UNCHANGED: &str = "  unchanged: ";

/// The edited input of an approval, in full. The editor gets the text that the hub shows, so a character that the hub escaped as `\u{…}`
/// has become text, which is shown as a change.
pub(crate) fn rows_of_edit(approval: &Approval, before: &Object, after: &Object) -> Vec<Row> {
    let (asked, escapes) = original(approval);
    if escapes == Escapes::Literal || approval.kind == ApprovalKind::Budget {
        return rows_in_full(before, after);
    }
    let mut rows = rows_in_full(&asked.input, after);
    rows.push(Row::new(
        Tone::Warn,
        "Characters that the hub escaped as \\u{…} are now text, shown as \\\\u{…}.",
    ));
    rows.push(Row::new(Tone::Warn, "The escapes will run, not the characters."));
    rows
}

/// The whole input that will run, with the changes marked.
pub(crate) fn rows_in_full(before: &Object, after: &Object) -> Vec<Row> {
    let mut rows = rows(before, after);
    rows.retain(|row| row.lead != UNCHANGED);
    let unchanged = input_change(before, after).unchanged;
    if !unchanged.is_empty() {
        rows.push(Row::new(Tone::Dim, "unchanged:"));
    }
    for name in unchanged {
        rows.extend(after.get(&name).iter().flat_map(|value| field(&name, value)));
    }
    rows
}

/// The changes between the requested input and the one that runs.
pub(crate) fn rows(before: &Object, after: &Object) -> Vec<Row> {
    if let Some(answers) = answers(before, after) {
        return answers.iter().flat_map(|(question, answer)| answer_rows(question, answer)).collect();
    }
    let change = input_change(before, after);
    let mut rows = Vec::new();
    for field in &change.fields {
        rows.push(Row { tone: Tone::Strong, lead: "  ".into(), text: format!("{}:", exact(&field.name)) });
        for line in &field.lines {
            let (tone, lead) = match line.mark {
                Mark::Same => (Tone::Plain, "    "),
                Mark::Removed => (Tone::Removed, "  - "),
                Mark::Added => (Tone::Added, "  + "),
                Mark::Note => (Tone::Dim, "  \\ "),
            };
            rows.push(Row::exact(tone, lead, &line.text));
        }
    }
    if !change.unchanged.is_empty() && !change.fields.is_empty() {
        let names: Vec<String> = change.unchanged.iter().map(|name| exact(name)).collect();
        rows.push(Row { tone: Tone::Dim, lead: UNCHANGED.into(), text: names.join(", ") });
    }
    rows
}

fn answer_rows(question: &str, answer: &str) -> Vec<Row> {
    vec![Row::exact(Tone::Dim, "  ", question), Row::exact(Tone::Strong, "    answer: ", answer)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(before: serde_json::Value, after: serde_json::Value) -> Vec<String> {
        let rows = rows(before.as_object().unwrap(), after.as_object().unwrap());
        rows.iter().map(|row| format!("{}{}", row.lead, row.text)).collect()
    }

    #[test]
    fn an_edit_names_its_fields_and_hides_nothing() {
        let before = json!({"command": "touch a", "description": "x"});
        let after = json!({"command": "touch\u{a0}b ", "description": "x"});
        assert_eq!(
            shown(before, after),
            ["  command:", "  - touch a", "  + touch\\u{a0}b·", "  unchanged: description"]
        );
    }

    #[test]
    fn answers_to_a_question_are_not_shown_as_an_edit() {
        let before = json!({"questions": [{"question": "Which?"}]});
        let after = json!({"questions": [{"question": "Which?"}], "answers": {"Which?": "blue"}});
        assert_eq!(shown(before, after), ["  Which?", "    answer: blue"]);
    }
}
