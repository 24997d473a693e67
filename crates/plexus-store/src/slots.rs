//! A fair limit on the use of a scarce resource, such as read connections or helper processes. The operator and the hub itself
//! may take all slots. Other callers share some of them, and each has one at a time. So a caller with many requests delays
//! neither the operator nor, for longer than one request, other callers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

tokio::task_local! {
    /// The caller that the current task works for; not set for the operator and the hub itself.
    static CALLER: Arc<str>;
}

/// The caller that work is done for. It decides which slots the work can take.
#[derive(Debug, Clone)]
pub struct OnBehalf(Option<Arc<str>>);

impl OnBehalf {
    /// The operator, or the hub itself.
    pub const OPERATOR: Self = Self(None);

    /// A caller that shares slots with others, identified by `key`.
    pub fn caller(key: &str) -> Self {
        Self(Some(key.into()))
    }

    /// The caller of the current task. A spawned task works for the hub unless it runs inside [`Self::perform`].
    pub fn current() -> Self {
        Self(CALLER.try_with(Arc::clone).ok())
    }

    /// Whether the work is for the operator or the hub itself.
    pub fn is_operator(&self) -> bool {
        self.0.is_none()
    }

    /// Runs `work` for this caller.
    pub async fn perform<F: Future>(self, work: F) -> F::Output {
        match self.0 {
            Some(caller) => CALLER.scope(caller, work).await,
            None => work.await,
        }
    }
}

/// The slots at one resource.
#[derive(Debug)]
pub struct Slots {
    all: Arc<Semaphore>,
    /// The slots that callers share.
    shared: Arc<Semaphore>,
    /// One permit for each caller that has or waits for a slot.
    turns: Mutex<HashMap<Arc<str>, Weak<Semaphore>>>,
}

/// A taken slot, which is released on drop.
#[derive(Debug)]
pub struct Slot {
    _all: OwnedSemaphorePermit,
    _shared: Option<[OwnedSemaphorePermit; 2]>,
}

impl Slots {
    /// `all` slots, of which `shared` can be taken by callers other than the operator.
    pub fn new(all: usize, shared: usize) -> Self {
        let slots = |count| Arc::new(Semaphore::new(count));
        Self { all: slots(all), shared: slots(shared), turns: Mutex::default() }
    }

    /// Waits for a slot for the current caller. Cancel safe.
    ///
    /// # Errors
    /// If the slots are closed.
    pub async fn take(&self) -> Result<Slot, AcquireError> {
        let shared = match OnBehalf::current().0 {
            None => None,
            // The caller's own permit first: only one of its requests competes with those of other callers.
            Some(caller) => Some([
                self.turn(caller).acquire_owned().await?,
                Arc::clone(&self.shared).acquire_owned().await?,
            ]),
        };
        Ok(Slot { _all: Arc::clone(&self.all).acquire_owned().await?, _shared: shared })
    }

    fn turn(&self, caller: Arc<str>) -> Arc<Semaphore> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(&caller).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::new(Semaphore::new(1));
        turns.insert(caller, Arc::downgrade(&turn));
        turn
    }

    /// Closes the slots: every waiting and later call of [`Self::take`] fails.
    pub fn close(&self) {
        self.all.close();
        self.shared.close();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Poll;

    use super::*;

    /// Takes a slot if one is free for this caller now.
    async fn free(slots: &Slots, caller: Option<&str>) -> Option<Slot> {
        let mut taking = pin!(caller.map_or(OnBehalf::OPERATOR, OnBehalf::caller).perform(slots.take()));
        let polled = std::future::poll_fn(|context| Poll::Ready(taking.as_mut().poll(context))).await;
        match polled {
            Poll::Ready(taken) => Some(taken.unwrap()),
            Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn callers_leave_slots_for_the_operator_and_for_each_other() {
        let slots = Slots::new(4, 2);
        let one = free(&slots, Some("one")).await.expect("the first place");
        assert!(free(&slots, Some("one")).await.is_none(), "it already has one");
        let two = free(&slots, Some("two")).await.expect("another caller gets a place");
        assert!(free(&slots, Some("three")).await.is_none(), "the rest is for the operator");
        let operators = [free(&slots, None).await.unwrap(), free(&slots, None).await.unwrap()];
        assert!(free(&slots, None).await.is_none());
        drop((one, operators));
        assert!(free(&slots, Some("three")).await.is_some());
        drop(two);
        assert_eq!(slots.shared.available_permits(), 2);
        assert_eq!(slots.all.available_permits(), 4);
    }

    #[tokio::test]
    async fn a_caller_waits_for_at_most_one_request_of_each_other_caller() {
        let slots = Arc::new(Slots::new(2, 1));
        let held = free(&slots, Some("flood")).await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let wait = |caller: &'static str| {
            let (slots, order) = (Arc::clone(&slots), Arc::clone(&order));
            tokio::spawn(async move {
                let slot = OnBehalf::caller(caller).perform(slots.take()).await.unwrap();
                order.lock().unwrap().push(caller);
                drop(slot);
            })
        };
        let mut waiting: Vec<_> = (0..20).map(|_| wait("flood")).collect();
        tokio::task::yield_now().await;
        waiting.push(wait("other"));
        tokio::task::yield_now().await;
        drop(held);
        for waiting in waiting {
            waiting.await.unwrap();
        }
        let position = order.lock().unwrap().iter().position(|caller| *caller == "other");
        assert!(position.is_some_and(|position| position <= 1), "{position:?}");
        drop(free(&slots, Some("last")).await.unwrap());
        assert_eq!(slots.turns.lock().unwrap().len(), 1, "callers that wait for nothing are forgotten");
    }

    #[tokio::test]
    async fn a_spawned_task_can_work_for_its_caller() {
        let slots = Arc::new(Slots::new(2, 1));
        let _held = free(&slots, Some("one")).await.unwrap();
        let in_another_task = async || {
            let slots = Arc::clone(&slots);
            let work = async move { free(&slots, None).await.is_some() };
            tokio::spawn(OnBehalf::current().perform(work)).await.unwrap()
        };
        assert!(!OnBehalf::caller("two").perform(in_another_task()).await, "it waits for the shared slot");
        assert!(in_another_task().await, "work of the hub does not wait");
    }

    #[tokio::test]
    async fn closed_slots_cannot_be_taken() {
        let slots = Slots::new(2, 1);
        slots.close();
        assert!(slots.take().await.is_err());
        assert!(OnBehalf::caller("one").perform(slots.take()).await.is_err());
    }
}
