//! Asking a person at a terminal before something is sent: what it is, page by page and in full, then yes or no. Only a clear yes
//! counts, and nothing that was typed before the question was shown.

use std::io::{IsTerminal as _, Write as _};

use crate::output;
use crate::review::{Reading, Row};
use crate::terminal::size;
use crate::typed::Typed;

/// What a person said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confirmed {
    /// A clear yes.
    Yes,
    /// Anything else that ends the question.
    No,
}

/// Whether there is a person to ask.
pub(crate) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Shows all rows, then asks.
pub(crate) async fn confirm(typed: &mut Typed, rows: &[Row], question: &str) -> Confirmed {
    let (width, height) = size();
    let mut reading = Reading::of(rows, width);
    loop {
        output::say(&reading.page(height.saturating_sub(2)));
        if reading.all() {
            break;
        }
        prompt(&format!("-- {}; Enter shows more, q cancels: ", reading.progress()));
        match line(typed).await.as_deref() {
            Some("") => {}
            Some("q") | None => return Confirmed::No,
            Some(_) => output::say("plexus: it cannot be allowed before all of it was shown"),
        }
    }
    typed.forget();
    loop {
        prompt(&format!("{question} y or n: "));
        match line(typed).await.map(|line| line.to_ascii_lowercase()).as_deref() {
            Some("y" | "yes") => return Confirmed::Yes,
            Some("n" | "no" | "q") | None => return Confirmed::No,
            Some(_) => {}
        }
    }
}

/// The next line, trimmed; `None` after the last one and after Ctrl-C.
pub(crate) async fn line(typed: &mut Typed) -> Option<String> {
    let line = tokio::select! {
        line = typed.line() => line,
        _ = tokio::signal::ctrl_c() => None,
    };
    line.map(|line| line.trim().to_owned())
}

/// Words on a line that a person goes on typing on.
pub(crate) fn prompt(words: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "{words}").and_then(|()| stderr.flush());
}
