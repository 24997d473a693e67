//! `audit`: the record of decisions and of acts of authority.

mod list;
mod verify;

use crate::method::{Activation, Method};

/// The activation.
pub struct Audit;

impl Activation for Audit {
    fn methods(&self) -> Vec<Method> {
        vec![list::method(), verify::method()]
    }
}
