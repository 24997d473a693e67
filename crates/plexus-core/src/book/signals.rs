//! Waking those who wait. A signal carries nothing: whoever is woken reads the store, which is the truth, so it does
//! not matter how many signals fall together. Subscribe first, read then, wait last, and nothing can be missed.

use std::collections::HashMap;

use plexus_protocol::{ApprovalId, SessionId};
use tokio::sync::watch;

use crate::sync::{Mutex, PoisonError};

/// What one can wait for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Topic {
    /// Something happened in this session.
    Session(SessionId),
    /// This approval came to its end.
    Approval(ApprovalId),
    /// The feed of this addressee grew.
    Feed(String),
    /// The feed of anyone grew.
    AnyFeed,
    /// Something became durable.
    AnyCommit,
    /// This token is good for nothing any more.
    Token(String),
}

/// The waiting, by topic. Topics nobody waits for cost nothing.
#[derive(Debug, Default)]
pub struct Signals {
    topics: Mutex<HashMap<Topic, watch::Sender<()>>>,
}

impl Signals {
    /// From now on, every [`Signals::wake`] of this topic is seen.
    pub fn subscribe(&self, topic: Topic) -> watch::Receiver<()> {
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        topics.entry(topic).or_insert_with(|| watch::channel(()).0).subscribe()
    }

    /// Wakes everyone who waits for this topic.
    pub fn wake(&self, topic: &Topic) {
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = topics.get(topic)
            && sender.send(()).is_err()
        {
            topics.remove(topic);
        }
    }
}

/// Waits for the next signal. A hub that is gone wakes nobody: its waiters are cancelled with it.
pub async fn next(signal: &mut watch::Receiver<()>) {
    if signal.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_signal_between_subscribe_and_wait_is_not_missed() {
        let signals = Signals::default();
        let topic = Topic::Feed("operator".to_owned());
        let mut waiting = signals.subscribe(topic.clone());
        signals.wake(&topic);
        next(&mut waiting).await;
        drop(waiting);
        signals.wake(&topic);
        assert!(signals.topics.lock().expect("lock").is_empty(), "nobody waits: nothing is kept");
    }
}
