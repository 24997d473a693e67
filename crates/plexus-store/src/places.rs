//! A fair limit on the use of a scarce resource, such as read connections or helper processes. The operator and the hub itself
//! may take all places. Other callers share some of them, and each has one at a time. So a caller with many requests delays
//! neither the operator nor, for longer than one request, other callers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

tokio::task_local! {
    /// The caller that the current task works for; not set for the operator and the hub itself.
    static CALLER: Arc<str>;
}

/// The caller that work is done for. It decides which places the work can take.
#[derive(Debug, Clone)]
pub struct OnBehalf(Option<Arc<str>>);

impl OnBehalf {
    /// The operator, or the hub itself.
    pub const OPERATOR: Self = Self(None);

    /// A caller that shares places with others, identified by `key`.
    pub fn caller(key: &str) -> Self {
        Self(Some(key.into()))
    }

    /// The caller of the current task. A spawned task works for the hub unless it runs inside [`Self::perform`].
    pub fn current() -> Self {
        Self(CALLER.try_with(Arc::clone).ok())
    }

    /// Runs `work` for this caller.
    pub async fn perform<F: Future>(self, work: F) -> F::Output {
        match self.0 {
            Some(caller) => CALLER.scope(caller, work).await,
            None => work.await,
        }
    }
}

/// The places at one resource.
#[derive(Debug)]
pub struct Places {
    all: Arc<Semaphore>,
    /// The places that callers share.
    shared: Arc<Semaphore>,
    /// One permit for each caller that has or waits for a place.
    turns: Mutex<HashMap<Arc<str>, Weak<Semaphore>>>,
}

/// A taken place, which is released on drop.
#[derive(Debug)]
pub struct Place {
    _all: OwnedSemaphorePermit,
    _shared: Option<[OwnedSemaphorePermit; 2]>,
}

impl Places {
    /// `all` places, of which `shared` can be taken by callers other than the operator.
    pub fn new(all: usize, shared: usize) -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self { all: places(all), shared: places(shared), turns: Mutex::default() }
    }

    /// Waits for a place for the current caller. Cancel safe.
    ///
    /// # Errors
    /// If the places are closed.
    pub async fn take(&self) -> Result<Place, AcquireError> {
        let shared = match OnBehalf::current().0 {
            None => None,
            // The caller's own permit first: only one of its requests competes with those of other callers.
            Some(caller) => Some([
                self.turn(caller).acquire_owned().await?,
                Arc::clone(&self.shared).acquire_owned().await?,
            ]),
        };
        Ok(Place { _all: Arc::clone(&self.all).acquire_owned().await?, _shared: shared })
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

    /// Closes the places: every waiting and later call of [`Self::take`] fails.
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

    /// Takes a place if one is free for this caller now.
    async fn free(places: &Places, caller: Option<&str>) -> Option<Place> {
        let mut taking = pin!(caller.map_or(OnBehalf::OPERATOR, OnBehalf::caller).perform(places.take()));
        let polled = std::future::poll_fn(|context| Poll::Ready(taking.as_mut().poll(context))).await;
        match polled {
            Poll::Ready(taken) => Some(taken.unwrap()),
            Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn callers_leave_places_for_the_operator_and_for_each_other() {
        let places = Places::new(4, 2);
        let one = free(&places, Some("one")).await.expect("the first place");
        assert!(free(&places, Some("one")).await.is_none(), "it already has one");
        let two = free(&places, Some("two")).await.expect("another caller gets a place");
        assert!(free(&places, Some("three")).await.is_none(), "the rest is for the operator");
        let operators = [free(&places, None).await.unwrap(), free(&places, None).await.unwrap()];
        assert!(free(&places, None).await.is_none());
        drop((one, operators));
        assert!(free(&places, Some("three")).await.is_some());
        drop(two);
        assert_eq!(places.shared.available_permits(), 2);
        assert_eq!(places.all.available_permits(), 4);
    }

    #[tokio::test]
    async fn a_caller_waits_for_at_most_one_request_of_each_other_caller() {
        let places = Arc::new(Places::new(2, 1));
        let held = free(&places, Some("flood")).await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let wait = |caller: &'static str| {
            let (places, order) = (Arc::clone(&places), Arc::clone(&order));
            tokio::spawn(async move {
                let place = OnBehalf::caller(caller).perform(places.take()).await.unwrap();
                order.lock().unwrap().push(caller);
                drop(place);
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
        drop(free(&places, Some("last")).await.unwrap());
        assert_eq!(places.turns.lock().unwrap().len(), 1, "callers that wait for nothing are forgotten");
    }

    #[tokio::test]
    async fn a_spawned_task_can_work_for_its_caller() {
        let places = Arc::new(Places::new(2, 1));
        let _held = free(&places, Some("one")).await.unwrap();
        let in_another_task = async || {
            let places = Arc::clone(&places);
            let work = async move { free(&places, None).await.is_some() };
            tokio::spawn(OnBehalf::current().perform(work)).await.unwrap()
        };
        assert!(!OnBehalf::caller("two").perform(in_another_task()).await, "it waits for the shared place");
        assert!(in_another_task().await, "work of the hub does not wait");
    }

    #[tokio::test]
    async fn closed_places_cannot_be_taken() {
        let places = Places::new(2, 1);
        places.close();
        assert!(places.take().await.is_err());
        assert!(OnBehalf::caller("one").perform(places.take()).await.is_err());
    }
}
