//! The prompts in the events of a session, for the verbs that show them. The event that starts a turn only names the node of its prompt,
//! which is read from the hub. A message that was added to a running turn has its text in its event.

use std::collections::{BTreeSet, VecDeque};

use serde_json::{Value, json};

use crate::attachments;
use crate::escape::safe;
use crate::hub::HubClient;

/// The prefix of each line of a prompt.
pub(crate) const LEAD: &str = "» ";

/// Adds the text of the prompt, as `prompt`, to the event that starts a turn. A prompt that cannot be read is left out.
pub(crate) async fn add_text(hub: &HubClient, event: &mut Value) {
    // A turn that Claude Code started on its own has no prompt.
    if event["type"] != "start" || event["origin"] == "background" {
        return;
    }
    let params = json!({"node_id": event["user_position"]["node_id"]});
    let Ok(found) = hub.call_with_timeout::<Value>("arbor.node_get", params).await else { return };
    let blocks = found["node"]["content"].as_array().into_iter().flatten();
    // The contents of an attached text file are a block with a name.
    let texts = blocks.filter(|block| block["type"] == "text" && block["name"].is_null());
    let texts: Vec<&str> = texts.filter_map(|block| block["text"].as_str()).collect();
    event["prompt"] = json!(texts.join("\n"));
}

/// The prompt of an event, if it has one, and its attachments.
pub(crate) struct Shown<'a> {
    /// The text, unescaped.
    pub(crate) text: &'a str,
    /// A line for each attachment, escaped.
    pub(crate) attachments: Option<String>,
}

/// The prompt of an event that starts a turn or adds a message to it; `None` for any other event.
pub(crate) fn of(event: &Value) -> Option<Shown<'_>> {
    let (text, files) = match (event["type"].as_str()?, event["subtype"].as_str()) {
        ("start", _) => (&event["prompt"], &event["attachments"]),
        ("system", Some("sent")) => (&event["data"]["text"], &event["data"]["attachments"]),
        _ => return None,
    };
    Some(Shown { text: text.as_str().unwrap_or_default().trim_end(), attachments: attachments::lines(files) })
}

/// The lines of a prompt in plain text, each with the prefix; `None` if it has neither text nor attachments.
pub(crate) fn lines(event: &Value) -> Option<String> {
    let Shown { text, attachments } = of(event)?;
    let text = safe(text);
    let lines: Vec<String> = text.lines().map(|line| format!("{LEAD}{line}")).chain(attachments).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The agent's text, with an escape where a line would look like a line of a prompt.
pub(crate) fn distinct(text: &str) -> String {
    let lines = text.split('\n').map(|line| match line.strip_prefix(LEAD.trim_end()) {
        Some(rest) => format!("\\u{{bb}}{rest}"),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The prompts that the user gave at this terminal, where they are on the screen already.
#[derive(Debug, Default)]
pub(crate) struct OwnPrompts {
    turns: BTreeSet<u64>,
    messages: VecDeque<String>,
}

impl OwnPrompts {
    /// The user started this turn.
    pub(crate) fn add_turn(&mut self, turn: u64) {
        self.turns.insert(turn);
    }

    /// The user added this message to the running turn.
    pub(crate) fn add_message(&mut self, text: &str) {
        self.messages.push_back(text.to_owned());
    }

    /// Adds the text of the prompt to an event, as [`add_text`], unless it is an own one. An own message is removed from its event,
    /// once. The attachments stay.
    pub(crate) async fn add_text_of_others(&mut self, hub: &HubClient, turn: u64, event: &mut Value) {
        if event["subtype"] == "sent" {
            self.hide_message(event);
        } else if !self.turns.contains(&turn) {
            add_text(hub, event).await;
        }
    }

    fn hide_message(&mut self, event: &mut Value) {
        let own = self.messages.iter().position(|text| event["data"]["text"] == **text);
        if own.and_then(|own| self.messages.remove(own)).is_some() {
            event["data"]["text"] = Value::Null;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(text: &str) -> Value {
        json!({"type": "system", "subtype": "sent", "data": {"text": text}})
    }

    #[test]
    fn each_line_of_a_prompt_has_the_prefix_and_is_escaped() {
        let files = json!([{"name": "a.png", "media_type": "image/png", "bytes": 12}]);
        let start = json!({"type": "start", "prompt": "fix\n\u{1b}[2Jit\n", "attachments": files});
        assert_eq!(lines(&start).unwrap(), "» fix\n» \\u{1b}[2Jit\n+ a.png (image/png, 12 bytes)");
        assert_eq!(lines(&sent("also this")).unwrap(), "» also this");
        assert_eq!(lines(&json!({"type": "start"})), None);
        assert_eq!(lines(&json!({"type": "system", "subtype": "init"})), None);
    }

    #[test]
    fn text_of_an_agent_does_not_look_like_a_prompt() {
        assert_eq!(distinct("a\n» b\n »c"), "a\n\\u{bb} b\n »c");
    }

    #[test]
    fn an_own_message_is_hidden_once() {
        let mut own = OwnPrompts::default();
        own.add_message("also this");
        let [mut first, mut second] = [sent("also this"), sent("also this")];
        own.hide_message(&mut first);
        own.hide_message(&mut second);
        assert_eq!((lines(&first), lines(&second).as_deref()), (None, Some("» also this")));
    }
}
