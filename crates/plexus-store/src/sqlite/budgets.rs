//! Shares: what a session and all below it may use, and what of it is left. One rule keeps every child within its parent: a
//! limit has a claim on the nearest above of its sort (what was given, or what was used where that is more; of a deleted
//! session what was used), and whatever changes a claim changes what is set aside above, in the same transaction.

use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::{AskedOf, Event, SessionId};
use rusqlite::{Connection, OptionalExtension, Result};
use serde_json::json;

use super::changes::{About, Applying};
use super::columns::{Json, Text, Word, int};
use super::sql;
use crate::{BudgetRow, FeedKind, Refusal, StoreError};

/// How much of a limit is used when it is told, in hundredths.
const TOLD_AT: u64 = 80;

type Done<T> = std::result::Result<T, StoreError>;

/// A limit and how it stands in the tree.
struct Share {
    row: BudgetRow,
    told: bool,
    deleted: bool,
}

impl Share {
    /// What it takes from the nearest above of its sort.
    fn claim(&self) -> i64 {
        let spent = self.row.own + self.row.below;
        int(if self.deleted { spent } else { spent.max(self.row.granted) })
    }
}

/// What goes on to the next limit above: as used by it, or as set aside.
#[derive(Clone, Copy, Default)]
struct Carried {
    own: i64,
    below: i64,
}

impl Carried {
    fn of(share: &Share, before: i64) -> Self {
        let change = share.claim() - before;
        if share.deleted { Self { own: change, below: 0 } } else { Self { own: 0, below: change } }
    }

    fn is_nothing(self) -> bool {
        self.own == 0 && self.below == 0
    }
}

/// The session that made this one, if one did.
fn above(connection: &Connection, session: SessionId) -> Result<Option<SessionId>> {
    let answers_to: Option<Json<AskedOf>> = connection
        .prepare_cached(sql::ANSWERS_TO)?
        .query_row([Text(session)], |row| row.get(0))
        .optional()?;
    Ok(match answers_to {
        Some(Json(AskedOf::Session { id })) => Some(id),
        _ => None,
    })
}

fn share(connection: &Connection, session: SessionId, limit: BudgetLimit) -> Result<Option<Share>> {
    let mut statement = connection.prepare_cached(sql::BUDGET)?;
    statement
        .query_row((Text(session), Word(limit)), |row| {
            Ok(Share {
                row: BudgetRow {
                    session,
                    limit,
                    granted: row.get("granted")?,
                    own: row.get("own")?,
                    below: row.get("below")?,
                    used: row.get("used")?,
                },
                told: row.get("told")?,
                deleted: row.get("deleted")?,
            })
        })
        .optional()
}

/// The nearest at or above `session` that has this limit.
fn nearest(connection: &Connection, session: SessionId, limit: BudgetLimit) -> Result<Option<Share>> {
    let mut at = Some(session);
    // Trees are a few levels deep; this only stops a walk over a damaged store.
    for _ in 0..super::changes::MAX_DEPTH {
        let Some(session) = at else { break };
        if let Some(share) = share(connection, session, limit)? {
            return Ok(Some(share));
        }
        at = above(connection, session)?;
    }
    Ok(None)
}

/// What `session` draws on, of each sort that is limited.
pub(super) fn drawn_on(connection: &Connection, session: SessionId) -> Result<Vec<BudgetRow>> {
    let _one_moment = connection.unchecked_transaction()?;
    let mut found = Vec::new();
    for limit in BudgetLimit::ALL {
        found.extend(nearest(connection, session, limit)?.map(|share| share.row));
    }
    Ok(found)
}

