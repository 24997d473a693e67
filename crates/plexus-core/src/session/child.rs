//! The I/O with the process of a session: its keeper, its journal and its outbox. `machine` interprets their content.

use std::io;

use plexus_agent::{Journal, JournalWatch, Keeper, Outbox, RunDir};
use plexus_claude::SentId;
use plexus_store::RunKey;
use std::collections::HashSet;

use crate::disk::Disk;

/// A process of the session.
pub(super) struct Child {
    pub(super) key: RunKey,
    pub(super) dir: RunDir,
    /// `None` when a new hub found the process gone.
    pub(super) keeper: Option<Keeper>,
    pub(super) journal: Journal,
    /// `None` once a batch of its lines cannot be stored: nothing is sent to it any more.
    pub(super) outbox: Option<Outbox>,
    /// The journal may contain unread lines.
    pub(super) unread: Unread,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    Maybe,
    None,
}

/// What the process reports by itself.
pub(super) enum Activity {
    /// The journal may contain unread lines, and the disk has room to store them.
    Wrote,
    /// The keeper has ended.
    Ended,
}

impl Child {
    /// Opens the files of a run; also returns the ids of the lines in its outbox.
    pub(super) fn open(
        key: RunKey,
        dir: RunDir,
        keeper: Option<Keeper>,
        offset: u64,
        watch: &JournalWatch,
    ) -> io::Result<(Self, HashSet<SentId>)> {
        let journal = Journal::open(&dir, offset, watch)?;
        let (outbox, sent) = Outbox::open(&dir)?;
        Ok((Self { key, dir, keeper, journal, outbox: Some(outbox), unread: Unread::Maybe }, sent))
    }

    async fn wrote(journal: &mut Journal, unread: Unread, disk: &Disk) {
        if unread == Unread::None {
            journal.changed().await;
        }
        // The change is seen again as long as the lines are unread.
        disk.wait_for_space().await;
    }

    async fn ended(keeper: Option<&Keeper>) {
        if let Some(keeper) = keeper {
            keeper.ended().await;
        }
    }
}

/// Waits for the process; forever when there is none.
pub(super) async fn activity(child: &mut Option<Child>, disk: &Disk) -> Activity {
    let Some(child) = child else { return std::future::pending().await };
    tokio::select! {
        biased;
        () = Child::wrote(&mut child.journal, child.unread, disk) => Activity::Wrote,
        () = Child::ended(child.keeper.as_ref()) => Activity::Ended,
    }
}
