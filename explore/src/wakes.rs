//! How a hub learns that the other one has committed: by a wake-up, which may be lost, late or doubled, and by reading once a second. The scheduler knows no
//! time, so the read happens some steps after each commit.

use std::sync::Arc;

use shuttle::rand::Rng as _;
use tokio::sync::Notify;

use crate::disk::Host;

/// By how many steps a late wake-up is late.
const LATE: usize = 10;
/// After how many steps a hub reads what the other one has committed, even if nobody wakes it.
const POLL: usize = 100;

/// Wakes the hub of each host.
#[derive(Default)]
pub(crate) struct Wakes {
    owner: Notify,
    other: Notify,
}

impl Wakes {
    /// What the hub of this host waits for.
    pub(crate) fn of(&self, host: Host) -> &Notify {
        match host {
            Host::Owner => &self.owner,
            Host::Other => &self.other,
        }
    }

    /// Wakes the hub of the other host. A wake-up may be lost, late or doubled.
    pub(crate) fn wake_other(self: &Arc<Self>, host: Host) {
        match shuttle::rand::thread_rng().gen_range(0..4) {
            0 => {}
            1 => self.wake_after(LATE, host.other()),
            2 => (0..2).for_each(|_| self.of(host.other()).notify_one()),
            _ => self.of(host.other()).notify_one(),
        }
    }

    /// Lets the hub of the other host read a commit of this one, even if this one was killed before it could wake the other.
    pub(crate) fn poll_other(self: &Arc<Self>, host: Host) {
        self.wake_after(POLL, host.other());
    }

    fn wake_after(self: &Arc<Self>, steps: usize, host: Host) {
        let this = Arc::clone(self);
        // It ends by itself.
        drop(tokio::spawn(async move {
            for _ in 0..steps {
                tokio::task::yield_now().await;
            }
            this.of(host).notify_one();
        }));
    }
}
