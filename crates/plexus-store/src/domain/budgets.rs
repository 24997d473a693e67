//! Budget arithmetic: what a session and all sessions below it may use, and how much of it is left.
//!
//! A grant has a *claim* on the nearest grant of the same limit above it. The claim of a session is its grant, or its usage
//! if that is more; the claim of a deleted session is its usage. Every change of a claim is added to the next
//! grant above in the same transaction, so no session ever uses more than its parent was granted.

use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::{AskedOf, Event, SessionId};
use serde_json::json;

use super::{Commit, MAX_DEPTH, feed, key};
use crate::rows::{BudgetRows, Rows, SessionRows, Share, Stored};
use crate::{BudgetNotice, BudgetRow, FeedEntry, Refusal};

/// The limits of which some must be left before a turn starts.
pub(super) const TURN_LIMITS: [BudgetLimit; 3] =
    [BudgetLimit::Turns, BudgetLimit::CostUsd, BudgetLimit::WallSecs];

/// The percentage of a grant that is used when the sessions above are notified.
const NOTIFIED_AT_PERCENT: u64 = 80;

/// A change to a grant that comes from below.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Carried {
    /// Used by the session itself or by sessions without a grant of their own.
    pub(super) own: i64,
    /// Reserved for grants below.
    pub(super) below: i64,
}

impl Carried {
    fn is_nothing(self) -> bool {
        self == Self::default()
    }
}

impl Share {
    /// The first grant of a limit. Grants below it with the sum of claims `below` draw on it from now on.
    fn first(session: SessionId, limit: BudgetLimit, granted: u64, below: u64) -> Result<Self, Refusal> {
        let row = BudgetRow { session, limit, granted, own: 0, below, used: 0 };
        if granted < below {
            Err(Refusal::BudgetInUse(row))
        } else {
            Ok(Self { row, notified: false, deleted: false })
        }
    }

    /// Its claim on the nearest grant above.
    pub(super) fn claim(&self) -> i64 {
        let spent = self.row.own + self.row.below;
        signed(if self.deleted { spent } else { spent.max(self.row.granted) })
    }

    /// Adds a change from below and `used` units; returns the change for the next grant above.
    pub(super) fn add(&mut self, change: Carried, used: u64) -> Carried {
        let before = self.claim();
        self.row.own = self.row.own.saturating_add_signed(change.own);
        self.row.below = self.row.below.saturating_add_signed(change.below);
        self.row.used += used;
        self.change_since(before)
    }

    /// Grants another amount; returns the change for the next grant above. The used and reserved amount cannot be reduced.
    pub(super) fn regrant(&mut self, granted: u64) -> Result<Carried, Refusal> {
        if granted < self.row.own + self.row.below {
            return Err(Refusal::BudgetInUse(self.row.clone()));
        }
        let before = self.claim();
        if granted != self.row.granted {
            self.notified = false;
        }
        self.row.granted = granted;
        Ok(self.change_since(before))
    }

    /// The session is deleted: the next grant above gets the unused part back, the used part counts as its own.
    pub(super) fn release(&mut self) -> Carried {
        let before = self.claim();
        self.deleted = true;
        Carried { own: self.claim(), below: -before }
    }

    /// Whether the sessions above have to be notified now. They are notified once for each grant.
    pub(super) fn is_mostly_used(&self) -> bool {
        let BudgetRow { used, granted, .. } = self.row;
        used.saturating_mul(100) >= granted.saturating_mul(NOTIFIED_AT_PERCENT)
    }

    fn change_since(&self, claim: i64) -> Carried {
        let change = self.claim() - claim;
        if self.deleted { Carried { own: change, below: 0 } } else { Carried { own: 0, below: change } }
    }
}

/// An amount as a signed number; no backend can store more.
fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// The parent of a session, if the parent is a session.
fn parent(rows: &(impl SessionRows + ?Sized), session: SessionId) -> Stored<Option<SessionId>> {
    Ok(match rows.session_identity(session)?.map(|session| session.answers_to) {
        Some(AskedOf::Session { id }) => Some(id),
        _ => None,
    })
}

