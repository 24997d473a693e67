//! Handles keys. They edit one of two lines: the draft, which is for the agent, and the answer to the approval on the screen. A draft that
//! is not finished when an approval appears keeps the keys until the user finishes it or sets it aside with Tab, so that no key that was
//! meant for the agent answers the approval.

use plexus_protocol::claudecode::Status;

use super::answering::Awaiting;
use super::line::{Edit, Line};
use super::screen::Bottom;
use super::{Connection, Purpose, TerminalSession};
use crate::error::ExpectedError;
use crate::watch::decode::Input;

/// The line that keys go to while an approval is on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Focus {
    /// The answer to the approval.
    Answer,
    /// The draft, which was not finished when the approval appeared.
    Draft,
}

impl TerminalSession<'_> {
    /// Whether keys answer an approval.
    fn is_answering(&self) -> bool {
        self.awaiting != Awaiting::Nothing && self.focus == Focus::Answer
    }

    /// The prompt of the line that keys go to; `None` if the status is shown instead.
    pub(super) fn typing_prompt(&self) -> Option<Bottom> {
        let approval = self.open.front().map(|open| &open.approval);
        if let Some(prompt) = self.awaiting.prompt(approval).filter(|_| self.focus == Focus::Answer) {
            return Some(Bottom::Prompt { prompt, typed: self.answer.text().to_owned() });
        }
        let waits = self.awaiting != Awaiting::Nothing || self.purpose == Purpose::Stay && !self.busy();
        let prompt = match self.purpose {
            Purpose::Stay => format!("{}> ", self.name),
            Purpose::Turn(_) => "not sent> ".to_owned(),
        };
        let typed = self.draft.text().to_owned();
        (waits || !typed.is_empty()).then_some(Bottom::Prompt { prompt, typed })
    }

    /// Handles a key. Returns the status if the user leaves.
    pub(super) async fn on_input(&mut self, input: &Input) -> Result<Option<Status>, ExpectedError> {
        if self.connection == Connection::Lost {
            return Ok(None);
        }
        let answering = self.is_answering();
        let line = if answering { &mut self.answer } else { &mut self.draft };
        match line.apply(input) {
            Edit::Changed => {}
            Edit::End => return self.detach().map(Some),
            Edit::Tab if !answering && self.awaiting != Awaiting::Nothing => self.focus = Focus::Answer,
            Edit::Tab => line.push("\t"),
            Edit::Done(text) => {
                // Drawn before it is handled: the line stays on the screen.
                line.push(&text);
                if let Some(prompt) = self.typing_prompt() {
                    self.screen.set_bottom(prompt);
                    self.screen.end_line();
                }
                if answering {
                    self.answer.clear();
                    self.handle_line(text).await?;
                } else {
                    self.draft.clear();
                    self.focus = Focus::Answer;
                    self.send(&text).await?;
                }
            }
        }
        Ok(None)
    }

    /// Assigns the input that was typed before an approval was shown or resolved. Input for an earlier approval is discarded, because it
    /// must neither answer another one nor become a message to the agent. Other input belongs to the draft.
    pub(super) fn take_typed(&mut self, before: Typing) {
        self.answer.clear();
        if before == Typing::Answer {
            self.discard_typed();
        } else {
            for input in self.keyboard.drain() {
                match self.draft.apply(&input) {
                    Edit::Done(line) => self.finished_drafts.push_back(line),
                    Edit::Tab => self.draft.push("\t"),
                    Edit::End => self.leaving = true,
                    Edit::Changed => {}
                }
            }
        }
        if self.awaiting == Awaiting::Nothing {
            return;
        }
        if self.draft.is_blank() {
            self.draft.clear();
            self.focus = Focus::Answer;
        } else if before == Typing::Draft {
            self.focus = Focus::Draft;
            let enter = match self.purpose {
                Purpose::Stay => "Enter sends it first",
                Purpose::Turn(_) => "Enter discards it",
            };
            self.screen.say(&format!(
                "plexus: your line is kept: Tab answers the request above, and then you can go on with it; {enter}"
            ));
        }
    }

    /// Discards the input typed so far, except for Ctrl-D, which leaves the session in any case.
    pub(super) fn discard_typed(&mut self) {
        let mut line = Line::default();
        for input in self.keyboard.drain() {
            match line.apply(&input) {
                Edit::End => self.leaving = true,
                Edit::Done(_) => line.clear(),
                Edit::Tab | Edit::Changed => {}
            }
        }
    }

    /// What keys were for until now.
    pub(super) fn typing(&self) -> Typing {
        if self.is_answering() { Typing::Answer } else { Typing::Draft }
    }
}

/// What keys are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Typing {
    /// The approval on the screen.
    Answer,
    /// The line for the agent.
    Draft,
}
