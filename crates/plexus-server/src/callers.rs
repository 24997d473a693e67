//! Counts what the hub holds for each authenticated caller: requests in progress, including streams, and bytes of
//! request bodies. The operator, external callers (tokens, parent agents) and sessions use separate pools, so that none
//! of these classes can block another. Each session also has a few calls and bytes outside the pool, so its next permit
//! always fits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plexus_core::{DoorFigures, RejectReason};
use plexus_protocol::Principal;

use crate::limits::DoorLimits;
use crate::refusal::Refusal;

/// Calls of one session that do not count against the pool.
const OWN_CALLS: usize = 4;
/// Bytes of one session that do not count against the pool.
const OWN_BYTES: usize = 64 * 1024;

/// The pool that a caller uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Class {
    Operator,
    Outside,
    Session,
}

impl Class {
    fn of(principal: &Principal) -> Self {
        match principal {
            Principal::Operator => Self::Operator,
            Principal::Token { .. } | Principal::Parent { .. } => Self::Outside,
            Principal::Session { .. } => Self::Session,
        }
    }

    fn own_calls(self) -> usize {
        if self == Self::Session { OWN_CALLS } else { 0 }
    }

    fn own_bytes(self) -> usize {
        if self == Self::Session { OWN_BYTES } else { 0 }
    }
}

/// Calls and bytes of one caller or of one pool.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Held {
    calls: usize,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Tally {
    callers: HashMap<String, Held>,
    pools: HashMap<Class, Held>,
}

/// The counters of all callers.
pub(crate) struct Callers {
    limits: DoorLimits,
    figures: DoorFigures,
    tally: Mutex<Tally>,
}

impl Callers {
    pub(crate) fn new(limits: DoorLimits, figures: DoorFigures) -> Arc<Self> {
        Arc::new(Self { limits, figures, tally: Mutex::default() })
    }

    /// Registers one more call of this caller, until the returned value is dropped.
    pub(crate) fn enter(self: &Arc<Self>, principal: &Principal) -> Result<Call, Refusal> {
        let (key, class) = (principal.key(), Class::of(principal));
        let mut tally = self.tally();
        let held = tally.callers.get(&key).copied().unwrap_or_default();
        // The operator has its own pool, so only the pool limits it.
        if class != Class::Operator && held.calls >= self.limits.calls_per_caller {
            return Err(self.refuse(RejectReason::CallerCalls, Refusal::TooManyCalls));
        }
        if held.calls >= class.own_calls() {
            let pool = tally.pools.entry(class).or_default();
            if pool.calls >= self.limits.calls {
                return Err(self.refuse(RejectReason::Calls, Refusal::Busy));
            }
            pool.calls += 1;
        }
        tally.callers.entry(key.clone()).or_default().calls += 1;
        drop(tally);
        Ok(Call { callers: Arc::clone(self), key, class })
    }

    fn refuse(&self, turned: RejectReason, refusal: Refusal) -> Refusal {
        self.figures.rejected(turned);
        refusal
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call in progress.
pub(crate) struct Call {
    callers: Arc<Callers>,
    key: String,
    class: Class,
}

impl Call {
    /// Creates an empty charge for the bytes of this call's body.
    pub(crate) fn charge(self: &Arc<Self>) -> Charge {
        Charge { call: Arc::clone(self), bytes: 0 }
    }

    fn grow(&self, by: usize) -> Result<(), Refusal> {
        let limits = &self.callers.limits;
        let mut tally = self.callers.tally();
        let before = tally.callers.get(&self.key).map_or(0, |held| held.bytes);
        let after = before.saturating_add(by);
        if after > limits.bytes_per_caller {
            return Err(self.callers.refuse(RejectReason::CallerBytes, Refusal::TooManyBytes));
        }
        let from_pool = over(after, self.class) - over(before, self.class);
        let pool = tally.pools.entry(self.class).or_default();
        if from_pool > 0 && pool.bytes + from_pool > limits.bytes {
            return Err(self.callers.refuse(RejectReason::Bytes, Refusal::Busy));
        }
        pool.bytes += from_pool;
        tally.callers.entry(self.key.clone()).or_default().bytes = after;
        Ok(())
    }

    fn shrink(&self, by: usize) {
        let mut tally = self.callers.tally();
        let Some(held) = tally.callers.get_mut(&self.key) else { return };
        let before = held.bytes;
        held.bytes -= by;
        let to_pool = over(before, self.class) - over(held.bytes, self.class);
        tally.pools.entry(self.class).or_default().bytes -= to_pool;
    }
}

/// The part of a caller's bytes that counts against the pool.
fn over(bytes: usize, class: Class) -> usize {
    bytes.saturating_sub(class.own_bytes())
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut tally = self.callers.tally();
        let Some(held) = tally.callers.get_mut(&self.key) else { return };
        let from_pool = held.calls > self.class.own_calls();
        held.calls -= 1;
        // Each charge holds its call, so a caller without calls has no bytes.
        if held.calls == 0 {
            tally.callers.remove(&self.key);
        }
        if from_pool {
            tally.pools.entry(self.class).or_default().calls -= 1;
        }
    }
}

/// Bytes that the hub holds for a call. Dropping this value releases them.
pub(crate) struct Charge {
    call: Arc<Call>,
    bytes: usize,
}

impl Charge {
    /// Adds bytes to the charge, if they fit.
    pub(crate) fn grow(&mut self, by: usize) -> Result<(), Refusal> {
        self.call.grow(by)?;
        self.bytes += by;
        Ok(())
    }

