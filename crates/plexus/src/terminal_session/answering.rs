//! Answers approvals at the terminal: shows them in sequence and interprets typed lines. A line typed before an approval was shown never
//! answers it, and no line allows a call that was not shown in full.

use plexus_protocol::claudecode::Status;
use plexus_protocol::{Approval, ApprovalKind, ApprovalStatus, Object};
use serde_json::{Value, json};

use super::TerminalSession;
use super::question::{self, TypedAnswer};
use super::screen::{Bottom, OutputMode};
use super::typing::Typing;
use crate::answer_confirmation::{self, Outcome};
use crate::approve::allow;
use crate::error::ExpectedError;
use crate::escape::exact;
use crate::review::page::height_above;
use crate::review::question::{Reply, confirm_free_text, questions};
use crate::review::{self, Pager, Reviewed, Row};
use crate::terminal::{now, one_line, size};
use crate::{remember, show};

/// How the next typed line is interpreted.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Awaiting {
    /// There is no prompt.
    Nothing,
    /// As a command for the next page; the prompt after the last page.
    Pages(Pager, Box<Awaiting>),
    /// As a decision.
    Decision,
    /// As a rule; an empty line selects the rule given here.
    Rule(Option<String>),
    /// As an answer to a question, in addition to the answers already given.
    Answers(Object),
    /// Whether to send this text, which is not one of the options, as the next answer.
    FreeText(Object, String),
    /// Whether to edit this text again.
    Again(String),
    /// Whether to allow the call with this input.
    Changed(Object),
}

impl Awaiting {
    /// The prompt.
    pub(super) fn prompt(&self, approval: Option<&Approval>) -> Option<String> {
        Some(match self {
            Self::Nothing => return None,
            Self::Pages(pager, next) => {
                let others =
                    if matches!(**next, Self::Changed(_)) { "q cancels" } else { "n denies, s skips" };
                format!("-- {}; Enter shows more, {others}: ", pager.progress())
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
            Self::FreeText(_, words) => confirm_free_text(words),
            // In full, because it allows future calls.
            Self::Rule(Some(rule)) => format!("Rule to remember (q cancels) [{}]: ", exact(rule)),
            Self::Rule(None) => "Rule to remember, such as Bash(make:*) (q cancels): ".to_owned(),
            Self::Again(_) => "Press Enter to edit it again, or n to go back: ".to_owned(),
            Self::Changed(_) => "Allow it with this input? y, or n to cancel the edit: ".to_owned(),
        })
    }
}

impl TerminalSession<'_> {
    /// Adds an approval of the session or of a session below it.
    pub(super) fn add_approval(&mut self, mut reviewed: Reviewed) {
        let approval = &reviewed.approval;
        let known = self.open.iter().any(|open| open.approval.id == approval.id);
        if approval.status != ApprovalStatus::Pending || known {
            return;
        }
        if approval.session_id == self.id {
            self.status = Status::AwaitingPermission;
        }
        if self.input_closed {
            self.print_answer_command(&reviewed.approval);
            return;
        }
        if reviewed.approval.session_id == self.id {
            // It is already on the screen, just above.
            reviewed.approval.said = None;
        }
        self.open.push_back(reviewed);
        if self.open.len() == 1 {
            self.show_next();
        }
    }

    /// Prints the command that answers an approval.
    fn print_answer_command(&mut self, approval: &Approval) {
        if self.screen.output_mode == OutputMode::Json {
            return;
        }
        let id = approval.id.to_string();
        let id = show::short(&id);
        let name = approval.session_label();
        self.screen.say(&format!(
            "plexus: {name} needs approval: `plexus approve {id}`, or `plexus deny {id} -m WHY`"
        ));
    }

    /// Shows the first open approval from its beginning.
    pub(super) fn show_next(&mut self) {
        let before = self.typing();
        self.screen.set_bottom(Bottom::Empty);
        self.show_held_lines();
        let Some(reviewed) = self.open.front() else {
            self.awaiting = Awaiting::Nothing;
            if self.status == Status::AwaitingPermission {
                self.status = Status::Running;
            }
            // Input typed after the last answer is for the agent.
            return self.take_typed(Typing::Draft);
        };
        let next = match reviewed.approval.kind {
            ApprovalKind::Question => Awaiting::Answers(Object::new()),
            _ => Awaiting::Decision,
        };
        let rows = review::rows(reviewed, now());
        self.show_pages(&rows, next);
        self.take_typed(before);
    }

    /// Shows the first page; `next` follows the last one.
    pub(super) fn show_pages(&mut self, rows: &[Row], next: Awaiting) {
        self.turn_page(Pager::of(rows, size().0), next);
    }

    fn turn_page(&mut self, mut pager: Pager, next: Awaiting) {
        let size = size();
        pager.resize(size.0);
        let approval = self.open.front().map(|open| &open.approval);
        let more = Awaiting::Pages(pager.clone(), Box::new(next.clone())).prompt(approval);
        let prompts = [more, next.prompt(approval)].map(Option::unwrap_or_default);
        let page = pager.page(height_above(size, &prompts), self.screen.paint);
        self.screen.say(&page);
        self.awaiting = if pager.all() { next } else { Awaiting::Pages(pager, Box::new(next)) };
    }

