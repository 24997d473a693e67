//! Renders conversations as text, as Markdown, or as messages for a model. Each function renders one page of a path.
//! The pages of a conversation, concatenated, are the whole conversation.

mod call;
mod highlight;
mod html;
mod markdown_text;
#[cfg(test)]
mod structure_tests;

use std::collections::HashMap;
use std::fmt::Write as _;

use plexus_protocol::Object;
use plexus_protocol::arbor::{Node, Role};
use serde_json::{Value, json};

use self::call::{Part, parts};
use self::markdown_text::{code_span, fenced, literal, quoted};
use crate::approvals::edited::{answers, input_change};

pub(crate) use html::{PAGE_END, html, page_start};

/// Renders plain text.
pub(crate) fn text(nodes: &[Node]) -> String {
    let requested = requested(nodes);
    let mut out = String::new();
    for node in nodes {
        match node.summary.role {
            Role::Root => {}
            Role::Outcome => line(&mut out, "--", &outcome(&node.content)),
            Role::User | Role::Assistant => {
                for block in blocks(node) {
                    match kind(block) {
                        "text" => line(&mut out, speaker(node), text_of_block(block)),
                        "thinking" => {
                            line(&mut out, "thinking", block["thinking"].as_str().unwrap_or_default())
                        }
                        "tool_use" => line(&mut out, "call", &format!("{} {}", name(block), block["input"])),
                        "tool_result" => {
                            if let Some(decision) = decision(block) {
                                line(&mut out, "decision", &decision);
                            }
                            if let Some(ran) = ran(block, &requested) {
                                line(&mut out, ran.word(), &format!("\n{}", ran.text()));
                            }
                            line(&mut out, result_word(block), &result(block));
                        }
                        "image" | "document" | "file" => line(&mut out, "attached", &file(block)),
                        "compaction" => line(&mut out, "compacted", &compaction(block)),
                        other => line(&mut out, other, &block.to_string()),
                    }
                }
            }
        }
    }
    out
}

/// Renders Markdown.
pub(crate) fn markdown(nodes: &[Node]) -> String {
    let requested = requested(nodes);
    let mut out = String::new();
    for node in nodes {
        match node.summary.role {
            Role::Root => {}
            Role::Outcome => paragraph(&mut out, &emphasised(&outcome(&node.content))),
            Role::User | Role::Assistant => {
                for block in blocks(node) {
                    match kind(block) {
                        "text" => {
                            let who = if node.summary.role == Role::User { "User" } else { "Assistant" };
                            paragraph(&mut out, &format!("## {who}\n\n{}", quoted(text_of_block(block))));
                        }
                        "thinking" => {
                            let thinking = quoted(block["thinking"].as_str().unwrap_or_default());
                            paragraph(&mut out, &format!("*Thinking*\n\n{thinking}"));
                        }
                        "tool_use" => {
                            paragraph(&mut out, &format!("**Call** {}", code_span(name(block))));
                            for part in parts(name(block), &block["input"]) {
                                paragraph(&mut out, &markdown_part(&part));
                            }
                        }
                        "tool_result" => {
                            if let Some(decision) = decision(block) {
                                paragraph(&mut out, &emphasised(&decision));
                            }
                            if let Some(ran) = ran(block, &requested) {
                                paragraph(
                                    &mut out,
                                    &format!("{}:\n\n{}", ran.word(), fenced(&ran.text(), ran.language())),
                                );
                            }
                            let word = if result_word(block) == "error" { "Error:\n\n" } else { "" };
                            paragraph(&mut out, &format!("{word}{}", fenced(&result(block), "")));
                        }
                        "image" | "document" => {
                            paragraph(&mut out, &emphasised(&format!("Attached: {}", file(block))));
                        }
                        "file" => {
                            paragraph(&mut out, &emphasised(&format!("Attached: {}", file(block))));
                            paragraph(&mut out, &fenced(text_of_block(block), ""));
                        }
                        "compaction" => {
                            paragraph(&mut out, &emphasised(&format!("Compacted: {}", compaction(block))));
                            paragraph(&mut out, &quoted(summary(block)));
                        }
                        _ => paragraph(&mut out, &fenced(&block.to_string(), "json")),
                    }
                }
            }
        }
    }
    out
}

fn markdown_part(part: &Part) -> String {
    match part {
        Part::Note(text) => code_span(text),
        Part::Code { text, language } => fenced(text, language),
        Part::Diff(lines) => {
            let lines: Vec<String> =
                lines.iter().map(|line| format!("{}{}", line.mark.sign(), line.text)).collect();
            fenced(&lines.join("\n"), "diff")
        }
        Part::Markdown(text) => quoted(text),
    }
}

