//! `loopback`: creates, escalates and resolves approvals.

mod configure;
mod escalate;
mod extend;
mod get;
mod pending;
mod permit;
mod respond;
mod wait;

use crate::Hub;
use crate::hub::Method;
use crate::method::Activation;

/// The activation.
pub struct Loopback;

impl Activation<Hub> for Loopback {
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
