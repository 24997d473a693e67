//! Policy: the decision about each call at the gate, by named policies and by rules. `gate` decides about one call,
//! `in_force` holds the rules, `create` parses and checks new ones, and `resolve_open` resolves the approvals they match.

mod create;
mod gate;
mod in_force;
pub(crate) mod inheritance;
mod resolve_open;
mod restriction;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use plexus_store::Store;

use crate::Settings;

pub(crate) use create::RuleContext;
pub(crate) use gate::{GateDecision, NamedPolicy, decide, from_verdict, to_verdict};
pub(crate) use in_force::{Judge, Policies, view};
pub(crate) use resolve_open::Preview;
pub(crate) use restriction::Restriction;

/// Decides about the calls of all sessions, and creates rules.
pub(crate) struct Policy {
    pub(crate) in_force: Arc<Policies>,
    store: Arc<dyn Store>,
    settings: Arc<Settings>,
}

impl Policy {
    pub(crate) fn new(in_force: Arc<Policies>, store: Arc<dyn Store>, settings: Arc<Settings>) -> Self {
        Self { in_force, store, settings }
    }
}
