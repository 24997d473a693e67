//! `audit.series`: adds up costs, calls, answers and waiting times over time, for plots. It reads the facts; `history`
//! adds them up.

use std::sync::Arc;

use plexus_book::now;
use plexus_protocol::Error;
use plexus_protocol::audit::{SeriesParams, SeriesResult};
use plexus_store::{AuditBound, Period};

use crate::Hub;
use crate::callers::access::{self, Admitted, Needs};
use crate::errors::store_error;
use crate::history::series::{Counted, Series};
use crate::hub::Method;
use crate::method::Audience;

const DEFAULT_BUCKETS: u64 = 60;
const MAX_BUCKETS: u64 = 1000;
/// A period with more entries or bytes is rejected: reading that many takes about a second.
const BOUND: AuditBound = AuditBound { entries: 200_000, bytes: 512 * 1024 * 1024 };
/// The maximum number of turns to count, the latest of the period.
const MAX_TURNS: u64 = 200_000;
/// The maximum number of calls to count, the latest of the period.
const MAX_CALLS: u64 = 1_000_000;

pub(super) fn method() -> Method {
    Method::new(
        "audit.series",
        "Adds up costs, calls, answers and waiting times in equal parts of a period.",
        Audience::Programs,
        Needs::Rule,
        series,
    )
    .repeatable()
}

async fn series(hub: Arc<Hub>, caller: Admitted, params: SeriesParams) -> Result<SeriesResult, Error> {
    let SeriesParams { from, to, buckets, session_id } = params;
    let now = now();
    // The period contains the current second.
    let to = to.unwrap_or(now.saturating_add(1));
    if from >= to {
        return Err(Error::invalid("from", "must be before `to`"));
    }
    let buckets = buckets.unwrap_or(DEFAULT_BUCKETS);
    if !(1..=MAX_BUCKETS).contains(&buckets) {
        return Err(Error::invalid("buckets", format!("must be between 1 and {MAX_BUCKETS}")));
    }
    let store = hub.store();
    let counted = match session_id {
        None => Counted::All,
        Some(id) => {
            access::find_session(store, &caller, Some(id), None).await?;
            Counted::subtree(id, &store.session_parents().await.map_err(store_error)?)
        }
    };
    let period = Period { from, to };
    let facts = store.audit_facts(period, BOUND).await.map_err(store_error)?;
    if let Some(at) = facts.complete_from {
        let message = format!(
            "the period has more audit entries than one call reads ({} entries, {} MiB); pass `from` after {at}, or \
             an earlier `to`",
            BOUND.entries,
            BOUND.bytes / 1024 / 1024
        );
        return Err(Error::invalid("from", message).with("complete_from", at));
    }
    let mut series = Series::new(from, to, now, buckets, counted);
    facts.facts.iter().for_each(|fact| series.add_fact(fact));
    store.open_approval_spans().await.map_err(store_error)?.iter().for_each(|span| series.add_open(span));
    for turn in store.ended_turns(period, MAX_TURNS).await.map_err(store_error)? {
        series.add_turn(&turn);
    }
    for count in store.call_counts(period, series.bucket_secs(), MAX_CALLS).await.map_err(store_error)? {
        series.add_calls(&count);
    }
    let bucket_secs = series.bucket_secs();
    Ok(SeriesResult::Ok { from, to, bucket_secs, buckets: series.buckets() })
}
