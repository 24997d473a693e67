//! `token`: tokens that the operator issues to callers with limited rights.

mod list;
mod new;
mod revoke;

use crate::Hub;
use crate::hub::Method;
use crate::method::Activation;

/// The activation.
pub struct Token;

impl Activation<Hub> for Token {
    fn methods(&self) -> Vec<Method> {
        vec![new::method(), list::method(), revoke::method()]
    }
}
