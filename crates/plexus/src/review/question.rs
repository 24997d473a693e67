//! Questions of an agent (`AskUserQuestion`): how they are read from the input, and what a typed answer stands for.

use plexus_protocol::Object;
use serde_json::Value;

use super::row::{Row, Tone};

/// One question of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// As the agent wrote it: the answer is filed under it.
    pub(crate) text: String,
    /// What it offers, and what it says of each.
    pub(crate) options: Vec<(String, Option<String>)>,
}

impl Question {
    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows = Row::exact_lines(Tone::Strong, "? ", &self.text);
        for (number, (label, description)) in self.options.iter().enumerate() {
            rows.push(Row::exact(Tone::Plain, format!("    {}. ", number + 1), label));
            rows.extend(description.iter().flat_map(|it| Row::exact_lines(Tone::Dim, "       ", it)));
        }
        rows
    }

    /// The answer that someone typed: numbers of options, or words of their own.
    pub(crate) fn answer(&self, typed: &str) -> String {
        let chosen: Option<Vec<&str>> = typed
            .split([',', ' '])
            .filter(|part| !part.is_empty())
            .map(|part| {
                let number: usize = part.parse().ok()?;
                self.options.get(number.checked_sub(1)?).map(|(label, _)| label.as_str())
            })
            .collect();
        chosen
            .filter(|labels| !labels.is_empty())
            .map_or_else(|| typed.to_owned(), |labels| labels.join(", "))
    }
}

/// The questions in the input of AskUserQuestion; none when one of them cannot be read.
pub(crate) fn questions(input: &Object) -> Vec<Question> {
    let one = |value: &Value| {
        let text = value["question"].as_str()?.to_owned();
        let options = value["options"].as_array().into_iter().flatten().filter_map(|option| {
            let description = option["description"].as_str().map(str::to_owned);
            Some((option["label"].as_str()?.to_owned(), description))
        });
        Some(Question { text, options: options.collect() })
    };
    let all = input.get("questions").and_then(Value::as_array);
    all.and_then(|all| all.iter().map(one).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stands_for_what_can_be_chosen() {
        let options = vec![("red".to_owned(), None), ("blue".to_owned(), None)];
        let question = Question { text: "Which?".to_owned(), options };
        let said = ["2", "1, 2", "3", "green, 2"].map(|typed| question.answer(typed));
        assert_eq!(said, ["blue", "red, blue", "3", "green, 2"]);
    }
}
