//! Answers approvals at the terminal: shows them in sequence and interprets typed lines. A line typed before an approval was shown never
//! answers it, and no line allows a call that was not shown in full.

use plexus_protocol::claudecode::Status;
use plexus_protocol::{Approval, ApprovalKind, ApprovalStatus, Object};
use serde_json::{Value, json};

use super::question::{self, Said};
use super::screen::{Bottom, Manner};
use super::{Purpose, Talk};
use crate::approve::allow;
use crate::client::CallError;
use crate::error::ExpectedError;
use crate::outcome::{self, Outcome};
use crate::review::page::height_above;
use crate::review::question::{Reply, questions, send_own_words};
use crate::review::width::exact;
use crate::review::{self, Reading, Reviewed, Row};
use crate::terminal::{now, one_line, size};
use crate::{remember, show};

/// How the next typed line is interpreted.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Asking {
    /// There is no prompt.
    Nothing,
    /// As a command for the next page; the prompt after the last page.
    Pages(Reading, Box<Asking>),
    /// As a decision.
    Decision,
    /// As a rule; an empty line stands for this one.
    Rule(Option<String>),
    /// As an answer to a question; these were given already.
    Answers(Object),
    /// Whether to send this text, which is not one of the options, as the next answer.
    OwnWords(Object, String),
    /// Whether to edit this text again.
    Again(String),
    /// Whether to allow the call with this input.
    Changed(Object),
}

impl Asking {
    /// The prompt.
    pub(super) fn prompt(&self, approval: Option<&Approval>) -> Option<String> {
        Some(match self {
            Self::Nothing => return None,
            Self::Pages(reading, next) => {
                let others =
                    if matches!(**next, Self::Changed(_)) { "q cancels" } else { "n denies, s skips" };
                format!("-- {}; Enter shows more, {others}: ", reading.progress())
            }
            Self::Decision => "Allow it? y, n, n WHY, e(dit), a(lways), s(kip): ".to_owned(),
            Self::Answers(given) => {
                let questions = questions(&approval?.input);
                let (text, forms) = questions
                    .get(given.len())
                    .map(|question| (question.text.as_str(), question.forms()))
                    .unwrap_or(("", "words"));
                format!("{} Answer ({forms}; Enter alone leaves it open): ", one_line(text, 80))
                    .trim_start()
                    .to_owned()
            }
            Self::OwnWords(_, words) => send_own_words(words),
            // In full, because it allows future calls.
            Self::Rule(Some(rule)) => format!("Rule to remember (q cancels) [{}]: ", exact(rule)),
            Self::Rule(None) => "Rule to remember, such as Bash(make:*) (q cancels): ".to_owned(),
            Self::Again(_) => "Press Enter to edit it again, or n to go back: ".to_owned(),
            Self::Changed(_) => "Allow it with this input? y, or n to cancel the edit: ".to_owned(),
        })
    }
}

