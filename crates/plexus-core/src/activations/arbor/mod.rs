//! `arbor`: conversation trees, read in pages. One verb is one file; how a conversation is rendered is in `crate::render`.

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

const USUAL: u64 = 100;
const MOST: u64 = 1000;

/// How many are wanted.
fn checked(limit: Option<u64>) -> Result<u64, Error> {
    let limit = limit.unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        return Err(Error::invalid("limit", format!("is from 1 to {MOST}")));
    }
    Ok(limit)
}

/// Where the next page begins: after the last of this one, if it is full.
fn next<T, Id: Copy>(page: &[T], limit: u64, id: impl Fn(&T) -> Id) -> Option<Id> {
    page.last().filter(|_| page.len() as u64 == limit).map(id)
}
