//! Output for users: results on stdout, messages on stderr. A closed terminal is not an error. If the reader of a pipe has closed it,
//! as `head` does, the process exits as other programs do on SIGPIPE.

use std::io::{ErrorKind, Write as _};

use plexus_protocol::shorten;
use serde::Serialize;
use serde_json::Value;

/// The exit code of a shell for a program that SIGPIPE killed.
const PIPE_CLOSED: i32 = 141;

/// Prints a line of the result.
pub(crate) fn print(line: &str) {
    let _ = write(&format!("{line}\n"));
}

/// Writes a part of the result. If it is written to a file, the caller reports errors such as a full disk.
pub(crate) fn write(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(PIPE_CLOSED),
        written => written,
    }
}

/// Prints a line of a program that continues if stdout is closed, such as the hub.
pub(crate) fn announce(line: &str) {
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
