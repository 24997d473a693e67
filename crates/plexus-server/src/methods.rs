//! The methods of a standard hub. Programs without a hub, such as the relay, can list them too.

use plexus_core::{Registry, standard_methods};

use crate::console_link::ConsoleLink;

/// The methods of the core and of the doors.
pub fn methods() -> Registry {
    let mut methods = standard_methods();
    methods.add(&ConsoleLink);
    methods
}