impl Applying<'_> {
    /// Most hubs have no limits, and every call is looked at.
    pub(super) fn is_anything_limited(&self) -> Done<bool> {
        Ok(self.connection.prepare_cached(sql::ANY_LIMIT)?.query_row([], |row| row.get(0))?)
    }

    /// The limit that keeps `session` from using more, if one does: the first of `limits` of which nothing is left.
    pub(super) fn used_up(&self, session: SessionId, limits: &[BudgetLimit]) -> Done<Option<BudgetRow>> {
        for limit in limits {
            if let Some(share) = nearest(self.connection, session, *limit)?
                && share.row.left() == 0
            {
                return Ok(Some(share.row));
            }
        }
        Ok(None)
    }

    /// Refuses what needs some of each of `limits`.
    pub(super) fn check_left(&self, session: SessionId, limits: &[BudgetLimit]) -> Done<()> {
        match self.used_up(session, limits)? {
            Some(row) => Err(Refusal::BudgetExhausted(row).into()),
            None => Ok(()),
        }
    }

    /// A session has used something.
    pub(super) fn spend(&mut self, session: SessionId, limit: BudgetLimit, amount: u64) -> Done<()> {
        if amount == 0 || !self.is_anything_limited()? {
            return Ok(());
        }
        self.carry(session, limit, Carried { own: int(amount), below: 0 }, amount, Some(session))
    }

    /// Goes up from `from`, itself included: what is carried counts with the first that has the limit, and what that changes
    /// in its claim goes on to the next. `used` counts with all of them, and is told to those above at 80 %.
    fn carry(
        &mut self,
        from: SessionId,
        limit: BudgetLimit,
        mut carried: Carried,
        used: u64,
        user: Option<SessionId>,
    ) -> Done<()> {
        let mut at = Some(from);
        for _ in 0..super::changes::MAX_DEPTH {
            let Some(session) = at else { break };
            if let Some(mut share) = share(self.connection, session, limit)? {
                let (before, left) = (share.claim(), share.row.left());
                let row = &mut share.row;
                row.own = row.own.saturating_add_signed(carried.own);
                row.below = row.below.saturating_add_signed(carried.below);
                row.used += used;
                let much = row.used.saturating_mul(100) >= row.granted.saturating_mul(TOLD_AT);
                let teller = user.filter(|_| much && !share.told && !share.deleted);
                share.told |= teller.is_some();
                carried = Carried::of(&share, before);
                self.keep(&share)?;
                if let Some(user) = teller {
                    self.tell_of_use(&share.row, user)?;
                }
                if left == 0 && share.row.left() > 0 {
                    self.end_question(session, limit)?;
                }
            }
            if used == 0 && carried.is_nothing() {
                break;
            }
            at = above(self.connection, session)?;
        }
        Ok(())
    }

    fn keep(&self, share: &Share) -> Done<()> {
        let BudgetRow { session, limit, granted, own, below, used } = &share.row;
        self.execute(
            "INSERT INTO budgets (session, kind, granted, own, below, used, told) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) \
             ON CONFLICT DO UPDATE SET granted = ?3, own = ?4, below = ?5, used = ?6, told = ?7",
            (Text(session), Word(limit), int(*granted), int(*own), int(*below), int(*used), share.told),
        )?;
        Ok(())
    }

    /// Once for what was given: an event in the turn of the session that used it, and a notice to all above the limit.
    fn tell_of_use(&mut self, row: &BudgetRow, user: SessionId) -> Done<()> {
        let owner = self.session(row.session)?;
        let notice = json!({
            "type": "budget",
            "session_id": row.session,
            "session_name": owner.name,
            "limit": row.limit,
            "granted": row.limit.shown(row.granted),
            "used": row.limit.shown(row.used),
            "left": row.limit.shown(row.left()),
        });
        let mut data = notice.as_object().cloned().unwrap_or_default();
        data.remove("type");
        let turn = self.session(user)?.latest_turn;
        self.event(user, turn, &Event::System { subtype: "budget".to_owned(), data })?;
        for to in self.told_of_ends(row.session)? {
            self.feed(&to, FeedKind::Notice, row.session, About::default(), notice.clone())?;
        }
        Ok(())
    }

    /// The limits of a living session are these from now on. What it is given more is taken from the nearest above that has
    /// the limit; what is used or set aside cannot be taken back.
    pub(super) fn set_budget(&mut self, session: SessionId, limits: &[(BudgetLimit, u64)]) -> Done<()> {
        if self.session(session)?.deleted_at.is_some() {
            return Err(Refusal::NoSuchSession(session).into());
        }
        for (limit, amount) in limits {
            match share(self.connection, session, *limit)? {
                Some(share) => self.regrant(share, *amount)?,
                None => self.first_grant(session, *limit, *amount)?,
            }
            self.end_question(session, *limit)?;
        }
        Ok(())
    }

    /// A limit grows by so much.
    pub(super) fn grow(&mut self, session: SessionId, limit: BudgetLimit, more: u64) -> Done<()> {
        match share(self.connection, session, limit)? {
            Some(share) => {
                let granted = share.row.granted.saturating_add(more);
                self.regrant(share, granted)
            }
            None => Err(Refusal::NoSuchSession(session).into()),
        }
    }

    fn regrant(&mut self, mut share: Share, granted: u64) -> Done<()> {
        let row = &mut share.row;
        if granted < row.own + row.below {
            return Err(Refusal::BudgetInUse(row.clone()).into());
        }
        if granted == row.granted {
            return Ok(());
        }
        let (session, limit) = (row.session, row.limit);
        let before = share.claim();
        share.row.granted = granted;
        share.told = false;
        let carried = Carried::of(&share, before);
        self.take(session, limit, carried)?;
        self.made.budgets.push(session);
        self.keep(&share)
    }

    /// A session that had no limit of this sort gets one. Those below it that have one drew on the nearest above until now,
    /// and draw on it from here on.
    fn first_grant(&mut self, session: SessionId, limit: BudgetLimit, granted: u64) -> Done<()> {
        let drawing = self.drawing_through(session, limit)?;
        let row = BudgetRow { session, limit, granted, own: 0, below: drawing, used: 0 };
        if granted < drawing {
            return Err(Refusal::BudgetInUse(row).into());
        }
        let share = Share { row, told: false, deleted: false };
        self.take(session, limit, Carried { own: 0, below: share.claim() - int(drawing) })?;
        self.made.budgets.push(session);
        self.keep(&share)
    }

    /// Takes what is carried from the nearest above, if that has so much left.
    fn take(&mut self, session: SessionId, limit: BudgetLimit, carried: Carried) -> Done<()> {
        let Some(maker) = above(self.connection, session)? else { return Ok(()) };
        if let Some(above) = nearest(self.connection, maker, limit)?
            && carried.below > int(above.row.left())
        {
            return Err(Refusal::BudgetExceeded(above.row).into());
        }
        self.carry(maker, limit, carried, 0, None)
    }

    /// What those below `session` claim that have this limit, with none between them and it.
    fn drawing_through(&self, session: SessionId, limit: BudgetLimit) -> Done<u64> {
        let mut statement = self.connection.prepare_cached(sql::LIMITED)?;
        let limited: Vec<Text<SessionId>> =
            statement.query_map([Word(limit)], |row| row.get(0))?.collect::<Result<_>>()?;
        let mut claims = 0;
        for Text(other) in limited {
            let mut at = above(self.connection, other)?;
            for _ in 0..super::changes::MAX_DEPTH {
                match at {
                    Some(it) if it == session => {
                        let found = share(self.connection, other, limit)?.filter(|share| !share.deleted);
                        claims += found.map_or(0, |share| share.claim());
                        break;
                    }
                    Some(it) if share(self.connection, it, limit)?.is_some() => break,
                    Some(it) => at = above(self.connection, it)?,
                    None => break,
                }
            }
        }
        Ok(claims.unsigned_abs())
    }

    /// A session is about to be deleted: of what it was given, what it has not used goes back.
    pub(super) fn give_back(&mut self, session: SessionId) -> Done<()> {
        for limit in BudgetLimit::ALL {
            let Some(mut share) = share(self.connection, session, limit)? else { continue };
            if share.deleted {
                continue;
            }
            self.end_question(session, limit)?;
            let before = share.claim();
            share.deleted = true;
            let carried = Carried { own: share.claim(), below: -before };
            if let Some(maker) = above(self.connection, session)? {
                self.carry(maker, limit, carried, 0, None)?;
            }
        }
        Ok(())
    }
}
