//! What people see: results on stdout, words on stderr. A terminal that is gone is no reason to fail.

use std::io::Write as _;

use plexus_protocol::shorten;
use serde::Serialize;
use serde_json::Value;

/// A line of result.
pub(crate) fn print(line: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// A line for people beside the result.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// A result for programs, on lines of its own. It may be read at a terminal all the same, so nothing in it misleads one.
pub(crate) fn json(value: &impl Serialize) {
    print(&harmless(value, serde_json::to_string_pretty));
}

/// A result for programs, one of many, in one line.
pub(crate) fn json_line(value: &impl Serialize) {
    print(&harmless(value, serde_json::to_string));
}

fn harmless(value: &impl Serialize, write: fn(&Value) -> serde_json::Result<String>) -> String {
    let mut value = serde_json::to_value(value).unwrap_or_default();
    shorten(&mut value, usize::MAX);
    write(&value).unwrap_or_default()
}
