//! What people see: results on stdout, words on stderr. A terminal that is gone is no reason to fail.

use std::io::Write as _;

/// A line of result.
pub(crate) fn print(line: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// A line for people beside the result.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
