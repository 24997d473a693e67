//! The methods of a hub as it is shipped. They are known without a hub, for example to the relay.

use plexus_core::{Registry, standard_methods};

use crate::console_link::ConsoleLink;

/// The methods of the core and of the doors.
pub fn methods() -> Registry {
    let mut methods = standard_methods();
    methods.add(&ConsoleLink);
    methods
}
