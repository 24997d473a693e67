//! The state of `plexus watch`: the sessions, the open approvals, the log of one session, and what the user is typing. Plain data: only
//! `update` and `keys` change it, and `view` draws it. It knows neither the terminal nor the hub.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher as _};
use std::time::Instant;

use plexus_protocol::claudecode::SessionView;
use plexus_protocol::loopback::TargetFile;
use plexus_protocol::{Approval, ApprovalId, Object, SessionId};
use serde_json::json;

use super::log::Log;
use crate::editor::Editable;
use crate::review::question::Question;
use crate::review::{self, Reviewed, Row, Seen, Tone, change, fit};

/// The part of the screen that has the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pane {
    /// The tree of sessions.
    Sessions,
    /// The open approvals.
    Approvals,
    /// The log of the selected session.
    Log,
}

/// Whether the user has pressed a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interaction {
    /// Not yet.
    Off,
    /// At least once.
    On,
}

/// Whether the hub is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HubState {
    /// The screen is current.
    Connected,
    /// The screen shows the last known state.
    Disconnected,
}

/// The purpose of a typed line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum InputPurpose {
    /// The reason of a denial.
    Reason(ApprovalId),
    /// A note for the next decider.
    Opinion(ApprovalId),
    /// The rule to add with an allow.
    Rule(ApprovalId),
    /// How many seconds an approval stays open.
    Time(ApprovalId),
    /// The amount to add to a budget.
    More(ApprovalId),
    /// The answer to the next question.
    Answer {
        /// The approval.
        approval: ApprovalId,
        /// The unanswered questions, the next one first.
        questions: Vec<Question>,
        /// The answers so far.
        given: Object,
    },
    /// A filter for names.
    Filter,
}

/// An action that needs confirmation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Confirmation {
    /// Stop the session and all sessions below it.
    Stop(SessionId),
    /// Allow the call with this input.
    Edited(ApprovalId, Object),
    /// Allow the call and add this rule, which is too long for the prompt.
    Remember(ApprovalId, String),
    /// Send this text, which is not one of the options, as the answer to the first question.
    FreeText { approval: ApprovalId, questions: Vec<Question>, given: Object, words: String },
}

/// How keys are interpreted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Mode {
    /// As commands.
    Moving,
    /// The help is open.
    Help,
    /// As text of a line.
    Typing(InputPurpose, String),
    /// As yes or no.
    Confirming(Confirmation),
}

/// The whole state.
#[derive(Debug)]
pub(crate) struct Model {
    /// Whether the hub is connected.
    pub(crate) hub: HubState,
    /// When the hub was disconnected, in Unix seconds.
    pub(crate) disconnected_since: Option<u64>,
    /// All sessions, each followed by its children.
    pub(crate) sessions: Vec<SessionView>,
    /// All open approvals, oldest first.
    pub(crate) approvals: Vec<Approval>,
    /// The log of the selected session.
    pub(crate) log: Log,
    /// The part with the focus.
    pub(crate) pane: Pane,
    /// How keys are interpreted.
    pub(crate) mode: Mode,
    /// The selected session.
    pub(crate) session: Option<SessionId>,
    /// The selected approval.
    pub(crate) approval: Option<ApprovalId>,
    /// Whether a key was pressed; until then a new approval is selected automatically.
    pub(crate) interaction: Interaction,
    /// The approval that is on the screen, in the list and below; no other one can be answered.
    pub(crate) drawn: Option<ApprovalId>,
    /// The selected session, if the list shows it; no other one can be interrupted or stopped.
    pub(crate) drawn_session: Option<SessionId>,
    /// Approvals that were read in full, with the affected file.
    pub(crate) read: HashMap<ApprovalId, Option<TargetFile>>,
    /// The approval that is being read in full.
    pub(crate) reading: Option<ApprovalId>,
    /// How much of the selected approval was on the screen.
    pub(crate) seen: Seen,
    /// The width of the screen.
    pub(crate) width: usize,
    /// The height of the approval on the screen.
    pub(crate) page: usize,
    /// When the selected approval was selected automatically.
    pub(crate) auto_selected_at: Option<Instant>,
    /// Approvals that were answered here, whose resolution is not reported again.
    pub(crate) answered: HashSet<ApprovalId>,
    /// The filter for names.
    pub(crate) filter: String,
    /// The last message.
    pub(crate) message: String,
    /// The scroll position in the selected approval.
    pub(crate) down: usize,
    /// The rows of the selected approval, computed once per width.
    pub(crate) shown: Shown,
    /// Unix seconds.
    pub(crate) now: u64,
}

