//! `policy`: rules for tool calls.

mod add;
mod list;
mod preview;
mod revoke;
mod test;

use crate::Hub;
use crate::hub::Method;
use crate::method::Activation;

/// The activation.
pub struct Policy;

impl Activation<Hub> for Policy {
    fn methods(&self) -> Vec<Method> {
        vec![add::method(), list::method(), preview::method(), revoke::method(), test::method()]
    }
}
