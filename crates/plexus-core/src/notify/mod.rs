//! Telling a person who is not looking: a command of their choice, or the desktop, when a question of theirs has been open
//! for some time, a turn of theirs ended, or a limit ran low. It owns what is still to be told and what was told already;
//! it never holds up what it tells of.

mod notice;
mod teller;
mod told;

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use plexus_protocol::{ApprovalId, ApprovalStatus, AskedOf, UnixSeconds};
use plexus_store::{ApprovalRow, FeedEntry, FeedKind, FeedRow, TurnStatus};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Hub;
use crate::book::{Deadlines, Topic, next};
use notice::{EndedTurn, Notice};
use teller::Tellers;
use told::Told;

/// Which ends of turns are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnsTold {
    /// Every one.
    All,
    /// Those that failed.
    Failed,
    /// None.
    Off,
}

/// A way to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Telling {
    /// A program and its arguments; it reads the notice as JSON from its stdin.
    Command(Vec<String>),
    /// `notify-send`, where there is one.
    Desktop,
}

/// What is told, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifySettings {
    /// How.
    pub by: Vec<Telling>,
    /// How long a question has to have been open, in seconds.
    pub approval_after_secs: u64,
    /// Which ends of turns.
    pub turns: TurnsTold,
}

/// How much of the feed is read at a time.
const PAGE: u64 = 200;

/// What is still to be told, and what was.
pub(crate) struct Notifier {
    settings: NotifySettings,
    questions: Deadlines,
    told: Mutex<Told>,
    tellers: Tellers,
}

impl Notifier {
    pub(crate) fn new(
        settings: NotifySettings,
        data_dir: &Path,
        tasks: &TaskTracker,
        closing: &CancellationToken,
    ) -> Self {
        let tellers = Tellers::new(settings.by.clone(), tasks.clone(), closing.clone());
        Self { settings, questions: Deadlines::default(), told: Mutex::new(Told::in_dir(data_dir)), tellers }
    }

    /// An approval is open, and asked of somebody.
    pub(crate) fn open(&self, row: &ApprovalRow) {
        let approval = &row.approval;
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner).holds(approval.id);
        let at = approval.created_at.saturating_add(self.settings.approval_after_secs);
        let wanted = approval.asked_of == AskedOf::Operator && !told;
        self.questions.set(approval.id, wanted.then_some(at));
    }

    /// An approval has come to its end.
    pub(crate) fn ended(&self, id: ApprovalId) {
        self.questions.set(id, None);
        self.told.lock().unwrap_or_else(PoisonError::into_inner).forget(id);
    }

    /// Notes first that it is told, then tells it: better untold after a crash than told twice.
    fn tell(&self, note: impl FnOnce(&mut Told), notices: Vec<Notice>) {
        self.note(note);
        for notice in notices {
            self.tellers.tell(&notice);
        }
    }

    /// One task alone notes; whoever commits waits for no file.
    fn note<T>(&self, note: impl FnOnce(&mut Told) -> T) -> T {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let noted = note(&mut told);
        let page = told.page();
        drop(told);
        if let Err(error) = page.write() {
            tracing::warn!(%error, "what was told cannot be noted; after a restart it may be told again");
        }
        noted
    }

    fn notice_of(&self, row: &FeedRow, session_name: &str) -> Option<Notice> {
        match &row.entry {
            FeedEntry::Finished { turn, status, summary } => {
                let wanted = match self.settings.turns {
                    TurnsTold::All => true,
                    TurnsTold::Failed => *status == TurnStatus::Failed,
                    TurnsTold::Off => false,
                };
                let (session, summary) = (row.session, summary.as_deref());
                let ended = EndedTurn { session, turn: *turn, status: *status, summary };
                wanted.then(|| Notice::turn(&ended, session_name))
            }
            FeedEntry::BudgetLow(budget) => Some(Notice::limit(budget, session_name)),
            FeedEntry::Notice(_) | FeedEntry::Asked { .. } | FeedEntry::Resolved { .. } => None,
        }
    }
}

impl Hub {
    /// Tells what there is to tell, for as long as it is polled.
    pub(crate) async fn see_to_notices(&self, notifier: &Notifier) {
        let head = self.book().held(|| self.store().feed_head()).await;
        // Noted at once: what happens while the hub is away is told by the next.
        let mut cursor = notifier.note(|told| told.begin(head));
        let operator = AskedOf::Operator.key();
        let mut signal = self.signals().subscribe(Topic::Feed(operator.clone()));
        loop {
            let rows = self.book().held(|| self.store().feed(&operator, cursor, PAGE)).await;
            if let Some(newest) = rows.last().map(|row| row.number) {
                cursor = newest;
                self.tell_of(notifier, rows, newest).await;
                continue;
            }
            tokio::select! {
                () = next(&mut signal) => {}
                id = notifier.questions.due() => self.tell_of_question(notifier, id).await,
            }
        }
    }

    async fn tell_of(&self, notifier: &Notifier, rows: Vec<FeedRow>, newest: u64) {
        let mut notices = Vec::new();
        for row in rows {
            if matches!(row.kind(), FeedKind::Finished | FeedKind::Notice) {
                let session = self.book().held(|| self.store().session(row.session)).await;
                let name = session.map_or_else(String::new, |session| session.name.to_string());
                notices.extend(notifier.notice_of(&row, &name));
            }
        }
        // What tells of nothing is read again after a crash, and again tells of nothing.
        if !notices.is_empty() {
            notifier.tell(|told| told.read_to(newest), notices);
        }
    }

    async fn tell_of_question(&self, notifier: &Notifier, id: ApprovalId) {
        notifier.questions.set(id, None::<UnixSeconds>);
        let Some(row) = self.book().held(|| self.store().approval(id)).await else { return };
        // It may have been answered, or have gone elsewhere, since its time came.
        if row.approval.status == ApprovalStatus::Pending && row.approval.asked_of == AskedOf::Operator {
            notifier.tell(|told| told.add(id), vec![Notice::question(row)]);
        }
    }
}
