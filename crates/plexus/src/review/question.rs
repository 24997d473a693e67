//! Questions of an agent (`AskUserQuestion`): parses them from the input, and parses typed answers.

use plexus_protocol::Object;
use serde_json::Value;

use super::row::{Row, Tone};
use crate::escape::exact;

/// One question of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// The text, which is also the key of the answer.
    pub(crate) text: String,
    /// The options and their descriptions.
    pub(crate) options: Vec<(String, Option<String>)>,
    pub(crate) choice: Choice,
}

/// How many options an answer may select.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// One.
    One,
    /// One or more (`multiSelect`).
    Several,
}

/// The meaning of a typed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// An answer.
    Answer(String),
    /// Text that is not one of the options and needs confirmation.
    FreeText(String),
    /// Not an answer, and the reason.
    Invalid(String),
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

    /// The forms that an answer may have, for the prompt.
    pub(crate) fn forms(&self) -> &'static str {
        match (self.options.is_empty(), self.choice) {
            (true, _) => "words",
            (false, Choice::One) => "a number or words",
            (false, Choice::Several) => "a number, several such as 1,3, or words",
        }
    }

    /// The text after a digit was typed. A digit selects an option; if several may be selected, it also deselects one. Other text, and
    /// options with two digits, are typed as usual.
    pub(crate) fn with_digit(&self, text: &str, digit: char) -> String {
        let is_number = |part: &&str| part.len() == 1 && part.bytes().all(|byte| byte.is_ascii_digit());
        let mut chosen: Vec<&str> = text.split(',').filter(|part| !part.is_empty()).collect();
        if !(1..=9).contains(&self.options.len()) || !chosen.iter().all(is_number) {
            return format!("{text}{digit}");
        }
        let digit = digit.to_string();
        match self.choice {
            Choice::One => return digit,
            Choice::Several if chosen.contains(&digit.as_str()) => chosen.retain(|part| *part != digit),
            Choice::Several => chosen.push(&digit),
        }
        chosen.sort_unstable();
        chosen.join(",")
    }

    /// The typed text, and the options that its numbers select.
    pub(crate) fn explained(&self, typed: &str) -> String {
        match self.read(typed.trim()) {
            Reply::Answer(labels) if labels != typed => format!("{} = {}", exact(typed), exact(&labels)),
            _ => exact(typed),
        }
    }

    /// Parses a line: numbers of options, an option, or other text.
    pub(crate) fn read(&self, typed: &str) -> Reply {
        let own = if self.options.is_empty() { Reply::Answer } else { Reply::FreeText };
        if self.options.iter().any(|(label, _)| label == typed) {
            return Reply::Answer(typed.to_owned());
        }
        let parts: Vec<&str> = typed.split([',', ' ']).filter(|part| !part.is_empty()).collect();
        let is_number =
            |part: &&str| part.strip_prefix('-').unwrap_or(part).bytes().all(|byte| byte.is_ascii_digit());
        if self.options.is_empty() || parts.is_empty() || !parts.iter().all(is_number) {
            return own(typed.to_owned());
        }
        let chosen: Option<Vec<&str>> = parts
            .iter()
            .map(|part| {
                let number: usize = part.parse().ok()?;
                self.options.get(number.checked_sub(1)?).map(|(label, _)| label.as_str())
            })
            .collect();
        let all = self.options.len();
        match (chosen, self.choice) {
            (None, _) => Reply::Invalid(format!("choose 1 to {all}")),
            (Some(labels), Choice::One) if labels.len() > 1 => {
                Reply::Invalid(format!("choose one of 1 to {all}: this question takes one answer"))
            }
            (Some(labels), _) => Reply::Answer(labels.join(", ")),
        }
    }
}

/// The prompt that confirms an answer that is not one of the options.
pub(crate) fn confirm_free_text(words: &str) -> String {
    format!("Send \"{}\" as your answer? y or n: ", exact(words))
}

/// The questions in the input of AskUserQuestion; none if one of them is invalid.
pub(crate) fn questions(input: &Object) -> Vec<Question> {
    let one = |value: &Value| {
        let text = value["question"].as_str()?.to_owned();
        let options = value["options"].as_array().into_iter().flatten().filter_map(|option| {
            let description = option["description"].as_str().map(str::to_owned);
            Some((option["label"].as_str()?.to_owned(), description))
        });
        let choice = if value["multiSelect"] == true { Choice::Several } else { Choice::One };
        Some(Question { text, options: options.collect(), choice })
    };
    let all = input.get("questions").and_then(Value::as_array);
    all.and_then(|all| all.iter().map(one).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_selects_an_option_and_other_text_needs_confirmation() {
        let options = vec![("red".to_owned(), None), ("blue".to_owned(), None)];
        let one = Question { text: "Which?".to_owned(), options, choice: Choice::One };
        let several = Question { choice: Choice::Several, ..one.clone() };
        let open = Question { options: Vec::new(), ..one.clone() };
        let answer = |text: &str| Reply::Answer(text.to_owned());
        let own = |text: &str| Reply::FreeText(text.to_owned());
        assert_eq!(
            [one.read("2"), one.read("blue"), several.read("1, 2")],
            ["blue", "blue", "red, blue"].map(answer)
        );
        assert_eq!(
            ["n", "q", "green, 2", "2nd", ","].map(|typed| one.read(typed)),
            ["n", "q", "green, 2", "2nd", ","].map(own)
        );
        for typed in ["0", "3", "-1", "1,3", "99999999999999999999999"] {
            assert_eq!(several.read(typed), Reply::Invalid("choose 1 to 2".to_owned()), "{typed}");
        }
        assert!(matches!(one.read("1,2"), Reply::Invalid(_)), "one answer only");
        assert_eq!(["3", "large"].map(|typed| open.read(typed)), ["3", "large"].map(answer));
    }

    #[test]
    fn a_digit_selects_an_option_and_toggles_it_if_several_are_possible() {
        let options = ["red", "blue", "green"].map(|label| (label.to_owned(), None)).to_vec();
        let one = Question { text: "Which?".to_owned(), options, choice: Choice::One };
        let several = Question { choice: Choice::Several, ..one.clone() };
        assert_eq!([one.with_digit("", '2'), one.with_digit("2", '3')], ["2", "3"]);
        assert_eq!(several.with_digit("3", '1'), "1,3");
        assert_eq!(several.with_digit("1,3", '1'), "3");
        assert_eq!(one.with_digit("option ", '2'), "option 2", "words are typed as usual");
        assert_eq!(several.explained("1,3"), "1,3 = red, green");
        assert_eq!([one.explained("pink"), one.explained("7")], ["pink", "7"]);
        let many = Question { options: vec![("x".to_owned(), None); 12], ..one };
        assert_eq!(many.with_digit("1", '2'), "12");
    }
}
