//! NotifyBy a person who is not looking: a command of their choice, or the desktop, when a question of theirs has been open
//! for some time, a turn of theirs ended, or a limit ran low. It owns what is still to be told and what was told already;
//! it never holds up what it tells of.

mod notice;
mod programs;
mod delivered;

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use plexus_protocol::{ApprovalId, ApprovalStatus, AskedOf, UnixSeconds};
use plexus_store::{ApprovalRow, FeedEntry, FeedKind, FeedRow, Store, TurnStatus};

use crate::tasks::Tasks;
use crate::{NotifySettings, TurnNotices};
use notice::{EndedTurn, Notice};
use plexus_book::{Commits, Deadlines, Topic, next};
use programs::Programs;
use delivered::Delivered;

/// How much of the feed is read at a time.
const PAGE: u64 = 200;

/// What is still to be told, and what was.
pub(crate) struct Notifier {
    settings: NotifySettings,
    questions: Deadlines,
    told: Mutex<Delivered>,
    programs: Programs,
}

impl Notifier {
    pub(crate) fn new(settings: NotifySettings, data_dir: &Path, tasks: &Tasks) -> Self {
        let programs = Programs::new(settings.by.clone(), tasks.clone());
        Self { settings, questions: Deadlines::default(), told: Mutex::new(Delivered::in_dir(data_dir)), programs }
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
    fn tell(&self, note: impl FnOnce(&mut Delivered), notices: Vec<Notice>) {
        self.note(note);
        for notice in notices {
            self.programs.tell(&notice);
        }
    }

    /// One task alone notes; whoever commits waits for no file.
    fn note<T>(&self, note: impl FnOnce(&mut Delivered) -> T) -> T {
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
                    TurnNotices::All => true,
                    TurnNotices::Failed => *status == TurnStatus::Failed,
                    TurnNotices::Off => false,
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

impl Notifier {
    /// Tells what there is to tell, for as long as it is polled.
    pub(crate) async fn run(&self, store: &dyn Store, commits: &Commits) {
        let head = commits.retry(|| store.feed_head()).await;
        // Noted at once: what happens while the hub is away is told by the next.
        let mut cursor = self.note(|told| told.begin(head));
        let operator = AskedOf::Operator.key();
        let mut signal = commits.signals().subscribe(Topic::Feed(operator.clone()));
        loop {
            let rows = commits.retry(|| store.feed(&operator, cursor, PAGE)).await;
            if let Some(newest) = rows.last().map(|row| row.number) {
                cursor = newest;
                self.notify_of(store, commits, rows, newest).await;
                continue;
            }
            tokio::select! {
                () = next(&mut signal) => {}
                id = self.questions.due() => self.notify_of_approval(store, commits, id).await,
            }
        }
    }

    async fn notify_of(&self, store: &dyn Store, commits: &Commits, rows: Vec<FeedRow>, newest: u64) {
        let mut notices = Vec::new();
        for row in rows {
            if matches!(row.kind(), FeedKind::Finished | FeedKind::Notice) {
                let session = commits.retry(|| store.session(row.session)).await;
                let name = session.map_or_else(String::new, |session| session.name.to_string());
                notices.extend(self.notice_of(&row, &name));
            }
        }
        // What tells of nothing is read again after a crash, and again tells of nothing.
        if !notices.is_empty() {
            self.tell(|told| told.read_to(newest), notices);
        }
    }

    async fn notify_of_approval(&self, store: &dyn Store, commits: &Commits, id: ApprovalId) {
        self.questions.set(id, None::<UnixSeconds>);
        let Some(row) = commits.retry(|| store.approval(id)).await else { return };
        // It may have been answered, or have gone elsewhere, since its time came.
        if row.approval.status == ApprovalStatus::Pending && row.approval.asked_of == AskedOf::Operator {
            self.tell(|told| told.add(id), vec![Notice::question(row)]);
        }
    }
}
