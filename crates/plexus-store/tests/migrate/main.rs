//! Moving the state of a machine from an SQLite file to a real PostgreSQL database, and back: nothing is lost or changed, at whichever step it is interrupted.
#![cfg(test)]

#[path = "../common/mod.rs"]
mod common;
mod crashes;
mod machine;
mod refusals;
mod round_trip;
mod state;
