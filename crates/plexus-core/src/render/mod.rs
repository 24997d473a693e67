//! Conversations to be read: as text, as Markdown, or as messages that a model can be given. Works on a page of a path, so
//! that the pages of a conversation, put together, are the whole of it.

mod html;

use std::fmt::Write as _;

use plexus_protocol::Object;
use plexus_protocol::arbor::{Node, Role};
use serde_json::{Value, json};

pub(crate) use html::{PAGE_END, html, page_begin};

/// As plain text.
pub(crate) fn text(nodes: &[Node]) -> String {
    let mut out = String::new();
    for node in nodes {
        match node.summary.role {
            Role::Root => {}
            Role::Outcome => line(&mut out, "--", &outcome(&node.content)),
            Role::User | Role::Assistant => {
                for block in blocks(node) {
                    match kind(block) {
                        "text" => line(&mut out, speaker(node), said(block)),
                        "thinking" => {
                            line(&mut out, "thinking", block["thinking"].as_str().unwrap_or_default())
                        }
                        "tool_use" => line(&mut out, "call", &format!("{} {}", name(block), block["input"])),
                        "tool_result" => {
                            if let Some(decision) = decision(block) {
                                line(&mut out, "decision", &decision);
                            }
                            line(&mut out, result_word(block), &result(block));
                        }
                        other => line(&mut out, other, &block.to_string()),
                    }
                }
            }
        }
    }
    out
}

/// As Markdown.
pub(crate) fn markdown(nodes: &[Node]) -> String {
    let mut out = String::new();
    for node in nodes {
        match node.summary.role {
            Role::Root => {}
            Role::Outcome => paragraph(&mut out, &format!("*{}*", outcome(&node.content))),
            Role::User | Role::Assistant => {
                for block in blocks(node) {
                    match kind(block) {
                        "text" => {
                            let who = if node.summary.role == Role::User { "User" } else { "Assistant" };
                            paragraph(&mut out, &format!("## {who}\n\n{}", said(block)));
                        }
                        "thinking" => {
                            paragraph(&mut out, &quoted(block["thinking"].as_str().unwrap_or_default()))
                        }
                        "tool_use" => {
                            let input = serde_json::to_string_pretty(&block["input"]).unwrap_or_default();
                            paragraph(
                                &mut out,
                                &format!("**{}**\n\n{}", name(block), fenced(&input, "json")),
                            );
                        }
                        "tool_result" => {
                            if let Some(decision) = decision(block) {
                                paragraph(&mut out, &format!("*{decision}*"));
                            }
                            let word = if result_word(block) == "error" { "Error:\n\n" } else { "" };
                            paragraph(&mut out, &format!("{word}{}", fenced(&result(block), "")));
                        }
                        _ => paragraph(&mut out, &fenced(&block.to_string(), "json")),
                    }
                }
            }
        }
    }
    out
}

/// As messages of the Claude API: those of one speaker in a row are one. What only the hub knows is left out, and so is
/// thinking, which the API takes back only with its signature.
pub(crate) fn messages(nodes: &[Node]) -> Vec<Object> {
    let mut messages: Vec<(Role, Vec<Value>)> = Vec::new();
    for node in nodes.iter().filter(|node| matches!(node.summary.role, Role::User | Role::Assistant)) {
        let content =
            blocks(node).filter(|block| matches!(kind(block), "text" | "tool_use" | "tool_result" | "image"));
        let content = content.map(|block| {
            let mut block = block.clone();
            if let Some(fields) = block.as_object_mut() {
                fields.remove("decision");
            }
            block
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

fn said(block: &Value) -> &str {
    block["text"].as_str().unwrap_or_default()
}

fn speaker(node: &Node) -> &'static str {
    if node.summary.role == Role::User { "user" } else { "assistant" }
}

fn result_word(block: &Value) -> &'static str {
    if block["is_error"] == true { "error" } else { "result" }
}

/// What a tool gave back, as text where it is text.
fn result(block: &Value) -> String {
    match &block["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) if parts.iter().all(|part| part["text"].is_string()) => {
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}

/// Who let a call run or not, in a sentence.
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
        let changed = if approval["updated_input"].is_object() { " with another input" } else { "" };
        let why = approval["message"].as_str().map(|why| format!(": {why}")).unwrap_or_default();
        return Some(format!("{status}{by}{changed}{why}"));
    }
    let gate = &block["decision"]["gate"];
    match gate["answer"].as_str() {
        Some(answer @ ("allow" | "deny")) => {
            Some(format!("gate: {answer} ({})", gate["reason"].as_str().unwrap_or_default()))
        }
        _ => None,
    }
}

/// How a turn ended, in a sentence.
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

fn line(out: &mut String, label: &str, text: &str) {
    let _ = writeln!(out, "{label}: {text}");
}

fn paragraph(out: &mut String, text: &str) {
    out.push_str(text);
    out.push_str("\n\n");
}

fn quoted(text: &str) -> String {
    text.lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n")
}

/// Between fences that nothing in the text can close.
fn fenced(text: &str, language: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}