    /// Releases all bytes.
    pub(crate) fn clear(&mut self) {
        self.call.shrink(self.bytes);
        self.bytes = 0;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use plexus_protocol::SessionId;

    use super::*;

    fn callers(limits: DoorLimits) -> Arc<Callers> {
        Callers::new(limits, DoorFigures::default())
    }

    fn session() -> Principal {
        Principal::Session { id: SessionId::random(), run: 1 }
    }

    #[test]
    fn a_full_pool_still_serves_the_operator_and_other_sessions() {
        let limits = DoorLimits { calls: 10, calls_per_caller: 8, ..DoorLimits::default() };
        let callers = callers(limits);
        let greedy: Vec<Principal> = (0..5).map(|_| session()).collect();
        let mut held = Vec::new();
        for principal in &greedy {
            loop {
                match callers.enter(principal) {
                    Ok(call) => held.push(call),
                    Err(refusal) => {
                        assert!(matches!(refusal, Refusal::TooManyCalls | Refusal::Busy));
                        break;
                    }
                }
            }
        }
        assert_eq!(held.len(), 5 * OWN_CALLS + 10);
        let other = session();
        let permits: Vec<_> = (0..OWN_CALLS).map(|_| callers.enter(&other)).collect();
        assert!(permits.iter().all(Result::is_ok));
        assert!(matches!(callers.enter(&other), Err(Refusal::Busy)));
        assert!(callers.enter(&Principal::Operator).is_ok());
        assert!(callers.enter(&Principal::Parent { id: "outside".to_owned() }).is_ok());
        drop((held, permits));
        assert!(callers.tally().callers.is_empty());
        assert!(callers.tally().pools.values().all(|pool| *pool == Held::default()));
    }

    #[test]
    fn the_operator_is_refused_while_the_hub_is_busy() {
        let callers = callers(DoorLimits { calls: 3, calls_per_caller: 1, ..DoorLimits::default() });
        let held: Vec<_> = (0..3).map(|_| callers.enter(&Principal::Operator)).collect();
        assert!(held.iter().all(Result::is_ok), "`calls_per_caller` is for the others");
        assert!(matches!(callers.enter(&Principal::Operator), Err(Refusal::Busy)));
        drop(held);
        assert!(callers.enter(&Principal::Operator).is_ok());
    }

    #[test]
    fn a_new_run_of_a_session_is_the_same_caller() {
        let callers = callers(DoorLimits { calls_per_caller: 1, ..DoorLimits::default() });
        let id = SessionId::random();
        let _first = callers.enter(&Principal::Session { id, run: 1 }).unwrap();
        let again = callers.enter(&Principal::Session { id, run: 2 });
        assert!(matches!(again, Err(Refusal::TooManyCalls)));
    }

    #[test]
    fn bytes_are_limited_per_caller_and_in_total_and_a_small_permit_always_fits() {
        let limits = DoorLimits { bytes: 100_000, bytes_per_caller: 150_000, ..DoorLimits::default() };
        let callers = callers(limits);
        let call = |principal: &Principal| Arc::new(callers.enter(principal).unwrap());
        let greedy = call(&session());
        let mut first = greedy.charge();
        assert_eq!(first.grow(150_001), Err(Refusal::TooManyBytes));
        first.grow(150_000).unwrap();
        let mut second = call(&session()).charge();
        assert_eq!(second.grow(OWN_BYTES + 16_000), Err(Refusal::Busy));
        second.grow(OWN_BYTES).unwrap();
        let mut operator = call(&Principal::Operator).charge();
        operator.grow(100_000).unwrap();
        assert_eq!(operator.grow(1), Err(Refusal::Busy));
        first.clear();
        second.grow(80_000).unwrap();
        drop((first, second, operator, greedy));
        assert!(callers.tally().callers.is_empty());
        assert!(callers.tally().pools.values().all(|pool| *pool == Held::default()));
    }
}
