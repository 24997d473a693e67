//! `loopback`: approvals, asked and answered.

mod configure;
mod escalate;
mod extend;
mod get;
mod pending;
mod permit;
mod respond;
mod wait;

pub(crate) use configure::{CALL_TIMEOUT_MS, http_server};

use crate::method::{Activation, Method};

/// The activation.
pub struct Loopback;

impl Activation for Loopback {
    fn methods(&self) -> Vec<Method> {
        vec![
            permit::method(),
            respond::method(),
            pending::method(),
            get::method(),
            wait::method(),
            escalate::method(),
            extend::method(),
            configure::method(),
        ]
    }
}