/// The nearest grant of this limit, at the session or above it.
fn nearest(rows: &dyn Rows, session: SessionId, limit: BudgetLimit) -> Stored<Option<Share>> {
    let mut at = Some(session);
    for _ in 0..MAX_DEPTH {
        let Some(session) = at else { break };
        if let Some(share) = rows.share(session, limit)? {
            return Ok(Some(share));
        }
        at = parent(rows, session)?;
    }
    Ok(None)
}

/// The grants that a session draws on: the nearest of each limit.
pub(crate) fn drawn_on(rows: &dyn Rows, session: SessionId) -> Stored<Vec<BudgetRow>> {
    let mut found = Vec::new();
    for limit in BudgetLimit::ALL {
        found.extend(nearest(rows, session, limit)?.map(|share| share.row));
    }
    Ok(found)
}

/// The sum of the claims below `session` that have no other grant between them and it.
fn claims_below(rows: &dyn Rows, session: SessionId, limit: BudgetLimit) -> Stored<u64> {
    let mut claims = 0;
    for other in BudgetRows::sessions_with(rows, limit)? {
        let Some(share) = rows.share(other, limit)?.filter(|share| !share.deleted) else { continue };
        if draws_on(rows, other, session, limit)? {
            claims += share.claim();
        }
    }
    Ok(claims.unsigned_abs())
}

/// Whether `session` is below `above` with no grant of this limit between them.
fn draws_on(rows: &dyn Rows, session: SessionId, above: SessionId, limit: BudgetLimit) -> Stored<bool> {
    let mut at = parent(rows, session)?;
    for _ in 0..MAX_DEPTH {
        match at {
            Some(it) if it == above => return Ok(true),
            Some(it) if rows.share(it, limit)?.is_none() => at = parent(rows, it)?,
            _ => break,
        }
    }
    Ok(false)
}

