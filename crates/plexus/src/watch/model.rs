//! What `plexus watch` knows: the sessions, the open approvals, the log of one session, and what its user is about to
//! do. Plain data, changed by `update` and `keys` alone and drawn by `view`; it knows neither terminal nor hub.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher as _};
use std::time::Instant;

use plexus_protocol::claudecode::SessionView;
use plexus_protocol::loopback::TargetFile;
use plexus_protocol::{Approval, ApprovalId, Object, SessionId};
use serde_json::json;

use super::log::Log;
use crate::approve::editable;
use crate::review::question::Question;
use crate::review::{self, Reviewed, Row, Seen, Tone, change, fit};

/// Which part the keys move in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pane {
    /// The tree of sessions.
    Sessions,
    /// The open approvals.
    Approvals,
    /// The log of the selected session.
    Log,
}

/// Whether someone has chosen where to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hands {
    /// Not yet.
    Off,
    /// Yes.
    On,
}

/// Whether the hub can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HubIs {
    /// What is shown is how it is.
    Here,
    /// What is shown is how it was.
    Away,
}

/// What a line is typed for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wanted {
    /// Why it is denied.
    Reason(ApprovalId),
    /// What whoever is asked next is told about it.
    Opinion(ApprovalId),
    /// The rule to remember with a yes.
    Rule(ApprovalId),
    /// How many seconds an approval stays open.
    Time(ApprovalId),
    /// How much more of a limit.
    More(ApprovalId),
    /// The answer to the next of the questions, and those given before.
    Answer {
        /// To which approval.
        approval: ApprovalId,
        /// Not answered yet, the next one first.
        questions: Vec<Question>,
        /// Answered: question and answer.
        given: Object,
    },
    /// What the names shown have in them.
    Filter,
}

/// What is done if the user says yes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Doubt {
    /// The session and all below it are stopped.
    Stop(SessionId),
    /// The call runs with this input instead.
    Edited(ApprovalId, Object),
    /// The call runs, and so does whatever matches this rule, which is too long for the last line.
    Remember(ApprovalId, String),
    /// These words, none of the options, are the answer to the first of these questions.
    OwnWords { approval: ApprovalId, questions: Vec<Question>, given: Object, words: String },
}

/// What the keys mean now.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Mode {
    /// Moving about and answering.
    Moving,
    /// The keys are shown.
    Help,
    /// A line is typed.
    Typing(Wanted, String),
    /// Yes or no.
    Asking(Doubt),
}

/// All of it.
#[derive(Debug)]
pub(crate) struct Model {
    /// Whether the hub can be reached.
    pub(crate) hub: HubIs,
    /// When it was first seen to be away, in Unix seconds.
    pub(crate) away_since: Option<u64>,
    /// All sessions, each followed by those below it.
    pub(crate) sessions: Vec<SessionView>,
    /// All open approvals, oldest first.
    pub(crate) approvals: Vec<Approval>,
    /// The log of the selected session.
    pub(crate) log: Log,
    /// Where the keys move.
    pub(crate) pane: Pane,
    /// What the keys mean.
    pub(crate) mode: Mode,
    /// The selected session.
    pub(crate) session: Option<SessionId>,
    /// The selected approval.
    pub(crate) approval: Option<ApprovalId>,
    /// Whether a key was pressed; until then what waits is shown by itself.
    pub(crate) hands: Hands,
    /// The approval that stands on the screen, in the list and below: no other can be answered.
    pub(crate) drawn: Option<ApprovalId>,
    /// The selected session, if the list on the screen shows it: no other can be interrupted or stopped.
    pub(crate) drawn_session: Option<SessionId>,
    /// Approvals that were read in full, with the file they are about.
    pub(crate) read: HashMap<ApprovalId, Option<TargetFile>>,
    /// The approval that is being read in full.
    pub(crate) reading: Option<ApprovalId>,
    /// How much of what is to be decided was on the screen.
    pub(crate) seen: Seen,
    /// How many columns the screen has.
    pub(crate) width: usize,
    /// How many rows of it the screen holds.
    pub(crate) page: usize,
    /// When the selected approval took its place without anyone choosing it.
    pub(crate) came_at: Option<Instant>,
    /// Approvals that were answered here, whose end is no news.
    pub(crate) answered: HashSet<ApprovalId>,
    /// What the names shown have in them.
    pub(crate) filter: String,
    /// The last thing to tell.
    pub(crate) said: String,
    /// How far down the selected approval is read.
    pub(crate) down: usize,
    /// The rows of the selected approval, made once for each width.
    pub(crate) shown: Shown,
    /// Unix seconds.
    pub(crate) now: u64,
}