impl Talk<'_> {
    /// Adds an approval of the session or of a session below it.
    pub(super) fn ask(&mut self, reviewed: Reviewed) {
        let approval = &reviewed.approval;
        let known = self.open.iter().any(|open| open.approval.id == approval.id);
        if approval.status != ApprovalStatus::Pending || known {
            return;
        }
        if approval.session_id == self.id {
            self.status = Status::AwaitingPermission;
        }
        if self.deaf {
            self.elsewhere(&reviewed.approval);
            return;
        }
        self.open.push_back(reviewed);
        if self.open.len() == 1 {
            self.next_question();
        }
    }

    /// Prints the command that answers an approval.
    fn elsewhere(&mut self, approval: &Approval) {
        if self.screen.manner == Manner::Json {
            return;
        }
        let id = approval.id.to_string();
        let id = show::short(&id);
        let name = &approval.session_name;
        self.screen.say(&format!(
            "plexus: {name} needs approval: `plexus approve {id}`, or `plexus deny {id} -m WHY`"
        ));
    }

    /// Leaves all approvals open, because nothing can be typed here any more.
    pub(super) fn leave_open(&mut self) {
        self.asking = Asking::Nothing;
        self.show_later();
        for reviewed in std::mem::take(&mut self.open) {
            self.elsewhere(&reviewed.approval);
        }
    }

    /// Shows the first open approval from its beginning.
    pub(super) fn next_question(&mut self) {
        self.screen.set_bottom(Bottom::Empty);
        self.show_later();
        let Some(reviewed) = self.open.front() else {
            self.asking = Asking::Nothing;
            if self.status == Status::AwaitingPermission {
                self.status = Status::Running;
            }
            return;
        };
        let next = match reviewed.approval.kind {
            ApprovalKind::Question => Asking::Answers(Object::new()),
            _ => Asking::Decision,
        };
        let rows = review::rows(reviewed, now());
        self.typed.forget();
        self.show_pages(&rows, next);
    }

    /// Shows the first page; `next` follows the last one.
    pub(super) fn show_pages(&mut self, rows: &[Row], next: Asking) {
        self.turn_page(Reading::of(rows, size().0), next);
    }

    fn turn_page(&mut self, mut reading: Reading, next: Asking) {
        let size = size();
        reading.resize(size.0);
        let approval = self.open.front().map(|open| &open.approval);
        let more = Asking::Pages(reading.clone(), Box::new(next.clone())).prompt(approval);
        let prompts = [more, next.prompt(approval)].map(Option::unwrap_or_default);
        let page = reading.page(height_above(size, &prompts));
        self.screen.say(&page);
        self.asking = if reading.all() { next } else { Asking::Pages(reading, Box::new(next)) };
    }

    /// Removes an approval that another client resolved; `said` describes the resolution. Approvals answered here are no longer in the list.
    pub(super) fn resolved(&mut self, id: &str, said: impl FnOnce(&Approval) -> String) {
        self.unread.retain(|unread| unread != id);
        let Some(place) = self.open.iter().position(|open| open.approval.id.to_string() == id) else {
            return;
        };
        let Some(resolved) = self.open.remove(place) else { return };
        if place == 0 {
            self.screen.say(&format!("plexus: {}", said(&resolved.approval)));
            // A late answer must not become a message to the agent.
            self.typed.forget();
            self.next_question();
        }
    }

    /// Interprets a typed line.
    pub(super) async fn take(&mut self, line: String) -> Result<(), ExpectedError> {
        let Some(reviewed) = self.open.front().cloned() else { return self.send(&line).await };
        let approval = &reviewed.approval;
        match self.asking.clone() {
            Asking::Nothing => {}
            Asking::Pages(reading, next) => match (question::read(&line), *next) {
                (Said::More, next) => self.turn_page(reading, next),
                (_, Asking::Changed(_)) if matches!(line.trim(), "q" | "n") => self.cancel_edit(""),
                (Said::No(reason), Asking::Decision) => self.deny(approval, reason).await?,
                (Said::Edit, Asking::Decision) => self.edit(approval, None).await?,
                (Said::Skip, _) => self.skip(),
                (said, _) => {
                    if said != Said::Unclear {
                        self.screen.say("plexus: you can allow it once you have seen all of it");
                    }
                }
            },
            Asking::Decision => match question::read(&line) {
                Said::Yes => self.respond(approval, allow(approval)).await?,
                Said::No(reason) => self.deny(approval, reason).await?,
                Said::Edit => self.edit(approval, None).await?,
                Said::Always => self.asking = Asking::Rule(remember::suggested(approval)),
                Said::Skip => self.skip(),
                Said::More | Said::Unclear => {}
            },
            Asking::Rule(suggested) => match (line.trim(), suggested) {
                ("" | "n" | "q", None) | ("n" | "q", Some(_)) => self.next_question(),
                ("", Some(rule)) => self.respond_always(approval, &rule).await?,
                (rule, _) => self.respond_always(approval, rule).await?,
            },
            Asking::Answers(given) => {
                let questions = questions(&approval.input);
                let asked = questions.get(given.len()).filter(|_| !line.trim().is_empty());
                match asked.map(|question| question.read(line.trim())) {
                    None => self.skip(),
                    Some(Reply::Answer(answer)) => self.answer_question(approval, given, answer).await?,
                    Some(Reply::OwnWords(words)) => self.asking = Asking::OwnWords(given, words),
                    Some(Reply::Invalid(why)) => self.screen.say(&format!("plexus: {why}")),
                }
            }
            Asking::OwnWords(given, words) => match question::read(&line) {
                Said::Yes => self.answer_question(approval, given, words).await?,
                Said::No(None) => self.asking = Asking::Answers(given),
                _ => {}
            },
            Asking::Again(text) if !matches!(line.trim(), "n" | "q") => {
                self.edit(approval, Some(&text)).await?
            }
            Asking::Again(_) => self.cancel_edit(""),
            Asking::Changed(input) => match question::read(&line) {
                Said::Yes => {
                    let mut answer = allow(approval);
                    answer["updated_input"] = Value::Object(input);
                    self.respond(approval, answer).await?;
                }
                Said::No(None) => self.cancel_edit(""),
                _ => {}
            },
        }
        Ok(())
    }

    /// Stores the answer to a question; after the last one, sends all answers.
    async fn answer_question(
        &mut self,
        approval: &Approval,
        mut given: Object,
        answer: String,
    ) -> Result<(), ExpectedError> {
        let questions = questions(&approval.input);
        if let Some(question) = questions.get(given.len()) {
            given.insert(question.text.clone(), Value::String(answer));
        }
        if given.len() < questions.len() {
            self.asking = Asking::Answers(given);
            return Ok(());
        }
        let mut answer = allow(approval);
        answer["answers"] = Value::Object(given);
        self.respond(approval, answer).await
    }

    fn skip(&mut self) {
        if let Some(reviewed) = self.open.pop_front() {
            self.elsewhere(&reviewed.approval);
        }
        self.next_question();
    }

    async fn deny(&mut self, approval: &Approval, reason: Option<String>) -> Result<(), ExpectedError> {
        let mut answer = json!({"approval_id": approval.id, "approve": false});
        if let Some(reason) = reason {
            answer["message"] = json!(reason);
        }
        self.respond(approval, answer).await
    }

    async fn respond_always(&mut self, approval: &Approval, rule: &str) -> Result<(), ExpectedError> {
        match remember::check_alone(self.hub, approval.id, rule).await {
            Ok(()) => {}
            // The prompt for the rule stays.
            Err(ExpectedError::Refused(why)) => {
                self.screen.say(&format!("plexus: {}", one_line(&why, 400)));
                return Ok(());
            }
            Err(error @ (ExpectedError::Lost(_) | ExpectedError::NoHub(_))) => {
                self.disconnected(&error);
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        let mut answer = allow(approval);
        answer["remember"] = json!({"rule": rule});
        self.respond(approval, answer).await
    }

    /// Answers the approval on the screen, confirms the answer, and shows the next one. If the hub refuses, shows it again.
    async fn respond(&mut self, approval: &Approval, answer: Value) -> Result<(), ExpectedError> {
        let refused = match self.hub.respond(answer.clone()).await {
            Ok(answered) => match outcome::of(approval, &answer, &answered) {
                Outcome::Done(said) | Outcome::TooLate(said) => {
                    self.screen.say(&format!("plexus: {said}"));
                    None
                }
                Outcome::Refused(why) => Some(why),
            },
            Err(ExpectedError::Refused(message)) => Some(one_line(&message, 400)),
            Err(error @ (ExpectedError::Lost(_) | ExpectedError::NoHub(_))) => {
                self.disconnected(&error);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let Some(why) = refused else {
            self.open.pop_front();
            self.next_question();
            return Ok(());
        };
        self.screen.say(&format!("plexus: {why}"));
        // From the start, because the screen may show an edited input or only the first page.
        self.next_question();
        Ok(())
    }

    /// Sends a message to the agent: into its turn, or as the next prompt.
    async fn send(&mut self, line: &str) -> Result<(), ExpectedError> {
        if self.purpose != Purpose::Stay || line.trim().is_empty() {
            return Ok(());
        }
        let words = json!({"session_id": self.id, "prompt": line});
        let (first, other) = match self.busy() {
            true => ("claudecode.send", "claudecode.chat_async"),
            false => ("claudecode.chat_async", "claudecode.send"),
        };
        let mut sent = self.hub.client.call(first, words.clone()).await;
        // The turn may have ended or started meanwhile.
        if matches!(&sent, Err(CallError::Refused { kind, .. }) if kind == "no_turn" || kind == "turn_in_progress")
        {
            sent = self.hub.client.call(other, words).await;
        }
        match sent.map_err(|error| self.hub.explain(error)) {
            Ok(_) => Ok(()),
            Err(ExpectedError::Refused(why)) => {
                self.screen.say(&format!("plexus: {why}"));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}
