//! Output for users: results on stdout, messages on stderr. A closed terminal is not an error.

use std::io::Write as _;

use plexus_protocol::shorten;
use serde::Serialize;
use serde_json::Value;

/// Prints a line of the result.
pub(crate) fn print(line: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// Prints a message on stderr.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Prints a result as indented JSON. Misleading characters are escaped, because it may be read at a terminal.
pub(crate) fn json(value: &impl Serialize) {
    print(&harmless(value, serde_json::to_string_pretty));
}

/// Prints one of many results as a line of JSON.
pub(crate) fn json_line(value: &impl Serialize) {
    print(&harmless(value, serde_json::to_string));
}

fn harmless(value: &impl Serialize, write: fn(&Value) -> serde_json::Result<String>) -> String {
    let mut value = serde_json::to_value(value).unwrap_or_default();
    shorten(&mut value, usize::MAX);
    write(&value).unwrap_or_default()
}