impl Commit<'_> {
    /// The grant that blocks `session`: the first of `limits` that is exhausted.
    pub(super) fn exhausted(&self, session: SessionId, limits: &[BudgetLimit]) -> Stored<Option<BudgetRow>> {
        for limit in limits {
            if let Some(share) = nearest(&*self.rows, session, *limit)?
                && share.row.left() == 0
            {
                return Ok(Some(share.row));
            }
        }
        Ok(None)
    }

    /// Refuses an action that needs some of each of `limits`.
    pub(super) fn check_left(&self, session: SessionId, limits: &[BudgetLimit]) -> Stored<()> {
        match self.exhausted(session, limits)? {
            Some(row) => Err(Refusal::BudgetExhausted(row).into()),
            None => Ok(()),
        }
    }

    /// Counts what a session has used.
    pub(super) fn spend(&mut self, session: SessionId, limit: BudgetLimit, amount: u64) -> Stored<()> {
        // Most hubs have no budgets, and this runs for every call.
        if amount == 0 || !self.rows.any_budget()? {
            return Ok(());
        }
        self.carry(session, limit, Carried { own: signed(amount), below: 0 }, Use::By(session, amount))
    }

    /// Carries a change up the tree from `from`, inclusive. The first grant takes it; the change of that grant's claim goes to
    /// the next one. A use counts with every grant on the way.
    fn carry(&mut self, from: SessionId, limit: BudgetLimit, mut change: Carried, usage: Use) -> Stored<()> {
        let mut at = Some(from);
        for _ in 0..MAX_DEPTH {
            let Some(session) = at else { break };
            if let Some(mut share) = self.rows.share(session, limit)? {
                let was_exhausted = share.row.left() == 0;
                change = share.add(change, usage.amount());
                let user =
                    usage.user().filter(|_| share.is_mostly_used() && !share.notified && !share.deleted);
                share.notified |= user.is_some();
                self.rows.put_share(&share)?;
                if let Some(user) = user {
                    self.notify_mostly_used(&share.row, user)?;
                }
                if was_exhausted && share.row.left() > 0 {
                    self.withdraw_budget_approval(session, limit)?;
                }
            }
            if usage.amount() == 0 && change.is_nothing() {
                break;
            }
            at = parent(&*self.rows, session)?;
        }
        Ok(())
    }

    /// An event in the turn of the session that used it, and a notice to everyone above the grant.
    fn notify_mostly_used(&mut self, row: &BudgetRow, user: SessionId) -> Stored<()> {
        let owner = self.session(row.session)?;
        let notice = BudgetNotice {
            session_id: row.session,
            session_name: owner.name,
            limit: row.limit,
            granted: row.limit.shown(row.granted),
            used: row.limit.shown(row.used),
            left: row.limit.shown(row.left()),
        };
        let data = json!(notice).as_object().cloned().unwrap_or_default();
        let turn = self.session(user)?.latest_turn;
        self.event(key(user, turn), &Event::System { subtype: "budget".to_owned(), data })?;
        for to in feed::supervisors(&*self.rows, row.session)? {
            self.feed(to, row.session, FeedEntry::BudgetLow(notice.clone()))?;
        }
        Ok(())
    }

    pub(super) fn set_budget(&mut self, session: SessionId, limits: &[(BudgetLimit, u64)]) -> Stored<()> {
        self.existing_session(session)?;
        for (limit, amount) in limits {
            match self.rows.share(session, *limit)? {
                Some(share) => self.regrant(share, *amount)?,
                None => self.first_grant(session, *limit, *amount)?,
            }
            self.withdraw_budget_approval(session, *limit)?;
        }
        Ok(())
    }

    /// Raises a grant by `more`.
    pub(super) fn raise_grant(&mut self, session: SessionId, limit: BudgetLimit, more: u64) -> Stored<()> {
        match self.rows.share(session, limit)? {
            Some(share) => {
                let granted = share.row.granted.saturating_add(more);
                self.regrant(share, granted)
            }
            None => Err(Refusal::NoSuchSession(session).into()),
        }
    }

    pub(super) fn regrant(&mut self, mut share: Share, granted: u64) -> Stored<()> {
        let before = share.row.granted;
        let change = share.regrant(granted)?;
        if granted == before {
            return Ok(());
        }
        self.take_from_above(&share.row, change)?;
        self.rows.put_share(&share)?;
        self.published.budgets.push(share.row.session);
        Ok(())
    }

    fn first_grant(&mut self, session: SessionId, limit: BudgetLimit, granted: u64) -> Stored<()> {
        let below = claims_below(&*self.rows, session, limit)?;
        let share = Share::first(session, limit, granted, below)?;
        // The claims below were reserved from the grant above until now; only the difference is new.
        self.take_from_above(&share.row, Carried { own: 0, below: share.claim() - signed(below) })?;
        self.rows.put_share(&share)?;
        self.published.budgets.push(session);
        Ok(())
    }

    /// Carries the change of a grant to the nearest one above, or refuses if too little is left there.
    fn take_from_above(&mut self, row: &BudgetRow, change: Carried) -> Stored<()> {
        let Some(parent) = parent(&*self.rows, row.session)? else { return Ok(()) };
        if let Some(above) = nearest(&*self.rows, parent, row.limit)?
            && change.below > signed(above.row.left())
        {
            return Err(Refusal::BudgetExceeded(above.row).into());
        }
        self.carry(parent, row.limit, change, Use::None)
    }

    /// A session is about to be deleted: the unused part of its grants goes back to the grants above.
    pub(super) fn return_unused_budget(&mut self, session: SessionId) -> Stored<()> {
        for limit in BudgetLimit::ALL {
            let Some(mut share) = self.rows.share(session, limit)? else { continue };
            if share.deleted {
                continue;
            }
            self.withdraw_budget_approval(session, limit)?;
            let change = share.release();
            if let Some(parent) = parent(&*self.rows, session)? {
                self.carry(parent, limit, change, Use::None)?;
            }
        }
        Ok(())
    }
}

/// Whether a carried change is a use, and by which session.
#[derive(Clone, Copy)]
enum Use {
    By(SessionId, u64),
    None,
}

impl Use {
    fn amount(self) -> u64 {
        match self {
            Self::By(_, amount) => amount,
            Self::None => 0,
        }
    }

    fn user(self) -> Option<SessionId> {
        match self {
            Self::By(session, _) => Some(session),
            Self::None => None,
        }
    }
}
