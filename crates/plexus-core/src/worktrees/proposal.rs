//! The message and the author that a commit gets by default. The message is built from the session's first prompt and its
//! last text; no model is called.

use plexus_protocol::claudecode::{AuthorSource, CommitProposal, Person};
use plexus_protocol::{Error, visible};
use plexus_store::{SessionRow, Store};
use serde_json::Value;

use crate::errors::store_error;

/// The maximum length of the first line, in characters.
const SUMMARY_CHARS: usize = 72;
/// The maximum length of the text below it, in bytes.
const BODY_BYTES: usize = 2000;
/// The number of events at the end of the latest turn to search for the last text.
const EVENTS: u64 = 50;

/// The proposal for a session.
pub(crate) async fn proposal(
    store: &dyn Store,
    session: &SessionRow,
    configured: Option<&Person>,
    base_author: Option<Person>,
) -> Result<CommitProposal, Error> {
    let first = store.turn(session.id, 1).await.map_err(store_error)?;
    let prompt = first.map(|turn| turn.prompt).unwrap_or_default();
    let text = last_text(store, session).await?;
    let (author, author_from) = match (configured, base_author) {
        (Some(person), _) => (Some(person.clone()), Some(AuthorSource::Settings)),
        (None, Some(person)) => (Some(person), Some(AuthorSource::BaseCommit)),
        (None, None) => (None, None),
    };
    let message = message(&prompt, text.as_deref(), session.name.as_str());
    Ok(CommitProposal { message, author, author_from })
}

async fn last_text(store: &dyn Store, session: &SessionRow) -> Result<Option<String>, Error> {
    let turn = session.latest_turn;
    let count = store.event_count(session.id, turn).await.map_err(store_error)?;
    let from = count.saturating_sub(EVENTS);
    let events = store.events(session.id, turn, from, EVENTS).await.map_err(store_error)?;
    let is_text = |event: &Value| {
        event["type"] == "content" && event.get("parent_tool_use_id").is_none_or(Value::is_null)
    };
    let last = events.iter().rev().map(|row| row.event.value()).find(is_text);
    Ok(last.and_then(|event| event["text"].as_str().map(str::to_owned)))
}

/// A commit message: the start of the prompt as its first line, then the last text.
fn message(prompt: &str, text: Option<&str>, name: &str) -> String {
    let line = prompt
        .lines()
        .map(|line| line.trim_start_matches(['#', '>', '-', '*', ' ']))
        .find(|l| !l.trim().is_empty());
    let words = line.unwrap_or(name).split_whitespace().collect::<Vec<_>>().join(" ");
    let mut summary = plain(&words);
    if summary.chars().count() > SUMMARY_CHARS {
        summary = summary.chars().take(SUMMARY_CHARS - 1).collect();
        if let Some(end) = summary.rfind(' ').filter(|end| *end > SUMMARY_CHARS / 2) {
            summary.truncate(end);
        }
        summary.push('…');
    }
    let mut body = plain(text.unwrap_or_default().trim());
    body.truncate(body.floor_char_boundary(BODY_BYTES));
    if body.is_empty() { summary } else { format!("{summary}\n\n{}", body.trim_end()) }
}

fn plain(text: &str) -> String {
    visible(text).unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_starts_with_the_prompt_and_ends_with_the_last_text() {
        assert_eq!(message("Fix the  parser\nplease", Some("Done.\n"), "n"), "Fix the parser\n\nDone.");
        assert_eq!(message("\n## Fix it\n", None, "n"), "Fix it");
        assert_eq!(message("", None, "fix-parser"), "fix-parser");
        let long = message(&"word ".repeat(40), None, "n");
        assert!(long.chars().count() <= SUMMARY_CHARS && long.ends_with("word…"), "{long}");
        assert!(message(&"x".repeat(500), None, "n").chars().count() == SUMMARY_CHARS);
        assert_eq!(message("a\u{202e}b", Some("\u{1b}[2K"), "n"), "a\\u{202e}b\n\n\\u{1b}[2K");
        assert!(message("a", Some(&"ü".repeat(5000)), "n").len() < BODY_BYTES + 10);
    }
}
