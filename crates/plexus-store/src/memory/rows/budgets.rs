//! Budgets and waiting sessions in memory.

use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::{ApprovalId, SessionId};

use super::super::tables::{Budget, BudgetKey, BudgetWait, Tables};
use crate::rows::{BudgetRows, Share, Stored};

impl BudgetRows for Tables {
    fn any_budget(&mut self) -> Stored<bool> {
        Ok(self.budgets.len() > 0)
    }

    fn share(&self, session: SessionId, limit: BudgetLimit) -> Stored<Option<Share>> {
        let deleted = self.sessions.get(&session).is_some_and(|session| session.row.deleted_at.is_some());
        let found = self.budgets.get(&BudgetKey { session, limit }).cloned();
        Ok(found.map(|Budget { row, notified }| Share { row, notified, deleted }))
    }

    fn sessions_with(&self, limit: BudgetLimit) -> Stored<Vec<SessionId>> {
        let keys = self.budgets.iter().map(|(key, _)| key);
        Ok(keys.filter(|key| key.limit == limit).map(|key| key.session).collect())
    }

    fn put_share(&mut self, share: &Share) -> Stored<()> {
        let Share { row, notified, deleted: _ } = share.clone();
        self.budgets.put(BudgetKey { session: row.session, limit: row.limit }, Budget { row, notified });
        Ok(())
    }

    fn budget_waits(&self, session: SessionId) -> Stored<Vec<ApprovalId>> {
        let waits = self.budget_waits.iter().map(|(wait, ())| wait);
        Ok(waits.filter(|wait| wait.session == session).map(|wait| wait.approval).collect())
    }

    fn is_waited_for(&self, approval: ApprovalId) -> Stored<bool> {
        Ok(self.budget_waits.iter().any(|(wait, ())| wait.approval == approval))
    }

    fn insert_budget_wait(&mut self, session: SessionId, approval: ApprovalId) -> Stored<()> {
        self.budget_waits.put(BudgetWait { session, approval }, ());
        Ok(())
    }

    fn delete_budget_wait(&mut self, session: SessionId, approval: ApprovalId) -> Stored<()> {
        self.budget_waits.delete(&BudgetWait { session, approval });
        Ok(())
    }

    fn delete_budget_waits(&mut self, approval: ApprovalId) -> Stored<()> {
        self.budget_waits.delete_where(|wait, ()| wait.approval == approval);
        Ok(())
    }
}