    /// Removes an approval that another client resolved; `description` describes the resolution. Approvals answered here are no longer in the list.
    pub(super) fn resolved(&mut self, id: &str, description: impl FnOnce(&Approval) -> String) {
        self.unread.retain(|unread| unread != id);
        let Some(position) = self.open.iter().position(|open| open.approval.id.to_string() == id) else {
            return;
        };
        let Some(resolved) = self.open.remove(position) else { return };
        if position == 0 {
            self.screen.say(&format!("plexus: {}", description(&resolved.approval)));
            if self.typing() == Typing::Answer {
                // A late answer must not become a message to the agent.
                self.discard_typed();
            }
            self.show_next();
        }
    }

    /// Interprets a line that was typed at the approval on the screen.
    pub(super) async fn handle_line(&mut self, line: String) -> Result<(), ExpectedError> {
        let Some(reviewed) = self.open.front().cloned() else { return Ok(()) };
        let approval = &reviewed.approval;
        match self.awaiting.clone() {
            Awaiting::Nothing => {}
            Awaiting::Pages(pager, next) => match (question::read(&line), *next) {
                (TypedAnswer::More, next) => self.turn_page(pager, next),
                (_, Awaiting::Changed(_)) if matches!(line.trim(), "q" | "n") => self.cancel_edit(""),
                (TypedAnswer::No(reason), Awaiting::Decision) => self.deny(approval, reason).await?,
                (TypedAnswer::Edit, Awaiting::Decision) => self.edit(approval, None).await?,
                (TypedAnswer::Skip, _) => self.skip(),
                (answer, _) => {
                    if answer != TypedAnswer::Unclear {
                        self.screen.say("plexus: you can allow it once you have seen all of it");
                    }
                }
            },
            Awaiting::Decision => match question::read(&line) {
                TypedAnswer::Yes => self.respond(approval, allow(approval)).await?,
                TypedAnswer::No(reason) => self.deny(approval, reason).await?,
                TypedAnswer::Edit => self.edit(approval, None).await?,
                TypedAnswer::Always => self.awaiting = Awaiting::Rule(remember::suggested(approval)),
                TypedAnswer::Skip => self.skip(),
                TypedAnswer::More | TypedAnswer::Unclear => {}
            },
            Awaiting::Rule(suggested) => match (line.trim(), suggested) {
                ("" | "n" | "q", None) | ("n" | "q", Some(_)) => self.show_next(),
                ("", Some(rule)) => self.respond_always(approval, &rule).await?,
                (rule, _) => self.respond_always(approval, rule).await?,
            },
            Awaiting::Answers(given) => {
                let questions = questions(&approval.input);
                let asked = questions.get(given.len()).filter(|_| !line.trim().is_empty());
                match asked.map(|question| question.read(line.trim())) {
                    None => self.skip(),
                    Some(Reply::Answer(answer)) => self.answer_question(approval, given, answer).await?,
                    Some(Reply::FreeText(words)) => self.awaiting = Awaiting::FreeText(given, words),
                    Some(Reply::Invalid(why)) => self.screen.say(&format!("plexus: {why}")),
                }
            }
            Awaiting::FreeText(given, words) => match question::read(&line) {
                TypedAnswer::Yes => self.answer_question(approval, given, words).await?,
                TypedAnswer::No(None) => self.awaiting = Awaiting::Answers(given),
                _ => {}
            },
            Awaiting::Again(text) if !matches!(line.trim(), "n" | "q") => {
                self.edit(approval, Some(&text)).await?
            }
            Awaiting::Again(_) => self.cancel_edit(""),
            Awaiting::Changed(input) => match question::read(&line) {
                TypedAnswer::Yes => {
                    let mut answer = allow(approval);
                    answer["updated_input"] = Value::Object(input);
                    self.respond(approval, answer).await?;
                }
                TypedAnswer::No(None) => self.cancel_edit(""),
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
            self.awaiting = Awaiting::Answers(given);
            return Ok(());
        }
        let mut answer = allow(approval);
        answer["answers"] = Value::Object(given);
        self.respond(approval, answer).await
    }

    fn skip(&mut self) {
        if let Some(reviewed) = self.open.pop_front() {
            self.print_answer_command(&reviewed.approval);
        }
        self.show_next();
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
            Ok(answered) => match answer_confirmation::of(approval, &answer, &answered) {
                Outcome::Done(description) | Outcome::TooLate(description) => {
                    self.screen.say(&format!("plexus: {description}"));
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
            self.show_next();
            return Ok(());
        };
        self.screen.say(&format!("plexus: {why}"));
        // From the start, because the screen may show an edited input or only the first page.
        self.show_next();
        Ok(())
    }
}
