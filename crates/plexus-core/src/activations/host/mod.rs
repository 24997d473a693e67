//! `host`: the machines whose hubs share the store.

mod accept_rollback;
mod drain;
mod list;
mod lose;
mod remove;
mod undrain;

use crate::Hub;
use crate::hub::Method;
use crate::method::Activation;

/// The activation.
pub struct Host;

impl Activation<Hub> for Host {
    fn methods(&self) -> Vec<Method> {
        vec![
            list::method(),
            drain::method(),
            undrain::method(),
            lose::method(),
            remove::method(),
            accept_rollback::method(),
        ]
    }
}
