//! `loopback.wait`: returns the feed entries for the caller after its cursor: new approvals, decisions, finished turns,
//! notices.

use std::sync::Arc;
use std::time::Duration;

use plexus_protocol::loopback::{Finished, WaitParams, WaitResult};
use plexus_protocol::{ApprovalId, ApprovalStatus, Decider, Error, MAX_TEXT_BYTES, Object, shorten};
use plexus_store::{FeedEntry, FeedRow, OpenFilter, Resolution, SessionRow, TurnStatus};
use serde_json::json;
use tokio::time::Instant;

use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::callers::names::Paths;
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;
use crate::view;
use plexus_book::NewEntries;

const DEFAULT_TIMEOUT_MS: u64 = 30_000;

pub(super) fn method() -> Method {
    Method::new(
        "loopback.wait",
        "Waits for approvals that you may answer and for finished turns. Without `cursor` it returns all \
         open approvals at once; pass the returned cursor next time.",
        Audience::Agents,
        Needs::Watch,
        wait,
    )
    .repeatable()
}

pub(super) async fn wait(hub: Arc<Hub>, caller: Admitted, params: WaitParams) -> Result<WaitResult, Error> {
    let me = caller.principal.asked_as().key();
    let Some(cursor) = params.cursor else { return open_now(&hub, &caller).await };
    let timeout = Duration::from_millis(params.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS).min(86_400_000));
    let by_me = Decider::from(&caller.principal);
    // The caller's own acts are skipped permanently: the cursor moves past them.
    let entries = hub
        .commits()
        .wait_for_entries(&me, cursor, Instant::now() + timeout, |row| is_own(row, &by_me))
        .await;
    gather(&hub, &caller, cursor, entries.map_err(store_error)?).await
}

/// All open approvals that the caller is asked to decide.
async fn open_now(hub: &Hub, caller: &Admitted) -> Result<WaitResult, Error> {
    let me = caller.principal.asked_as().key();
    // Approvals created after this read are newer than the cursor, so the next wait returns them.
    let cursor = hub.store().feed_head().await.map_err(store_error)?;
    let open = hub.store().open_approvals(OpenFilter::AskedOf(me)).await.map_err(store_error)?;
    let asked = open.into_iter().filter(|row| row.number <= cursor);
    let paths = Paths::of(hub.store(), &caller.principal);
    let approvals =
        view::approvals(asked, paths, MAX_TEXT_BYTES, caller.reader()).await.map_err(store_error)?;
    Ok(WaitResult::Ok {
        cursor,
        approvals,
        finished: Vec::new(),
        notices: Vec::new(),
        still_open: Vec::new(),
    })
}

async fn gather(hub: &Hub, caller: &Admitted, cursor: u64, entries: NewEntries) -> Result<WaitResult, Error> {
    let me = caller.principal.asked_as().key();
    let NewEntries { newest, rows } = entries;
    if rows.is_empty() {
        // Under a hundred bytes, so that a parent agent can wait for hours at little cost.
        let (approvals, finished, notices) = (Vec::new(), Vec::new(), Vec::new());
        return Ok(WaitResult::Ok { cursor: newest, approvals, finished, notices, still_open: Vec::new() });
    }
    let open = hub.store().open_approvals(OpenFilter::AskedOf(me)).await.map_err(store_error)?;
    let still_open = open.iter().filter(|row| row.number <= cursor).map(|row| row.approval.id).collect();
    let asked = open.into_iter().filter(|row| row.number > cursor && row.number <= newest);
    let paths = Paths::of(hub.store(), &caller.principal);
    let approvals =
        view::approvals(asked, paths, MAX_TEXT_BYTES, caller.reader()).await.map_err(store_error)?;
    let mut finished = Vec::new();
    let mut notices = Vec::new();
    for row in rows {
        match row.entry {
            FeedEntry::Asked { .. } => {}
            FeedEntry::Finished { turn, status, summary } => {
                let session = hub.store().session(row.session).await.map_err(store_error)?;
                finished.extend(session.map(|session| finished_turn(session, turn, status, summary)));
            }
            FeedEntry::Resolved { approval, resolution, .. } => {
                notices.push(resolved_notice(approval, resolution.as_ref()));
            }
            FeedEntry::BudgetLow(budget) => notices.extend(budget.to_json().as_object().cloned()),
            FeedEntry::Notice(notice) => notices.extend(notice.as_object().cloned()),
        }
    }
    Ok(WaitResult::Ok { cursor: newest, approvals, finished, notices, still_open })
}

fn finished_turn(session: SessionRow, turn: u64, status: TurnStatus, summary: Option<String>) -> Finished {
    let mut summary = json!(summary);
    shorten(&mut summary, MAX_TEXT_BYTES);
    Finished {
        session_id: session.id,
        session_name: session.name,
        turn,
        status: view::status(Some(status), &[]),
        result: summary.as_str().map(str::to_owned),
    }
}

fn resolved_notice(approval: ApprovalId, resolution: Option<&Resolution>) -> Object {
    let status = resolution.map(|resolution| resolution.status);
    let notice = json!({"type": "resolved", "approval_id": approval, "status": status});
    notice.as_object().cloned().unwrap_or_default()
}

/// Whether an entry reports only the caller's own act, or nothing that needs attention.
fn is_own(row: &FeedRow, by_me: &Decider) -> bool {
    match &row.entry {
        FeedEntry::Resolved { resolution: Some(Resolution { status, by }), .. } => {
            by == by_me && *status != ApprovalStatus::Withdrawn
        }
        FeedEntry::Resolved { resolution: None, .. } => true,
        _ => false,
    }
}
