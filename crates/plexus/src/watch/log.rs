//! The live log: the latest events of one session as rows. It owns the rows and the scroll position; `feed` provides the events.

use std::collections::VecDeque;

use plexus_protocol::SessionId;
use serde_json::Value;

use crate::markdown;
use crate::notices;
use crate::plural::counted;
use crate::review::{Row, Tone};
use crate::show::{Requested, changed, output_text};
use crate::terminal::{one_line, size};

/// How many rows are kept.
const MAX_LINES: usize = 2_000;
/// The maximum number of lines of a result.
const RESULT_LINES: usize = 6;
/// The maximum size of a text.
const TEXT_BYTES: usize = 4 * 1024;

/// The log of the selected session.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// The session.
    pub(crate) session: Option<SessionId>,
    /// Oldest first.
    pub(crate) rows: VecDeque<Row>,
    /// The scroll position in rows above the end; 0 follows the end.
    pub(crate) back: usize,
    /// The inputs of calls without a result, to compare edited inputs with.
    requested: Requested,
}

impl Log {
    /// An empty log.
    pub(crate) fn of(session: Option<SessionId>) -> Self {
        Self { session, ..Self::default() }
    }

    /// Adds an event.
    pub(crate) fn add(&mut self, event: &Value) {
        let change = self.requested.record(event);
        for row in rows(event).into_iter().chain(change.into_iter().flatten()) {
            self.rows.push_back(row);
            // Keep the scroll position of a user who reads further up.
            if self.back > 0 {
                self.back += 1;
            }
        }
        while self.rows.len() > MAX_LINES {
            self.rows.pop_front();
        }
        self.back = self.back.min(self.rows.len());
    }

    /// Scrolls.
    pub(crate) fn scroll(&mut self, rows: isize) {
        self.back = self.back.saturating_add_signed(-rows).min(self.rows.len());
    }

    /// The rows that fill `height`, the last one at the bottom.
    pub(crate) fn window(&self, width: usize, height: usize) -> Vec<Row> {
        let mut window: VecDeque<Row> = VecDeque::new();
        for row in self.rows.iter().rev().skip(self.back) {
            for piece in row.wrapped(width).into_iter().rev() {
                window.push_front(piece);
            }
            if window.len() >= height {
                break;
            }
        }
        let over = window.len().saturating_sub(height);
        window.into_iter().skip(over).collect()
    }
}

fn rows(event: &Value) -> Vec<Row> {
    let text = |name: &str| short(event[name].as_str().unwrap_or_default());
    match event["type"].as_str().unwrap_or_default() {
        "start" => vec![Row::new(Tone::Dim, "── turn started")],
        // The frame has two columns.
        "content" => {
            let room = size().0.saturating_sub(2);
            Row::lines(Tone::Plain, "", &markdown::with_tables(&text("text"), room))
        }
        "thinking" => Row::lines(Tone::Dim, "~ ", &text("text")),
        "tool_use" => {
            let about = about(&event["input"]);
            vec![Row::led(Tone::Strong, "▶ ", &format!("{} {about}", text("tool_name")))]
        }
        "approval_requested" => vec![Row::new(Tone::Warn, "? needs approval")],
        "approval_resolved" => {
            let by = event["by"]["kind"].as_str().unwrap_or("hub");
            let by = if by == "operator" { "you" } else { by };
            let mut rows =
                vec![Row::led(Tone::Warn, "! ", &format!("{} by {by}{}", text("status"), changed(event)))];
            rows.extend(Row::lines(Tone::Dim, "  ", &text("message")));
            rows
        }
        "tool_result" => {
            let tone = if event["is_error"] == true { Tone::Removed } else { Tone::Dim };
            let output = short(&output_text(&event["output"]));
            let mut rows = Row::lines(tone, "  ", &output);
            if rows.len() > RESULT_LINES {
                let more = rows.len() - RESULT_LINES;
                rows.truncate(RESULT_LINES);
                rows.push(Row::led(
                    Tone::Dim,
                    "  ",
                    &format!("… {}", counted(more, "more line", "more lines")),
                ));
            }
            rows
        }
        "complete" => {
            let cost = event["cost_usd"].as_f64().unwrap_or(0.0);
            vec![Row::new(Tone::Dim, &format!("── complete, ${cost:.4}"))]
        }
        "error" => {
            let advice = notices::advice(&text("message"));
            let message = Row::led(Tone::Removed, "✗ ", &text("message"));
            std::iter::once(message).chain(advice.map(|it| Row::led(Tone::Warn, "! ", it))).collect()
        }
        // Other messages of Claude Code are about its own state.
        "system" => notices::notice(event).iter().map(|it| Row::led(Tone::Warn, "! ", it)).collect(),
        _ => Vec::new(),
    }
}