/// Renders messages of the Claude API. Consecutive messages of one role are merged. It omits nodes that only the hub
/// knows, and thinking, which the API accepts only with its signature.
pub(crate) fn messages(nodes: &[Node]) -> Vec<Object> {
    let mut messages: Vec<(Role, Vec<Value>)> = Vec::new();
    for node in nodes.iter().filter(|node| matches!(node.summary.role, Role::User | Role::Assistant)) {
        let content = blocks(node).filter_map(|block| {
            let mut block = match kind(block) {
                "text" | "tool_use" | "tool_result" => block.clone(),
                // The API knows neither a name nor a size.
                kind @ ("image" | "document") => json!({"type": kind, "source": block["source"]}),
                "file" => json!({"type": "text", "text": text_of_block(block)}),
                _ => return None,
            };
            if let Some(fields) = block.as_object_mut() {
                fields.remove("decision");
            }
            Some(block)
        });
        match messages.last_mut() {
            Some((role, blocks)) if *role == node.summary.role => blocks.extend(content),
            _ => messages.push((node.summary.role, content.collect())),
        }
    }
    let message = |(role, content): (Role, Vec<Value>)| json!({"role": role, "content": content});
    let spoken = messages.into_iter().filter(|(_, content)| !content.is_empty());
    spoken.filter_map(|spoken| message(spoken).as_object().cloned()).collect()
}

fn blocks(node: &Node) -> impl Iterator<Item = &Value> {
    node.content.as_array().into_iter().flatten()
}

fn kind(block: &Value) -> &str {
    block["type"].as_str().unwrap_or("unknown")
}

fn name(block: &Value) -> &str {
    block["name"].as_str().unwrap_or("?")
}

fn text_of_block(block: &Value) -> &str {
    block["text"].as_str().unwrap_or_default()
}

/// A file of a prompt: its name, type and size.
fn file(block: &Value) -> String {
    let media_type = block["media_type"].as_str().or_else(|| block["source"]["media_type"].as_str());
    let size = block["bytes"].as_u64().map(|bytes| format!(", {bytes} bytes")).unwrap_or_default();
    // The files of a Claude Code conversation that the hub did not start have no names.
    let name = block["name"].as_str().unwrap_or("a file without a name");
    format!("{name} ({}{size})", media_type.unwrap_or("unknown type"))
}

/// A compaction: who caused it, and the tokens before and after it.
fn compaction(block: &Value) -> String {
    let details = &block["details"];
    let trigger = details["trigger"].as_str().unwrap_or("unknown trigger");
    match (details["pre_tokens"].as_u64(), details["post_tokens"].as_u64()) {
        (Some(before), Some(after)) => format!("{before} tokens to {after} ({trigger})"),
        (Some(before), None) => format!("{before} tokens ({trigger})"),
        _ => trigger.to_owned(),
    }
}

fn summary(block: &Value) -> &str {
    block["summary"].as_str().unwrap_or_default()
}

fn speaker(node: &Node) -> &'static str {
    if node.summary.role == Role::User { "user" } else { "assistant" }
}

fn result_word(block: &Value) -> &'static str {
    if block["is_error"] == true { "error" } else { "result" }
}

/// The result of a tool, as plain text if all its parts are text.
fn result(block: &Value) -> String {
    match &block["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) if parts.iter().all(|part| part["text"].is_string()) => {
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}

/// The requested inputs, by tool call.
fn requested(nodes: &[Node]) -> HashMap<&str, &Object> {
    let calls = nodes.iter().flat_map(blocks).filter(|block| kind(block) == "tool_use");
    calls.filter_map(|block| Some((block["id"].as_str()?, block["input"].as_object()?))).collect()
}

/// The input with which a tool call ran, if an answer replaced the requested input.
enum Ran {
    /// An edited input: the changes, as lines of a diff.
    Edited(Vec<String>),
    /// An edited input whose original is not on the page: the whole input.
    Whole(String),
    /// The answers to the questions in the input.
    Answered(Vec<(String, String)>),
}

impl Ran {
    fn word(&self) -> &'static str {
        match self {
            Self::Edited(_) => "Ran with an edited input",
            Self::Whole(_) => "Ran with this input instead",
            Self::Answered(_) => "Answers",
        }
    }

    fn language(&self) -> &'static str {
        match self {
            Self::Edited(_) => "diff",
            Self::Whole(_) => "json",
            Self::Answered(_) => "",
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Edited(lines) => lines.join("\n"),
            Self::Whole(input) => input.clone(),
            Self::Answered(answers) => {
                let line = |(question, answer): &(String, String)| format!("{question}\n  {answer}");
                answers.iter().map(line).collect::<Vec<_>>().join("\n")
            }
        }
    }
}

