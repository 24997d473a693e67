//! Answering at the terminal: the open questions one after the other, and what a typed line means for the one that is
//! shown. A line that was typed before a question was shown never answers it.

use plexus_protocol::claudecode::Status;
use plexus_protocol::loopback::Answered;
use plexus_protocol::{Approval, ApprovalKind, ApprovalStatus, Object};
use serde_json::{Value, json};

use super::question::{self, Said};
use super::screen::{Bottom, Manner};
use super::{Purpose, Talk};
use crate::approve::{allow, editable, over};
use crate::client::CallError;
use crate::editor::{Draft, EditError, Edited};
use crate::error::ExpectedError;
use crate::terminal::{one_line, safe};
use crate::{remember, show};

/// What the next typed line is taken for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Asking {
    /// Nothing is asked.
    Nothing,
    /// A decision.
    Decision,
    /// The rule to be made; this one, if the line is empty.
    Rule(Option<String>),
    /// Answers; these were given already.
    Answers(Object),
    /// Whether to edit this text again.
    Again(String),
}

impl Asking {
    /// What stands before the line.
    pub(super) fn prompt(&self, approval: Option<&Approval>) -> Option<String> {
        Some(match self {
            Self::Nothing => return None,
            Self::Decision => "Allow it? y, n, n WHY, e(dit), a(lways), s(kip): ".to_owned(),
            Self::Answers(given) => {
                let questions = question::questions(approval?);
                let text =
                    questions.get(given.len()).map(|question| question.text.as_str()).unwrap_or_default();
                format!("{} Answer (a number or words; nothing leaves it open): ", one_line(text, 80))
                    .trim_start()
                    .to_owned()
            }
            Self::Rule(Some(rule)) => {
                format!("Rule to remember [{}]: ", one_line(rule, 100))
            }
            Self::Rule(None) => "Rule to remember, such as Bash(make:*): ".to_owned(),
            Self::Again(_) => "Press Enter to edit it again, or q to go back: ".to_owned(),
        })
    }
}

