//! Following that something changed, in whatever session: for those who show all of them and would otherwise have to ask
//! again and again. It tells only that it is time to look; what there is to see, `claudecode.list` says.

use std::time::Duration;

use plexus_protocol::{Error, ErrorKind, Principal};
use tokio::sync::watch;
use tokio::time::sleep;

use super::Follow;
use crate::access::on_behalf_of;
use crate::access::{self, Needs};
use crate::caller::Caller;
use crate::metrics::{Raised, Stream};
use plexus_book::{Topic, next};

/// How long changes are gathered: a hub whose agents are all busy is looked at a few times a second, not at each commit.
const GATHER: Duration = Duration::from_millis(200);

/// Follows that something changed.
pub struct ChangeFollower {
    signal: watch::Receiver<()>,
    _counted: Raised,
}

impl Follow {
    /// Follows that something changed, from now on. For those who see every session.
    pub(crate) async fn follow_changes(&self, caller: Caller) -> Result<ChangeFollower, Error> {
        let behalf = on_behalf_of(&caller.principal);
        let admitted = behalf.perform(access::admit(&*self.store, caller, Needs::Read)).await?;
        if !matches!(admitted.principal, Principal::Operator | Principal::Token { .. }) {
            // When others are busy is nothing that an agent has to know.
            return Err(Error::new(ErrorKind::Forbidden, "this is for whoever sees every session"));
        }
        let signal = self.commits.signals().subscribe(Topic::AnyCommit);
        Ok(ChangeFollower { signal, _counted: self.metrics.listen(Stream::Changes) })
    }
}

impl ChangeFollower {
    /// Waits for the next change, and for those that come with it. Cancel safe: what is not told yet is told next time.
    pub async fn next(&mut self) {
        let mut looked = self.signal.clone();
        next(&mut looked).await;
        sleep(GATHER).await;
        self.signal.mark_unchanged();
    }
}
