//! `console`: the way into the web console.

mod link;

use crate::method::{Activation, Method};

/// The activation.
pub struct Console;

impl Activation for Console {
    fn methods(&self) -> Vec<Method> {
        vec![link::method()]
    }
}
