//! `arbor`: pages through conversation trees. Each verb has its own file; `crate::render` renders conversations.

mod children;
mod delete;
mod leaves;
mod node_get;
mod path;
mod render;
mod search;
mod tree_get;
mod tree_list;

use plexus_protocol::Error;

use crate::Hub;
use crate::hub::Method;
use crate::method::Activation;

/// The activation.
pub struct Arbor;

impl Activation<Hub> for Arbor {
    fn methods(&self) -> Vec<Method> {
        vec![
            tree_list::method(),
            tree_get::method(),
            node_get::method(),
            children::method(),
            path::method(),
            leaves::method(),
            render::method(),
            search::method(),
            delete::method(),
        ]
    }
}

const DEFAULT_LIMIT: u64 = 100;
const MAX_LIMIT: u64 = 1000;

/// The page size: the requested limit, or the default, checked against the maximum.
fn checked(limit: Option<u64>) -> Result<u64, Error> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Error::invalid("limit", format!("must be between 1 and {MAX_LIMIT}")));
    }
    Ok(limit)
}

/// The cursor of the next page: the last id of this page if the page is full.
fn next<T, Id: Copy>(page: &[T], limit: u64, id: impl Fn(&T) -> Id) -> Option<Id> {
    page.last().filter(|_| page.len() as u64 == limit).map(id)
}
