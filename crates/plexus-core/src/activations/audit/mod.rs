//! `audit`: the audit log, with every decision and act of authority, and figures over time.

mod list;
mod series;
mod verify;

use crate::Hub;
use crate::hub::Method;
use crate::method::Activation;

/// The activation.
pub struct Audit;

impl Activation<Hub> for Audit {
    fn methods(&self) -> Vec<Method> {
        vec![list::method(), series::method(), verify::method()]
    }
}
