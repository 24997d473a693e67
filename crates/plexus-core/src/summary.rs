//! Calls and texts in one line: truncated, and with misleading characters escaped.

use std::io;

use plexus_protocol::{Object, shorten};
use serde_json::Value;

/// The maximum bytes of a text in a one-line summary.
const LINE_BYTES: usize = 200;

/// The field of an input that best describes the call.
pub(crate) fn about(input: &Object) -> Option<&str> {
    let telling = ["command", "file_path", "notebook_path", "plan", "url", "limit"];
    telling.iter().find_map(|field| input.get(*field).and_then(Value::as_str))
}

/// A one-line summary of a call.
pub(crate) fn summary(input: &Object) -> String {
    about(input).map_or_else(|| line(&start_of_json(input)), line)
}

/// The start of an input as JSON, a little longer than a line. Inputs may be megabytes long.
fn start_of_json(input: &Object) -> String {
    struct Start(Vec<u8>);
    impl io::Write for Start {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = (LINE_BYTES + 8).saturating_sub(self.0.len());
            let taken = bytes.len().min(room);
            self.0.extend_from_slice(&bytes[..taken]);
            if taken == 0 && !bytes.is_empty() {
                return Err(io::ErrorKind::WriteZero.into());
            }
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut start = Start(Vec::new());
    // It fails when the start is complete.
    let _ = serde_json::to_writer(&mut start, input);
    String::from_utf8_lossy(&start.0).into_owned()
}

/// The first line of a text, truncated and escaped. A trailing `…` means that more text follows.
pub(crate) fn line(text: &str) -> String {
    let text = text.trim_end();
    let mut first = Value::from(text.lines().next().unwrap_or_default());
    let more_lines = text.lines().nth(1).is_some();
    let cut = shorten(&mut first, LINE_BYTES) || more_lines;
    let first = first.as_str().unwrap_or_default();
    if cut { format!("{first}…") } else { first.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_summarised_in_one_bounded_line() {
        let input = |value: Value| value.as_object().cloned().unwrap_or_default();
        let long = "ä".repeat(1_000_000);
        for (given, shown) in [
            (json!({"command": "ls -l", "description": "List"}), "ls -l".to_owned()),
            (json!({"command": "one\ntwo"}), "one…".to_owned()),
            (json!({"file_path": "/a\u{1b}[2K"}), "/a\\u{1b}[2K".to_owned()),
            (json!({"a": 1}), r#"{"a":1}"#.to_owned()),
            (json!({}), "{}".to_owned()),
            (json!({"command": long}), format!("{}…", "ä".repeat(100))),
            (json!({"a": long}), format!("{{\"a\":\"{}…", "ä".repeat(97))),
        ] {
            assert_eq!(summary(&input(given)), shown);
        }
    }
}