fn ran(block: &Value, requested: &HashMap<&str, &Object>) -> Option<Ran> {
    let after = block["decision"]["approval"]["updated_input"].as_object()?;
    let Some(before) = requested.get(block["tool_use_id"].as_str()?) else {
        return Some(Ran::Whole(serde_json::to_string_pretty(after).unwrap_or_default()));
    };
    if let Some(answers) = answers(before, after) {
        return Some(Ran::Answered(answers));
    }
    let change = input_change(before, after);
    // An input that was returned unchanged is not an edit.
    if change.fields.is_empty() {
        return None;
    }
    let mut lines = Vec::new();
    for field in &change.fields {
        lines.push(format!("@@ {} @@", field.name.replace('\n', "\\n")));
        lines.extend(field.lines.iter().map(|line| format!("{}{}", line.mark.sign(), line.text)));
    }
    Some(Ran::Edited(lines))
}

/// The decision about a tool call and its author, as one sentence.
pub(crate) fn decision(block: &Value) -> Option<String> {
    let approval = &block["decision"]["approval"];
    if let Some(status) = approval["status"].as_str() {
        let by = match (
            approval["by"]["kind"].as_str(),
            approval["by"]["id"].as_str(),
            approval["by"]["name"].as_str(),
        ) {
            (Some(kind), Some(who), _) | (Some(kind), None, Some(who)) => format!(" by {kind} {who}"),
            (Some(kind), None, None) => format!(" by {kind}"),
            (None, ..) => String::new(),
        };
        let why = approval["message"].as_str().map(|why| format!(": {why}")).unwrap_or_default();
        return Some(format!("{status}{by}{why}"));
    }
    let gate = &block["decision"]["gate"];
    match gate["answer"].as_str() {
        Some(answer @ ("allow" | "deny")) => {
            Some(format!("gate: {answer} ({})", gate["reason"].as_str().unwrap_or_default()))
        }
        _ => None,
    }
}

/// The outcome of a turn, as one sentence.
pub(crate) fn outcome(content: &Value) -> String {
    let mut out = content["status"].as_str().unwrap_or("ended").to_owned();
    if let Some(cost) = content["cost_usd"].as_f64() {
        let _ = write!(out, ", ${cost:.4}");
    }
    if let Some(message) = content["message"].as_str() {
        let _ = write!(out, ": {message}");
    }
    out
}

/// A line with its label. The further lines of the text are indented, so that none of them looks like a label.
fn line(out: &mut String, label: &str, text: &str) {
    let text = text.replace("\r\n", "\n").replace(['\n', '\r'], "\n  ");
    let _ = writeln!(out, "{label}: {text}");
}

/// A line of the transcript itself in Markdown.
fn emphasised(text: &str) -> String {
    // Emphasis does not end after a space.
    format!("*{}*", literal(text.trim()))
}

fn paragraph(out: &mut String, text: &str) {
    out.push_str(text);
    out.push_str("\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation(input: Value, updated: Value) -> Vec<Node> {
        let node = |role: &str, content: Value| {
            let id = "00000000-0000-4000-8000-000000000001";
            let node = json!({"tree_id": id, "id": id, "depth": 1, "children": 0, "created_at": 0, "role": role, "preview": "", "content": content});
            serde_json::from_value(node).unwrap()
        };
        let decision =
            json!({"approval": {"status": "allowed", "by": {"kind": "operator"}, "updated_input": updated}});
        vec![
            node("assistant", json!([{"type": "tool_use", "id": "t", "name": "Bash", "input": input}])),
            node(
                "user",
                json!([{"type": "tool_result", "tool_use_id": "t", "content": "ok", "decision": decision}]),
            ),
        ]
    }

    #[test]
    fn an_edited_call_is_shown_with_the_input_that_ran_in_every_format() {
        let nodes = conversation(json!({"command": "touch a"}), json!({"command": "touch <b>"}));
        assert!(
            text(&nodes).contains("Ran with an edited input: \n  @@ command @@\n  -touch a\n  +touch <b>\n"),
            "{}",
            text(&nodes)
        );
        assert!(
            markdown(&nodes).contains("```diff\n@@ command @@\n-touch a\n+touch <b>\n```"),
            "{}",
            markdown(&nodes)
        );
        assert!(html(&nodes).contains("<del>-touch a</del><ins>+touch &lt;b&gt;</ins>"), "{}", html(&nodes));
        let alone = &nodes[1..];
        assert!(
            text(alone).contains("Ran with this input instead: \n  {\n    \"command\": \"touch <b>\""),
            "{}",
            text(alone)
        );
    }

    #[test]
    fn an_unchanged_input_and_answers_to_a_question_are_not_shown_as_edits() {
        let same = conversation(json!({"command": "touch a"}), json!({"command": "touch a"}));
        assert!(!text(&same).contains("Ran with"), "{}", text(&same));
        let asked = json!({"questions": [{"question": "Which?"}]});
        let answered = json!({"questions": [{"question": "Which?"}], "answers": {"Which?": "blue"}});
        let nodes = conversation(asked, answered);
        assert!(
            text(&nodes).contains("Answers: \n  Which?\n    blue\n") && !text(&nodes).contains("edited"),
            "{}",
            text(&nodes)
        );
    }
}
