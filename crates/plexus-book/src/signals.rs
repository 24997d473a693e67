//! Signals wake waiting tasks. A signal carries no data: a task that is woken reads the store, so several signals may arrive
//! as one. A task that subscribes first, then reads, then waits misses nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use plexus_protocol::SessionId;
use tokio::sync::watch;

use crate::runtime::{Mutex, PoisonError};

/// What a task can wait for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Topic {
    /// This session has changed.
    Session(SessionId),
    /// The feed of this addressee grew.
    Feed(String),
    /// Some feed grew.
    AnyFeed,
    /// A commit became durable.
    AnyCommit,
    /// This token is no longer valid.
    Token(String),
}

/// The waiting tasks, by topic.
#[derive(Debug, Default)]
pub struct Signals {
    topics: Mutex<HashMap<Topic, watch::Sender<()>>>,
    ended_tokens: AtomicU64,
}

impl Signals {
    /// Returns a receiver that sees every later [`Signals::wake`] of this topic.
    pub fn subscribe(&self, topic: Topic) -> watch::Receiver<()> {
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        topics.entry(topic).or_insert_with(|| watch::channel(()).0).subscribe()
    }

    /// Grows before the signal that a token is no longer valid. A task that has found a token valid at this number, and then subscribes, need not read
    /// it again while the number stays.
    pub fn ended_tokens(&self) -> u64 {
        self.ended_tokens.load(Ordering::SeqCst)
    }

    /// Wakes the tasks that wait for this topic.
    pub fn wake(&self, topic: &Topic) {
        if matches!(topic, Topic::Token(_)) {
            self.ended_tokens.fetch_add(1, Ordering::SeqCst);
        }
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = topics.get(topic)
            && sender.send(()).is_err()
        {
            topics.remove(topic);
        }
    }

    /// Wakes all waiting tasks.
    pub fn wake_all(&self) {
        self.ended_tokens.fetch_add(1, Ordering::SeqCst);
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        topics.retain(|_, sender| sender.send(()).is_ok());
    }
}

/// Waits for the next signal. When the hub ends, its waiting tasks are cancelled.
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
        assert!(signals.topics.lock().expect("lock").is_empty(), "a topic without waiting tasks is removed");
    }
}
