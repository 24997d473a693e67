//! Asks for confirmation at a terminal: shows a call in full, page by page, and then asks for yes or no, or for the answers to an
//! agent's questions. Only an explicit yes counts. Input typed before the prompt was shown is ignored.

use std::io::{IsTerminal as _, Write as _};

use plexus_protocol::Object;
use serde_json::Value;

use crate::output;
use crate::paint::Paint;
use crate::review::page::height_above;
use crate::review::question::{Question, Reply, confirm_free_text};
use crate::review::{Pager, Row};
use crate::terminal::{one_line, size};
use crate::typed::Typed;

/// The result of a confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confirmed {
    /// An explicit yes.
    Yes,
    /// Anything else that ends the prompt.
    No,
}

/// Whether stdin and stderr are terminals.
pub(crate) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Shows all rows of a call, then asks whether to allow it.
pub(crate) async fn confirm(typed: &mut Typed, rows: &[Row], question: &str) -> Confirmed {
    yes_or_no(typed, rows, &format!("{question} y allows, n leaves it open: ")).await
}

/// Shows all rows, then asks. `question` says what yes and no do.
pub(crate) async fn yes_or_no(typed: &mut Typed, rows: &[Row], question: &str) -> Confirmed {
    if show(typed, rows, question).await == Confirmed::No {
        return Confirmed::No;
    }
    loop {
        prompt(question);
        match line(typed).await.map(|line| line.to_ascii_lowercase()).as_deref() {
            Some("y" | "yes") => return Confirmed::Yes,
            Some("n" | "no" | "q") | None => return Confirmed::No,
            Some(_) => {}
        }
    }
}

/// Shows all rows, then asks for an answer to each question; `None` if one is left unanswered.
pub(crate) async fn answers(typed: &mut Typed, rows: &[Row], questions: &[Question]) -> Option<Object> {
    let ask = |question: &Question| {
        let text = one_line(&question.text, 80);
        format!("{text} Answer ({}; Enter alone leaves it open): ", question.forms())
    };
    let longest = questions.iter().map(ask).max_by_key(String::len)?;
    if show(typed, rows, &longest).await == Confirmed::No {
        return None;
    }
    let mut given = Object::new();
    for question in questions {
        let answer = loop {
            prompt(&ask(question));
            let line = line(typed).await.filter(|line| !line.is_empty())?;
            match question.read(&line) {
                Reply::Answer(answer) => break answer,
                Reply::FreeText(words) if sends(typed, &words).await? == Confirmed::Yes => break words,
                Reply::FreeText(_) => {}
                Reply::Invalid(why) => output::say(&format!("plexus: {why}")),
            }
        };
        given.insert(question.text.clone(), Value::String(answer));
    }
    Some(given)
}

/// Asks whether to send an answer that is not one of the options; `None` at the end of input and after Ctrl-C.
async fn sends(typed: &mut Typed, words: &str) -> Option<Confirmed> {
    loop {
        prompt(&confirm_free_text(words));
        match line(typed).await?.to_ascii_lowercase().as_str() {
            "y" | "yes" => return Some(Confirmed::Yes),
            "n" | "no" | "q" => return Some(Confirmed::No),
            _ => {}
        }
    }
}

/// Shows all rows in pages that leave room for this prompt; `No` if it was cancelled before the last page.
async fn show(typed: &mut Typed, rows: &[Row], question: &str) -> Confirmed {
    let mut pager = Pager::of(rows, size().0);
    loop {
        // The terminal may have been resized while the last page was read.
        let size = size();
        pager.resize(size.0);
        let page = height_above(size, &[more(&pager.longest_progress()), question.to_owned()]);
        output::say(&pager.page(page, Paint::of(&std::io::stderr())));
        if pager.all() {
            break;
        }
        loop {
            prompt(&more(&pager.progress()));
            match line(typed).await.map(|line| line.to_ascii_lowercase()).as_deref() {
                Some("") => break,
                Some("n" | "no" | "q") | None => return Confirmed::No,
                Some(_) => output::say("plexus: you can allow it once you have seen all of it"),
            }
        }
    }
    typed.discard();
    Confirmed::Yes
}

/// The prompt below a page that is not the last.
fn more(progress: &str) -> String {
    format!("-- {progress}; Enter shows more, n or q cancels: ")
}

/// The next line, trimmed; `None` at the end of input and after Ctrl-C.
pub(crate) async fn line(typed: &mut Typed) -> Option<String> {
    let line = tokio::select! {
        line = typed.line() => line,
        _ = tokio::signal::ctrl_c() => None,
    };
    line.map(|line| line.trim().to_owned())
}

/// Prints a prompt without a newline.
pub(crate) fn prompt(words: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "{words}").and_then(|()| stderr.flush());
}