/// Rows that were made for an approval.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    of: Option<(ApprovalId, usize, bool)>,
    /// A hash of what the rows show, whatever their width and the time.
    pub(crate) content: u64,
    pub(crate) rows: Vec<Row>,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            hub: HubIs::Away,
            away_since: None,
            sessions: Vec::new(),
            approvals: Vec::new(),
            log: Log::default(),
            pane: Pane::Sessions,
            mode: Mode::Moving,
            session: None,
            approval: None,
            hands: Hands::Off,
            drawn: None,
            drawn_session: None,
            read: HashMap::new(),
            reading: None,
            seen: Seen::default(),
            width: 0,
            page: 1,
            came_at: None,
            answered: HashSet::new(),
            filter: String::new(),
            said: String::new(),
            down: 0,
            shown: Shown::default(),
            now: 0,
        }
    }
}

impl Model {
    /// The sessions that pass the filter.
    pub(crate) fn sessions_shown(&self) -> Vec<&SessionView> {
        self.sessions.iter().filter(|session| self.passes(session.name.as_str())).collect()
    }

    /// The approvals that pass the filter.
    pub(crate) fn approvals_shown(&self) -> Vec<&Approval> {
        let passes = |it: &&Approval| self.passes(it.session_name.as_str()) || self.passes(&it.tool_name);
        self.approvals.iter().filter(passes).collect()
    }

    fn passes(&self, text: &str) -> bool {
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

    /// A session that is there.
    pub(crate) fn session_of(&self, id: Option<SessionId>) -> Option<&SessionView> {
        self.sessions.iter().find(|session| Some(session.id) == id)
    }

    /// The selected approval, with what was read about it.
    fn reviewed(&self, approval: &Approval) -> Reviewed {
        Reviewed { approval: approval.clone(), file: self.read.get(&approval.id).cloned().flatten() }
    }

    /// Whether the hub has more to show of an approval than its lists do: a long input, or the file that is written.
    pub(crate) fn is_unread(&self, approval: &Approval) -> bool {
        let of_a_file = matches!(approval.tool_name.as_str(), "Write" | "Edit" | "MultiEdit");
        approval.truncated || (of_a_file && !self.read.contains_key(&approval.id))
    }

    /// Makes the rows of what is to be read, if they are not there yet: a long one is cut up once, and not at every frame.
    pub(crate) fn prepare(&mut self, width: usize) {
        let Some(approval) = self.selected() else {
            self.forget_rows();
            self.seen.stop();
            return;
        };
        let input = |input: &Object| serde_json::to_string(input).unwrap_or_default();
        let (key, content, rows) = match &self.mode {
            Mode::Asking(Doubt::Edited(id, edited)) if approval.id == *id => {
                let mut rows = vec![Row::new(Tone::Strong, "This is what you changed:")];
                rows.extend(change::rows_of_edit(approval, &editable(approval), edited));
                // Rare and short-lived: made anew each time.
                (None, hash(&("edited", id.to_string(), input(edited))), rows)
            }
            Mode::Asking(Doubt::Remember(id, rule)) if approval.id == *id => {
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

    /// Rows that begin anew are read from the first one.
    fn start(&mut self, content: u64, width: usize) {
        self.seen.start(content, width);
        if self.seen.upto() == 0 && !self.seen.all() {
            self.down = 0;
        }
    }

    /// What stands on the screen to be decided, and where it is read.
    pub(crate) fn subject(&self) -> (Option<ApprovalId>, u64, usize) {
        (self.approval, self.shown.content, self.down)
    }

    /// What was made for an approval does not hold any more.
    pub(crate) fn forget_rows(&mut self) {
        self.shown = Shown::default();
    }
}

fn hash(content: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}
