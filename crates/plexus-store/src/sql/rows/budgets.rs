//! Budgets and waiting sessions in SQL.

use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::{ApprovalId, SessionId};

use super::super::columns::{Text, Word, int};
use super::super::statements;
use super::SqlRows;
use crate::BudgetRow;
use crate::rows::{BudgetRows, Share, Stored};

impl BudgetRows for SqlRows<'_> {
    fn any_budget(&mut self) -> Stored<bool> {
        if let Some(any) = self.known.any_budget {
            return Ok(any);
        }
        let any = self.value(statements::ANY_BUDGET, ())?;
        self.known.any_budget = Some(any);
        Ok(any)
    }

    fn share(&self, session: SessionId, limit: BudgetLimit) -> Stored<Option<Share>> {
        self.database.one(statements::BUDGET, (Text(session), Word(limit)), |row| {
            let (granted, own) = (row.get("granted")?, row.get("own")?);
            let (below, used) = (row.get("below")?, row.get("used")?);
            Ok(Share {
                row: BudgetRow { session, limit, granted, own, below, used },
                notified: row.get("told")?,
                deleted: row.get("deleted")?,
            })
        })
    }

    fn sessions_with(&self, limit: BudgetLimit) -> Stored<Vec<SessionId>> {
        self.database.all(statements::SESSIONS_WITH, [Word(limit)], |row| Ok(row.get::<Text<_>>(0)?.0))
    }

    fn put_share(&mut self, share: &Share) -> Stored<()> {
        let BudgetRow { session, limit, granted, own, below, used } = &share.row;
        self.known.any_budget = Some(true);
        self.write(
            "INSERT INTO budgets (session, kind, granted, own, below, used, told) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) \
             ON CONFLICT (session, kind) DO UPDATE SET granted = ?3, own = ?4, below = ?5, used = ?6, told = ?7",
            (Text(session), Word(limit), int(*granted), int(*own), int(*below), int(*used), share.notified),
        )
    }

    fn budget_waits(&self, session: SessionId) -> Stored<Vec<ApprovalId>> {
        self.database.all(statements::BUDGET_WAITS, [Text(session)], |row| Ok(row.get::<Text<_>>(0)?.0))
    }

    fn is_waited_for(&self, approval: ApprovalId) -> Stored<bool> {
        self.value(statements::IS_WAITED_FOR, [Text(approval)])
    }

    fn insert_budget_wait(&mut self, session: SessionId, approval: ApprovalId) -> Stored<()> {
        self.write(
            "INSERT INTO budget_waits (session, approval) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            (Text(session), Text(approval)),
        )
    }

    fn delete_budget_wait(&mut self, session: SessionId, approval: ApprovalId) -> Stored<()> {
        self.write(
            "DELETE FROM budget_waits WHERE session = ?1 AND approval = ?2",
            (Text(session), Text(approval)),
        )
    }

    fn delete_budget_waits(&mut self, approval: ApprovalId) -> Stored<()> {
        self.write("DELETE FROM budget_waits WHERE approval = ?1", [Text(approval)])
    }
}