/// The rows of an approval.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    of: Option<(ApprovalId, usize, bool)>,
    /// A hash of the content, independent of width and time.
    pub(crate) content: u64,
    pub(crate) rows: Vec<Row>,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            hub: HubState::Disconnected,
            disconnected_since: None,
            sessions: Vec::new(),
            approvals: Vec::new(),
            log: Log::default(),
            pane: Pane::Sessions,
            mode: Mode::Moving,
            session: None,
            approval: None,
            interaction: Interaction::Off,
            drawn: None,
            drawn_session: None,
            read: HashMap::new(),
            reading: None,
            seen: Seen::default(),
            width: 0,
            page: 1,
            auto_selected_at: None,
            answered: HashSet::new(),
            filter: String::new(),
            message: String::new(),
            down: 0,
            shown: Shown::default(),
            now: 0,
        }
    }
}

impl Model {
    /// The sessions that pass the filter.
    pub(crate) fn sessions_shown(&self) -> Vec<&SessionView> {
        self.sessions.iter().filter(|session| self.matches_filter(&session.path)).collect()
    }

    /// The approvals that pass the filter.
    pub(crate) fn approvals_shown(&self) -> Vec<&Approval> {
        let matches_filter =
            |it: &&Approval| self.matches_filter(it.session_label()) || self.matches_filter(&it.tool_name);
        self.approvals.iter().filter(matches_filter).collect()
    }

    fn matches_filter(&self, text: &str) -> bool {
        text.to_lowercase().contains(&self.filter.to_lowercase())
    }

    /// The selected approval.
    pub(crate) fn selected(&self) -> Option<&Approval> {
        self.open(self.approval?)
    }

    /// An open approval.
    pub(crate) fn open(&self, id: ApprovalId) -> Option<&Approval> {
        self.approvals.iter().find(|approval| approval.id == id)
    }

    /// The selected session.
    pub(crate) fn selected_session(&self) -> Option<&SessionView> {
        self.session_of(self.session)
    }

    /// A session by its id.
    pub(crate) fn session_of(&self, id: Option<SessionId>) -> Option<&SessionView> {
        self.sessions.iter().find(|session| Some(session.id) == id)
    }

    /// The selected approval with the affected file.
    fn reviewed(&self, approval: &Approval) -> Reviewed {
        Reviewed { approval: approval.clone(), file: self.read.get(&approval.id).cloned().flatten() }
    }

    /// Whether the hub has more of an approval than its lists contain: a long input, or the affected file.
    pub(crate) fn is_unread(&self, approval: &Approval) -> bool {
        let of_a_file = matches!(approval.tool_name.as_str(), "Write" | "Edit" | "MultiEdit");
        approval.truncated || (of_a_file && !self.read.contains_key(&approval.id))
    }

    /// Computes the rows of the selected approval unless they are cached.
    pub(crate) fn prepare(&mut self, width: usize) {
        let Some(approval) = self.selected() else {
            self.forget_rows();
            self.seen.stop();
            return;
        };
        let input = |input: &Object| serde_json::to_string(input).unwrap_or_default();
        let (key, content, rows) = match &self.mode {
            Mode::Confirming(Confirmation::Edited(id, edited)) if approval.id == *id => {
                let mut rows = vec![Row::new(Tone::Strong, "Your changes:")];
                rows.extend(change::rows_of_edit(approval, &Editable::of(approval).input, edited));
                // Rare and short-lived: not cached.
                (None, hash(&("edited", id.to_string(), input(edited))), rows)
            }
            Mode::Confirming(Confirmation::Remember(id, rule)) if approval.id == *id => {
                let rows = vec![
                    Row::new(Tone::Strong, "Calls that match this rule will be allowed without asking:"),
                    Row::exact(Tone::Warn, "  ", rule),
                ];
                (None, hash(&("rule", id.to_string(), rule)), rows)
            }
            _ => {
                let key = Some((approval.id, width, approval.truncated));
                if self.shown.of == key {
                    self.start(self.shown.content, width);
                    return;
                }
                let reviewed = self.reviewed(approval);
                let content = hash(&(
                    approval.id.to_string(),
                    input(&approval.input),
                    &approval.digest,
                    json!(reviewed.file).to_string(),
                ));
                (key, content, review::rows(&reviewed, self.now))
            }
        };
        self.shown = Shown { of: key, content, rows: fit(&rows, width) };
        self.start(content, width);
    }

    /// Scrolls to the start if the content is new.
    fn start(&mut self, content: u64, width: usize) {
        self.seen.start(content, width);
        if self.seen.upto() == 0 && !self.seen.all() {
            self.down = 0;
        }
    }

    /// The approval on the screen, its content and the scroll position.
    pub(crate) fn subject(&self) -> (Option<ApprovalId>, u64, usize) {
        (self.approval, self.shown.content, self.down)
    }

    /// Drops the cached rows.
    pub(crate) fn forget_rows(&mut self) {
        self.shown = Shown::default();
    }
}

fn hash(content: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}
