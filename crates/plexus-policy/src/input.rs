//! Searches the input of a tool without rules of its own, such as an MCP tool. It finds texts that may be command
//! lines, and treats every text as a possible file or host name. The findings only restrict; they never allow a call.

use serde_json::{Map, Value};

use crate::subject::Command;

/// The maximum number of texts and command lines to examine. Beyond it, every deny and ask rule may match.
const MAX_TEXTS: usize = 1_000;
/// The parser rejects longer lines anyway.
const MAX_TEXT_BYTES: usize = 10_000;

/// The findings in an input.
#[derive(Debug, Default)]
pub(crate) struct Contents<'a> {
    /// Texts in fields whose names indicate a command, in the order they were found.
    pub(crate) lines: Vec<Command>,
    /// Every text.
    pub(crate) texts: Vec<&'a str>,
    /// Whether the limit left part of the input unexamined.
    pub(crate) cut: bool,
}

impl Contents<'_> {
    fn line(&mut self, line: Option<String>) {
        match line {
            Some(_) if self.lines.len() >= MAX_TEXTS => self.cut = true,
            Some(line) => self.lines.push(Command::new(line)),
            None => {}
        }
    }
}

/// Whether the texts below a field name are command lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Command,
    Unknown,
}

/// Searches the input of a tool.
pub(crate) fn search<'a>(tool: &str, input: &'a Value) -> Contents<'a> {
    let mut found = Contents::default();
    collect(input, Meaning::Unknown, &mut found);
    if found.lines.is_empty() && words(tool).any(|word| tool_runs_commands(&word)) {
        found.lines = found.texts.iter().map(|text| Command::new((*text).to_owned())).collect();
    }
    found
}

fn collect<'a>(value: &'a Value, meaning: Meaning, found: &mut Contents<'a>) {
    if found.texts.len() >= MAX_TEXTS {
        found.cut = true;
        return;
    }
    match value {
        Value::String(text) => {
            found.texts.push(text);
            if meaning == Meaning::Command {
                found.line(Some(text.clone()));
            }
        }
        Value::Array(values) => {
            if meaning == Meaning::Command {
                found.line(joined(None, values));
            }
            values.iter().for_each(|value| collect(value, meaning, found));
        }
        Value::Object(fields) => object(fields, meaning, found),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn object<'a>(fields: &'a Map<String, Value>, meaning: Meaning, found: &mut Contents<'a>) {
    if fields.len() > MAX_TEXTS {
        found.cut = true;
        return;
    }
    for (name, value) in fields {
        let named = words(name).any(|word| names_command(&word));
        collect(value, if named { Meaning::Command } else { meaning }, found);
        if let (true, Some(program)) = (named, value.as_str()) {
            // `{"command": "git", "args": ["push"]}`
            let lists = fields.values().filter_map(Value::as_array).filter(|list| !list.is_empty());
            lists.for_each(|list| found.line(joined(Some(program), list)));
        }
    }
}

/// Builds a command line from a program and its arguments, each as one word; `None` if they are not all strings. A line
/// that is too long ends in a character that the parser rejects.
fn joined(program: Option<&str>, list: &[Value]) -> Option<String> {
    let mut line = program.unwrap_or_default().to_owned();
    for word in list {
        let word = word.as_str()?;
        if line.len() + word.len() > MAX_TEXT_BYTES {
            line.truncate(0);
            line.push('\0');
            break;
        }
        line.push_str(" '");
        line.push_str(&word.replace('\'', r"'\''"));
        line.push('\'');
    }
    Some(line)
}

/// The words of a name, in lower case: `shellCommand`, `shell_command` and `shell-command` have the same two.
fn words(name: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut after_small = false;
    for c in name.chars() {
        if !c.is_alphabetic() || c.is_uppercase() && after_small {
            words.push(String::new());
        }
        after_small = c.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| c.is_alphabetic()) {
            word.extend(c.to_lowercase());
        }
    }
    words.into_iter()
}

/// Whether a word in a field name indicates that its value is run.
fn names_command(word: &str) -> bool {
    ["command", "cmd", "script", "shell"].iter().any(|start| word.starts_with(start))
        || word.ends_with("command")
        || word.ends_with("cmd")
        || matches!(
            word,
            "argv"
                | "bash"
                | "code"
                | "eval"
                | "exec"
                | "execute"
                | "javascript"
                | "powershell"
                | "program"
                | "pwsh"
                | "python"
                | "run"
                | "sh"
                | "terminal"
                | "zsh"
        )
}

/// Whether a word in a tool name indicates that the tool runs its input, whatever its fields are called.
fn tool_runs_commands(word: &str) -> bool {
    word.starts_with("command")
        || matches!(
            word,
            "bash"
                | "cmd"
                | "eval"
                | "exec"
                | "execute"
                | "powershell"
                | "pwsh"
                | "repl"
                | "sh"
                | "shell"
                | "ssh"
                | "terminal"
                | "zsh"
        )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(tool: &str, input: &Value) -> Vec<String> {
        search(tool, input).lines.iter().map(|line| line.text().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn a_command_is_found_by_the_name_of_its_field() {
        for input in [
            json!({"command": "rm x"}),
            json!({"cmd": "rm x"}),
            json!({"shellCommand": "rm x"}),
            json!({"shell-command": "rm x"}),
            json!({"start_command": "rm x"}),
            json!({"CMDLINE": "rm x"}),
            json!({"script": {"text": "rm x"}}),
            json!({"steps": [{"name": "one", "run": "rm x"}]}),
            json!({"code": "rm x"}),
        ] {
            assert_eq!(lines("mcp__a__b", &input), ["rm x"], "{input}");
        }
        for input in [
            json!({"description": "rm x"}),
            json!({"message": "rm x", "recommended": "rm x", "subscription": "rm x"}),
            json!({"command": 7}),
        ] {
            assert!(lines("mcp__a__b", &input).is_empty(), "{input}");
        }
    }

    #[test]
    fn a_list_of_words_is_one_command() {
        assert_eq!(lines("mcp__a__b", &json!({"argv": ["git", "push"]})), [" 'git' 'push'", "git", "push"]);
        let apart = json!({"command": "git", "args": ["it's"]});
        assert!(lines("mcp__a__b", &apart).contains(&r"git 'it'\''s'".to_owned()));
    }

    #[test]
    fn every_input_of_a_tool_named_after_a_shell_is_a_command() {
        for tool in ["mcp__workspace__bash", "mcp__shell__run", "mcp__x__executeIt", "mcp__ssh__do"] {
            assert_eq!(lines(tool, &json!({"input": "rm x"})), ["rm x"], "{tool}");
        }
        assert!(lines("mcp__github__search", &json!({"input": "rm x"})).is_empty());
    }

    #[test]
    fn an_input_with_too_many_texts_to_search_is_reported() {
        let found = Value::from(vec!["x"; MAX_TEXTS + 1]);
        assert!(search("mcp__a__b", &found).cut);
        let list = vec!["x"; 50];
        let mut many = Map::new();
        for i in 0..50 {
            many.insert(format!("command{i}"), Value::from("x"));
            many.insert(format!("list{i}"), Value::from(list.clone()));
        }
        let many = Value::Object(many);
        let found = search("mcp__a__b", &many);
        assert!(found.cut && found.lines.len() == MAX_TEXTS);
        let long = json!({"command": "a", "args": ["x".repeat(MAX_TEXT_BYTES)]});
        assert!(lines("mcp__a__b", &long).contains(&"\0".to_owned()));
    }
}