/// The main field of an input, in one line.
fn about(input: &Value) -> String {
    let fields = ["command", "file_path", "pattern", "url", "query", "description", "prompt"];
    fields
        .iter()
        .find_map(|name| input[name].as_str())
        .map_or_else(|| short(&input.to_string()), |text| one_line(text, TEXT_BYTES))
}

fn short(text: &str) -> String {
    if text.len() <= TEXT_BYTES {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(TEXT_BYTES)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_log_follows_its_end_until_it_is_scrolled_up() {
        let mut log = Log::default();
        let say = |log: &mut Log, text: &str| log.add(&json!({"type": "content", "text": text}));
        for number in 0..10 {
            say(&mut log, &number.to_string());
        }
        let shown = |log: &Log| log.window(20, 2).iter().map(|row| row.text.clone()).collect::<Vec<_>>();
        assert_eq!(shown(&log), ["8", "9"]);
        log.scroll(-3);
        say(&mut log, "10");
        assert_eq!(shown(&log), ["5", "6"]);
        log.scroll(100);
        assert_eq!(shown(&log), ["9", "10"]);
    }

    #[test]
    fn a_result_says_how_many_lines_are_left_out() {
        for (lines, last) in [(6, "x"), (7, "… 1 more line"), (8, "… 2 more lines")] {
            let mut log = Log::default();
            log.add(&json!({"type": "tool_result", "output": vec!["x"; lines].join("\n")}));
            assert_eq!(log.rows.back().unwrap().text, last);
        }
    }

    #[test]
    fn internal_events_are_not_shown_and_problems_of_the_model_are() {
        let mut log = Log::default();
        for subtype in ["init", "status", "hook_started", "result"] {
            log.add(&json!({"type": "system", "subtype": subtype, "data": {}}));
        }
        assert!(log.rows.is_empty(), "{:?}", log.rows);
        log.add(
            &json!({"type": "system", "subtype": "api_retry", "data": {"error_status": 529, "attempt": 1}}),
        );
        assert_eq!(log.rows[0].text, "The model is overloaded (HTTP 529). Retry 1.");
    }

    #[test]
    fn a_table_has_aligned_columns() {
        let mut log = Log::default();
        log.add(&json!({"type": "content", "text": "| A | B |\n|---|---|\n| \u{1b}one | two |"}));
        let shown: Vec<&str> = log.rows.iter().map(|row| row.text.as_str()).collect();
        assert_eq!(shown, ["A          B", "---------  ---", "\\u{1b}one  two"]);
    }

    #[test]
    fn a_command_of_several_lines_is_shown_with_all_of_them() {
        let mut log = Log::default();
        log.add(&json!({"type": "tool_use", "tool_name": "Bash", "input": {"command": "true\nrm -r /\n"}}));
        let shown: Vec<String> = log.rows.iter().map(|row| format!("{}{}", row.lead, row.text)).collect();
        assert_eq!(shown, ["▶ Bash true⏎rm -r /"]);
    }
}
