//! An approval as a person sees it, and what the person says to it. It decides nothing and calls nobody.

use plexus_protocol::{Approval, ApprovalKind, Object};
use serde_json::Value;

use crate::terminal::{one_line, safe};

/// How much of one field is shown.
const LINES: usize = 40;
const CHARS: usize = 4000;

/// What a person types to an approval.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// Let it through.
    Yes,
    /// Refuse it, perhaps with a reason.
    No(Option<String>),
    /// Change the input first.
    Edit,
    /// Let it through, and make a rule.
    Always,
    /// Leave it to others.
    Skip,
    /// None of these.
    Unclear,
}

/// Reads what was typed.
pub(crate) fn read(line: &str) -> Said {
    let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
    let rest = rest.trim();
    match (word.to_ascii_lowercase().as_str(), rest.is_empty()) {
        ("y" | "yes", true) => Said::Yes,
        ("n" | "no", true) => Said::No(None),
        ("n" | "no", false) => Said::No(Some(rest.to_owned())),
        ("e" | "edit", true) => Said::Edit,
        ("a" | "always", true) => Said::Always,
        ("s" | "skip", true) => Said::Skip,
        _ => Said::Unclear,
    }
}

/// The question, in lines.
pub(crate) fn shown(approval: &Approval) -> String {
    let tool = one_line(&approval.tool_name, 60);
    let mut lines = vec![match approval.kind {
        ApprovalKind::Tool => format!("{} asks to use {tool}", approval.session_name),
        ApprovalKind::Question => format!("{} asks", approval.session_name),
        ApprovalKind::Plan => format!("{} shows a plan", approval.session_name),
        ApprovalKind::Budget => format!("{} has used up a limit and asks for more", approval.session_name),
    }];
    if approval.kind == ApprovalKind::Question {
        for question in questions(approval) {
            lines.push(format!("  {}", safe(&question.text)));
            for (number, option) in question.options.iter().enumerate() {
                lines.push(format!("    {}. {}", number + 1, one_line(option, 120)));
            }
        }
    } else {
        lines.extend(approval.input.iter().map(|(name, value)| field(name, value)));
    }
    if let Some(reason) = &approval.reason {
        lines.push(format!("  because: {}", one_line(reason, 200)));
    }
    lines.join("\n")
}

fn field(name: &str, value: &Value) -> String {
    let whole = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let text: String = whole.chars().take(CHARS).collect();
    let shown: Vec<&str> = text.lines().take(LINES).collect();
    let cut = shown.join("\n").len() < whole.trim_end().len();
    let mut out = format!("  {:<12} {}", one_line(name, 60), safe(&shown.join("\n               ")));
    if cut {
        out.push_str("\n               … there is more of it: type e to see all");
    }
    out
}

/// One question of several.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// As the agent put it.
    pub(crate) text: String,
    /// What can be chosen.
    pub(crate) options: Vec<String>,
}

/// What an approval of this kind asks.
pub(crate) fn questions(approval: &Approval) -> Vec<Question> {
    let all = approval.input.get("questions").and_then(Value::as_array).cloned().unwrap_or_default();
    let label = |option: &Value| option["label"].as_str().or(option.as_str()).unwrap_or_default().to_owned();
    all.iter()
        .map(|one| Question {
            text: one["question"].as_str().unwrap_or_default().to_owned(),
            options: one["options"].as_array().into_iter().flatten().map(label).collect(),
        })
        .collect()
}

/// The answers so far with one more; numbers stand for what can be chosen, several with commas between.
pub(crate) fn answer(answers: &mut Object, question: &Question, line: &str) {
    let chosen: Option<Vec<&str>> = line
        .split(',')
        .map(|part| {
            question.options.get(part.trim().parse::<usize>().ok()?.checked_sub(1)?).map(String::as_str)
        })
        .collect();
    let text = chosen.map_or_else(|| line.trim().to_owned(), |chosen| chosen.join(", "));
    answers.insert(question.text.clone(), Value::String(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_clear_counts() {
        assert_eq!(read(" Y "), Said::Yes);
        assert_eq!(read("n"), Said::No(None));
        assert_eq!(read("no  not here "), Said::No(Some("not here".to_owned())));
        assert_eq!([read("e"), read("always"), read("s")], [Said::Edit, Said::Always, Said::Skip]);
        for unclear in ["", "yn", "y please", "1", "allow"] {
            assert_eq!(read(unclear), Said::Unclear, "{unclear}");
        }
    }

    #[test]
    fn a_number_stands_for_what_can_be_chosen() {
        let question =
            Question { text: "Which?".to_owned(), options: vec!["red".to_owned(), "blue".to_owned()] };
        let said = |line: &str| {
            let mut answers = Object::new();
            answer(&mut answers, &question, line);
            answers["Which?"].as_str().unwrap().to_owned()
        };
        assert_eq!(
            [said("2"), said("1, 2"), said("3"), said("green, 2")],
            ["blue", "red, blue", "3", "green, 2"]
        );
    }

    #[test]
    fn a_long_field_is_cut_and_says_so() {
        let shown = field("content", &Value::String("x\n".repeat(100)));
        assert_eq!(shown.lines().count(), LINES + 1);
        assert!(shown.ends_with("type e to see all"));
        assert!(!field("a", &Value::String("one\ntwo\n".to_owned())).contains("more of it"));
    }
}
