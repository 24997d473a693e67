//! Signals that something changed in any session, for clients that show all sessions and would otherwise poll. The
//! signal carries no data; `claudecode.list` returns the current state.

use std::time::Duration;

use plexus_protocol::{Error, ErrorKind, Principal};
use tokio::sync::watch;
use tokio::time::sleep;

use super::Follow;
use crate::callers::access::on_behalf_of;
use crate::callers::access::{self, Needs};
use crate::callers::caller::Caller;
use crate::metrics::{GaugeGuard, Stream};
use plexus_book::{Topic, next};

/// How long changes are collected into one signal, so that clients of a busy hub refresh a few times per second and not
/// at each commit.
const GATHER: Duration = Duration::from_millis(200);

/// Signals changes in any session.
pub struct ChangeFollower {
    signal: watch::Receiver<()>,
    _counted: GaugeGuard,
}

impl Follow {
    /// Follows changes from now on. Only for callers that see every session.
    pub(crate) async fn follow_changes(&self, caller: Caller) -> Result<ChangeFollower, Error> {
        let behalf = on_behalf_of(&caller.principal);
        let admitted = behalf.perform(access::admit(&*self.store, caller, Needs::Read)).await?;
        if !matches!(admitted.principal, Principal::Operator | Principal::Token { .. }) {
            // An agent must not learn when other agents are busy.
            return Err(Error::new(
                ErrorKind::Forbidden,
                "only callers that may read every session can follow changes",
            ));
        }
        let signal = self.commits.signals().subscribe(Topic::AnyCommit);
        Ok(ChangeFollower { signal, _counted: self.metrics.listen(Stream::Changes) })
    }
}

impl ChangeFollower {
    /// Waits for the next change, and collects those that follow it closely. Cancel safe: a change that was not
    /// reported is reported by the next call.
    pub async fn next(&mut self) {
        let mut before_gathering = self.signal.clone();
        next(&mut before_gathering).await;
        sleep(GATHER).await;
        self.signal.mark_unchanged();
    }
}
