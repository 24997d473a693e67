//! `audit.list`: pages through the audit log. Each entry says who did what, when, and with which authority.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::audit::{ListParams, ListResult};
use plexus_store::{AuditFilter, AuditFrom};

use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;

const DEFAULT_LIMIT: u64 = 100;
const MAX_LIMIT: u64 = 1000;

pub(super) fn method() -> Method {
    Method::new(
        "audit.list",
        "Lists entries of the audit log, oldest first by default: who decided or acted, when, by what right \
         and on what input.",
        Audience::Programs,
        Needs::Rule,
        list,
    )
    .repeatable()
}

async fn list(hub: Arc<Hub>, _caller: Admitted, params: ListParams) -> Result<ListResult, Error> {
    let ListParams { session_id, since, until, kind, by, tool_name, after, newest_first, before, limit } =
        params;
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Error::invalid("limit", format!("must be between 1 and {MAX_LIMIT}")));
    }
    let from = match (newest_first, after, before) {
        (false, after, None) => AuditFrom::After(after.unwrap_or(0)),
        (true, None, before) => AuditFrom::Before(before.unwrap_or(u64::MAX)),
        (false, _, Some(_)) => {
            return Err(Error::invalid("before", "only allowed with `newest_first: true`"));
        }
        (true, Some(_), _) => {
            return Err(Error::invalid("after", "not allowed with `newest_first: true`; use `before`"));
        }
    };
    let filter = AuditFilter { session: session_id, since, until, kind, by, tool_name };
    let rows = hub.store().audit(filter.clone(), from, limit).await.map_err(store_error)?;
    // A page of large entries can be shorter than the limit, so its length does not show whether more entries follow.
    let next = match rows.last().map(|row| row.number) {
        Some(number) => {
            let rest = match from {
                AuditFrom::After(_) => AuditFrom::After(number),
                AuditFrom::Before(_) => AuditFrom::Before(number),
            };
            let more = hub.store().audit(filter, rest, 1).await.map_err(store_error)?;
            (!more.is_empty()).then_some(number)
        }
        None => None,
    };
    Ok(ListResult::Ok { rows, next })
}
