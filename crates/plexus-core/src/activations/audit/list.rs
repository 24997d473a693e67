//! `audit.list`: who did what, when, and by what right.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::audit::{ListParams, ListResult};
use plexus_store::AuditFilter;

use crate::Hub;
use crate::access::{Admitted, Needs};
use crate::hub::store_error;
use crate::method::{Audience, Method};

const USUAL: u64 = 100;
const MOST: u64 = 1000;

pub(super) fn method() -> Method {
    Method::new(
        "audit.list",
        "The record of decisions and acts of authority, oldest first: who, by what right, on what input, when.",
        Audience::Programs,
        Needs::Rule,
        list,
    )
    .repeatable()
}

async fn list(hub: Arc<Hub>, _caller: Admitted, params: ListParams) -> Result<ListResult, Error> {
    let ListParams { session_id, since, until, kind, by, tool_name, after, limit } = params;
    let limit = limit.unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        return Err(Error::invalid("limit", format!("is from 1 to {MOST}")));
    }
    let filter = AuditFilter { session: session_id, since, until, kind, by, tool_name };
    let last = |rows: &[plexus_protocol::audit::AuditRow]| rows.last().map(|row| row.number);
    let rows = hub.store().audit(filter.clone(), after, limit).await.map_err(store_error)?;
    // A page may be short because its rows are large.
    let next = match last(&rows) {
        Some(number) if !hub.store().audit(filter, number, 1).await.map_err(store_error)?.is_empty() => {
            Some(number)
        }
        _ => None,
    };
    Ok(ListResult::Ok { rows, next })
}
