//! `token`: what the operator hands out to those who may do less than all.

mod list;
mod new;
mod revoke;

use crate::method::{Activation, Method};

/// The activation.
pub struct Token;

impl Activation for Token {
    fn methods(&self) -> Vec<Method> {
        vec![new::method(), list::method(), revoke::method()]
    }
}