impl Talk<'_> {
    /// Somebody below, or the session itself, waits for an answer.
    pub(super) fn ask(&mut self, approval: Approval) {
        if approval.status != ApprovalStatus::Pending || self.open.iter().any(|open| open.id == approval.id) {
            return;
        }
        if approval.session_id == self.id {
            self.status = Status::AwaitingPermission;
        }
        if self.deaf {
            self.elsewhere(&approval);
            return;
        }
        self.open.push_back(approval);
        if self.open.len() == 1 {
            self.next_question();
        }
    }

    /// Says how to answer from somewhere else.
    fn elsewhere(&mut self, approval: &Approval) {
        if self.screen.manner == Manner::Json {
            return;
        }
        let id = approval.id.to_string();
        let id = show::short(&id);
        let name = &approval.session_name;
        self.screen.say(&format!(
            "plexus: {name} waits for an answer: `plexus approve {id}`, or `plexus deny {id} -m why`"
        ));
    }

    /// Nobody can be asked here any more.
    pub(super) fn leave_open(&mut self) {
        self.asking = Asking::Nothing;
        for approval in std::mem::take(&mut self.open) {
            self.elsewhere(&approval);
        }
    }

    fn next_question(&mut self) {
        self.screen.set_bottom(Bottom::Empty);
        let Some(approval) = self.open.front() else {
            self.asking = Asking::Nothing;
            if self.status == Status::AwaitingPermission {
                self.status = Status::Running;
            }
            return;
        };
        self.asking = match approval.kind {
            ApprovalKind::Question => Asking::Answers(Object::new()),
            _ => Asking::Decision,
        };
        let shown = question::shown(approval);
        self.typed.forget();
        self.screen.say(&shown);
    }

    /// An approval has come to its end, here or elsewhere.
    pub(super) fn settled(&mut self, id: &str) {
        let Some(place) = self.open.iter().position(|open| open.id.to_string() == id) else { return };
        self.open.remove(place);
        if place == 0 {
            // An answer that comes too late is not a word for the agent.
            self.typed.forget();
            self.next_question();
        }
    }

    /// A line was typed.
    pub(super) async fn take(&mut self, line: String) -> Result<(), ExpectedError> {
        let Some(approval) = self.open.front().cloned() else { return self.send(&line).await };
        match self.asking.clone() {
            Asking::Nothing => {}
            Asking::Decision => match question::read(&line) {
                Said::Yes => self.respond(allow(&approval)).await?,
                Said::No(reason) => {
                    let mut answer = json!({"approval_id": approval.id, "approve": false});
                    if let Some(reason) = reason {
                        answer["message"] = json!(reason);
                    }
                    self.respond(answer).await?;
                }
                Said::Edit => self.edit(&approval, Draft::of(&editable(&approval))).await?,
                Said::Always => self.asking = Asking::Rule(remember::suggested(&approval)),
                Said::Skip => self.skip(),
                Said::Unclear => {}
            },
            Asking::Rule(suggested) => match (line.trim(), suggested) {
                ("", None) => self.asking = Asking::Decision,
                ("", Some(rule)) => self.respond_always(&approval, &rule).await?,
                (rule, _) => self.respond_always(&approval, rule).await?,
            },
            Asking::Answers(mut answers) => {
                let questions = question::questions(&approval);
                match questions.get(answers.len()).filter(|_| !line.trim().is_empty()) {
                    None => self.skip(),
                    Some(one) => {
                        question::answer(&mut answers, one, &line);
                        if answers.len() < questions.len() {
                            self.asking = Asking::Answers(answers);
                        } else {
                            let mut answer = allow(&approval);
                            answer["answers"] = Value::Object(answers);
                            self.respond(answer).await?;
                        }
                    }
                }
            }
            Asking::Again(text) if line.trim() != "q" => {
                self.edit(&approval, Draft::again(&approval.input, &text)).await?
            }
            Asking::Again(_) => self.asking = Asking::Decision,
        }
        Ok(())
    }

    fn skip(&mut self) {
        if let Some(approval) = self.open.pop_front() {
            self.elsewhere(&approval);
        }
        self.next_question();
    }

    async fn edit(
        &mut self,
        approval: &Approval,
        draft: Result<Draft, EditError>,
    ) -> Result<(), ExpectedError> {
        let edited = match draft {
            Ok(mut draft) => draft.edit().await.map_err(|error| (error, draft.text())),
            Err(error) => Err((error, String::new())),
        };
        let mut answer = allow(approval);
        match edited {
            Ok(Edited::Same) => {}
            Ok(Edited::Changed(input)) => answer["updated_input"] = Value::Object(input),
            Err((error @ EditError::Invalid(_), text)) => {
                self.screen.say(&format!("plexus: {error}"));
                self.asking = Asking::Again(text);
                return Ok(());
            }
            Err((error, _)) => {
                self.screen.say(&format!("plexus: {error}"));
                self.asking = Asking::Decision;
                return Ok(());
            }
        }
        self.respond(answer).await
    }

    async fn respond_always(&mut self, approval: &Approval, rule: &str) -> Result<(), ExpectedError> {
        let mut answer = allow(approval);
        answer["remember"] = json!({"rule": rule});
        self.respond(answer).await
    }

    /// Answers the question that is shown, and goes on to the next. What the hub refuses is said, and asked again.
    async fn respond(&mut self, answer: Value) -> Result<(), ExpectedError> {
        match self.hub.respond(answer).await {
            Ok(Answered::Ok { .. }) => {}
            Ok(Answered::AlreadyResolved { status, .. }) => {
                self.screen.say(&format!("plexus: somebody was first: it is {}", over(status)));
            }
            Ok(Answered::Error { message, .. }) | Err(ExpectedError::Refused(message)) => {
                self.screen.say(&format!("plexus: {}", safe(&message)));
                self.asking = match self.asking {
                    Asking::Answers(_) => Asking::Answers(Object::new()),
                    _ => Asking::Decision,
                };
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        self.open.pop_front();
        self.next_question();
        Ok(())
    }

    /// Words for the agent: part of its turn, or the next one.
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
        // The turn ended, or another began, while the line was on its way: it was meant for the agent either way.
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
