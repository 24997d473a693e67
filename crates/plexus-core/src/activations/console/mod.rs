//! `console`: the way into the web console.

mod link;

use crate::Hub;
use crate::hub::Method;
use crate::method::Activation;

/// The activation.
pub struct Console;

impl Activation<Hub> for Console {
    fn methods(&self) -> Vec<Method> {
        vec![link::method()]
    }
}
