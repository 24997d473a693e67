//! Short texts for a terminal: one line of a text, of a call, a duration. Also the size of the terminal.

use serde_json::Value;

use crate::escape::safe;

/// `text` escaped, in one line of at most `most` characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    let text = text.trim_end();
    // Escaping a text of a megabyte for one line would be slow.
    let end = text.char_indices().nth(most).map_or(text.len(), |(end, _)| end);
    for (count, c) in safe(text.get(..end).unwrap_or(text)).chars().enumerate() {
        if count + 1 >= most {
            line.push('…');
            break;
        }
        match c {
            '\n' => line.push('⏎'),
            '\t' => line.push(' '),
            c => line.push(c),
        }
    }
    line
}

/// The input of a tool in one line: its main field for known tools, else all of it.
pub(crate) fn tool_line(tool: &str, input: &serde_json::Map<String, Value>, most: usize) -> String {
    let key = match tool {
        "Bash" | "Monitor" | "PowerShell" => "command",
        "REPL" => "code",
        "Workflow" => "script",
        "Read" | "Write" | "Edit" | "MultiEdit" => "file_path",
        "NotebookEdit" => "notebook_path",
        "Glob" | "Grep" => "pattern",
        "WebFetch" => "url",
        "WebSearch" => "query",
        "Task" | "Agent" => "description",
        "ExitPlanMode" => "plan",
        _ => "",
    };
    let text = match tool {
        "AskUserQuestion" => input.get("questions").and_then(|questions| questions.pointer("/0/question")),
        _ => input.get(key),
    };
    match text.and_then(Value::as_str) {
        Some(text) => one_line(text, most),
        None => one_line(&Value::Object(input.clone()).to_string(), most),
    }
}

/// A duration in short form.
pub(crate) fn age(secs: u64) -> String {
    match secs {
        0..60 => format!("{secs}s"),
        60..3600 => format!("{}m{:02}s", secs / 60, secs % 60),
        3600..86_400 => format!("{}h{:02}m", secs / 3600, secs % 3600 / 60),
        _ => format!("{}d{:02}h", secs / 86_400, secs % 86_400 / 3600),
    }
}

/// Columns and rows of the terminal, or 80 by 24 without one.
pub(crate) fn size() -> (usize, usize) {
    let found = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
    let found = found.map(|size| (usize::from(size.ws_col), usize::from(size.ws_row)));
    // A narrower row has no room for a prefix and text.
    let (width, height) = found.filter(|(width, height)| *width > 0 && *height > 0).unwrap_or((80, 24));
    (width.max(16), height)
}

/// The message about a missing hub names `plexus up` after this many seconds.
const LONG_WITHOUT_HUB: u64 = 10;

/// Advice about a hub that has been disconnected for this long; none at first, because it may be restarting.
pub(crate) fn hub_advice(secs: u64) -> &'static str {
    if secs < LONG_WITHOUT_HUB { "" } else { " Is the hub running? Try `plexus up`." }
}

/// Seconds since 1970, now.
pub(crate) fn now() -> u64 {
    std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_fits_in_one_line() {
        let input = json!({"command": "touch a\ntouch b", "description": "x"});
        assert_eq!(tool_line("Bash", input.as_object().unwrap(), 80), "touch a⏎touch b");
        let input = json!({"b": 1});
        assert_eq!(tool_line("Other", input.as_object().unwrap(), 80), "{\"b\":1}");
        let input = json!({"questions": [{"question": "Which one?", "options": []}]});
        assert_eq!(tool_line("AskUserQuestion", input.as_object().unwrap(), 80), "Which one?");
        assert_eq!(one_line("abcdef", 4), "abc…");
        assert_eq!(one_line("a\u{1b}bc", 4), "a\\u…");
        assert_eq!([one_line("abc", 4), one_line("abcd", 4)], ["abc", "abc…"]);
    }

    #[test]
    fn a_hub_that_stays_disconnected_names_plexus_up() {
        assert_eq!(hub_advice(9), "");
        assert!(hub_advice(10).contains("`plexus up`"));
    }

    #[test]
    fn ages_are_shown_in_their_two_largest_units() {
        assert_eq!([5, 65, 3700, 90_000].map(age), ["5s", "1m05s", "1h01m", "1d01h"]);
    }
}
