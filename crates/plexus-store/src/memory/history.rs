//! Reads of the past in memory.

use std::collections::BTreeMap;

use async_trait::async_trait;
use plexus_protocol::{Approval, ApprovalStatus, SessionId};

use super::MemoryStore;
use super::reads::count;
use crate::domain::history::audit_fact;
use crate::{
    ApprovalSpan, AuditBound, AuditFacts, CallCount, EndedTurn, History, Period, SessionParent, SpanEnd,
    StoreError,
};

#[async_trait]
impl History for MemoryStore {
    async fn ended_turns(&self, period: Period, limit: u64) -> Result<Vec<EndedTurn>, StoreError> {
        let tables = self.tables();
        let ended = tables.turns.values().filter_map(|row| {
            Some(EndedTurn {
                session: row.session,
                turn: row.turn,
                status: row.status,
                started_at: row.started_at,
                ended_at: row.ended_at?,
                cost_usd: row.cost_usd,
            })
        });
        let mut turns: Vec<EndedTurn> =
            ended.filter(|turn| turn.ended_at >= period.from && turn.started_at < period.to).collect();
        turns.sort_by_key(|turn| std::cmp::Reverse(turn.ended_at));
        turns.truncate(count(limit));
        Ok(turns)
    }

    async fn resolved_approvals(&self, period: Period, limit: u64) -> Result<Vec<ApprovalSpan>, StoreError> {
        let tables = self.tables();
        let rows = tables.approvals.values().map(|stored| &stored.row.approval);
        let resolved =
            rows.filter(|row| row.resolved_at.is_some_and(|at| (period.from..period.to).contains(&at)));
        let mut spans: Vec<ApprovalSpan> = resolved.map(span).collect();
        spans.sort_by_key(|span| std::cmp::Reverse(span.resolved.as_ref().map(|end| end.at)));
        spans.truncate(count(limit));
        Ok(spans)
    }

    async fn open_approval_spans(&self) -> Result<Vec<ApprovalSpan>, StoreError> {
        let tables = self.tables();
        let mut rows: Vec<_> = tables.approvals.values().map(|stored| &stored.row).collect();
        rows.retain(|row| row.approval.status == ApprovalStatus::Pending);
        rows.sort_by_key(|row| row.number);
        Ok(rows.into_iter().map(|row| span(&row.approval)).collect())
    }

    async fn audit_facts(&self, period: Period, bound: AuditBound) -> Result<AuditFacts, StoreError> {
        let tables = self.tables();
        let mut found = AuditFacts { facts: Vec::new(), complete_from: None };
        let (mut entries, mut bytes, mut oldest) = (0, 0, period.to);
        let within = |at: u64| (period.from..period.to).contains(&at);
        for stored in tables.audit.values().rev().filter(|stored| within(stored.entry.at)) {
            entries += 1;
            bytes += stored.text.len() as u64;
            if entries > bound.entries || bytes > bound.bytes {
                found.complete_from = Some(oldest);
                break;
            }
            oldest = stored.entry.at;
            found.facts.extend(audit_fact(&stored.text));
        }
        Ok(found)
    }

    async fn call_counts(
        &self,
        period: Period,
        part_secs: u64,
        limit: u64,
    ) -> Result<Vec<CallCount>, StoreError> {
        let tables = self.tables();
        let mut calls: Vec<(u64, SessionId)> =
            tables.calls.values().map(|call| (call.at, call.row.key.session)).collect();
        calls.retain(|(at, _)| (period.from..period.to).contains(at));
        calls.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        let mut counts: BTreeMap<(u64, SessionId), u64> = BTreeMap::new();
        for (at, session) in calls.into_iter().take(count(limit)) {
            *counts.entry(((at - period.from) / part_secs.max(1), session)).or_default() += 1;
        }
        Ok(counts.into_iter().map(|((part, session), calls)| CallCount { part, session, calls }).collect())
    }

    async fn session_parents(&self) -> Result<Vec<SessionParent>, StoreError> {
        let tables = self.tables();
        let mut sessions: Vec<_> = tables.sessions.values().collect();
        sessions.sort_by_key(|session| session.ordinal);
        let rows = sessions.into_iter().map(|session| &session.row);
        Ok(rows.map(|row| SessionParent { id: row.id, answers_to: row.answers_to.clone() }).collect())
    }
}

fn span(approval: &Approval) -> ApprovalSpan {
    let passed = approval.passed.iter().filter_map(|step| Some((step.from.clone()?, step.at)));
    let resolved = approval.decision.as_ref().zip(approval.resolved_at);
    ApprovalSpan {
        approval: approval.id,
        session: approval.session_id,
        tool_name: approval.tool_name.clone(),
        asked_at: approval.created_at,
        passed: passed.collect(),
        asked_of: approval.asked_of.clone(),
        resolved: resolved.map(|(decision, at)| SpanEnd {
            at,
            status: approval.status,
            by: decision.by.clone(),
            right: decision.right,
        }),
    }
}
