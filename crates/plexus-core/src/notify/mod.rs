//! Notifies an operator who is not watching, by a configured command or on the desktop: when an approval has been open
//! for some time, a turn finished, or a budget runs low. This module owns the pending notifications and the list of
//! delivered ones. It never delays the work that it reports.

mod delivered;
mod notice;
mod programs;

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use plexus_protocol::{ApprovalId, ApprovalStatus, AskedOf, MAX_TEXT_BYTES, Principal, UnixSeconds};
use plexus_store::{ApprovalRow, FeedEntry, FeedKind, FeedRow, Store, TurnStatus};

use crate::callers::names::{Paths, path_of};
use crate::tasks::Tasks;
use crate::view;
use crate::{NotifySettings, TurnNotices};
use delivered::Delivered;
use notice::{FinishedTurn, Notice, NoticeSession};
use plexus_book::{Commits, Deadlines, Topic, next};
use programs::Programs;

/// The maximum number of feed entries per read.
const PAGE: u64 = 200;

/// The pending and the delivered notifications.
pub(crate) struct Notifier {
    settings: NotifySettings,
    approvals: Deadlines,
    delivered: Mutex<Delivered>,
    programs: Programs,
}

impl Notifier {
    pub(crate) fn new(settings: NotifySettings, data_dir: &Path, tasks: &Tasks) -> Self {
        let programs = Programs::new(settings.by.clone(), tasks.clone());
        Self {
            settings,
            approvals: Deadlines::default(),
            delivered: Mutex::new(Delivered::in_dir(data_dir)),
            programs,
        }
    }

    /// Schedules the notification for an open approval, if it is addressed to the operator.
    pub(crate) fn open(&self, row: &ApprovalRow) {
        let approval = &row.approval;
        let delivered = self.delivered.lock().unwrap_or_else(PoisonError::into_inner).contains(approval.id);
        let at = approval.created_at.saturating_add(self.settings.approval_after_secs);
        let wanted = approval.asked_of == AskedOf::Operator && !delivered;
        self.approvals.set(approval.id, wanted.then_some(at));
    }

    /// Cancels the notification for a resolved approval.
    pub(crate) fn cancel(&self, id: ApprovalId) {
        self.approvals.set(id, None);
        self.delivered.lock().unwrap_or_else(PoisonError::into_inner).forget(id);
    }

    /// Stores notices as delivered before it delivers them: after a crash, a lost notice is better than a repeated one.
    fn deliver(&self, update: impl FnOnce(&mut Delivered), notices: Vec<Notice>) {
        self.update(update);
        for notice in notices {
            self.programs.deliver(&notice);
        }
    }

    /// Only one task writes the file, so a commit never waits for it.
    fn update<T>(&self, update: impl FnOnce(&mut Delivered) -> T) -> T {
        let mut delivered = self.delivered.lock().unwrap_or_else(PoisonError::into_inner);
        let updated = update(&mut delivered);
        let content = delivered.file_content();
        drop(delivered);
        if let Err(error) = content.write() {
            tracing::warn!(%error, "cannot store which notifications were delivered; after a restart some \
                may be delivered again");
        }
        updated
    }

    fn notice_of(&self, row: &FeedRow, about: &NoticeSession) -> Option<Notice> {
        match &row.entry {
            FeedEntry::Finished { turn, status, summary } => {
                let wanted = match self.settings.turns {
                    TurnNotices::All => true,
                    TurnNotices::Failed => *status == TurnStatus::Failed,
                    TurnNotices::Off => false,
                };
                let (session, summary) = (row.session, summary.as_deref());
                let finished = FinishedTurn { session, turn: *turn, status: *status, summary };
                wanted.then(|| Notice::turn(&finished, about))
            }
            FeedEntry::BudgetLow(budget) => Some(Notice::limit(budget, about)),
            FeedEntry::Notice(_) | FeedEntry::Asked { .. } | FeedEntry::Resolved { .. } => None,
        }
    }
}

impl Notifier {
    /// Delivers notifications, for as long as it is polled.
    pub(crate) async fn run(&self, store: &dyn Store, commits: &Commits) {
        let head = commits.retry(|| store.feed_head()).await;
        // Stored at once, so that the next hub reports what happens while no hub runs.
        let mut cursor = self.update(|delivered| delivered.start_at(head));
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
                id = self.approvals.due() => self.notify_of_approval(store, commits, id).await,
            }
        }
    }

    async fn notify_of(&self, store: &dyn Store, commits: &Commits, rows: Vec<FeedRow>, newest: u64) {
        let mut notices = Vec::new();
        for row in rows {
            if matches!(row.kind(), FeedKind::Finished | FeedKind::Notice) {
                let session = commits.retry(|| store.session(row.session)).await;
                let about = match &session {
                    Some(session) => NoticeSession {
                        path: commits.retry(|| path_of(store, &Principal::Operator, session)).await,
                        name: session.name.to_string(),
                    },
                    None => NoticeSession { path: String::new(), name: String::new() },
                };
                notices.extend(self.notice_of(&row, &about));
            }
        }
        // Entries without a notice need not be stored: after a crash they are read again, again without a notice.
        if !notices.is_empty() {
            self.deliver(|delivered| delivered.advance_to(newest), notices);
        }
    }

    async fn notify_of_approval(&self, store: &dyn Store, commits: &Commits, id: ApprovalId) {
        self.approvals.set(id, None::<UnixSeconds>);
        let Some(row) = commits.retry(|| store.approval(id)).await else { return };
        // The approval may have been resolved or escalated since it became due.
        if row.approval.status == ApprovalStatus::Pending && row.approval.asked_of == AskedOf::Operator {
            let shown = || async {
                let mut paths = Paths::of(store, &Principal::Operator);
                view::approval(row.clone(), &mut paths, MAX_TEXT_BYTES).await
            };
            let approval = commits.retry(shown).await;
            self.deliver(|delivered| delivered.add(id), vec![Notice::approval(&approval)]);
        }
    }
}
