//! Table tests of the session state machine. A [`Harness`] carries out the effects in memory and logs them in order, so
//! that a test reads as a transcript: what was stored, what was sent to the child, what was done to its process.

mod answers;
mod fixtures;
mod gate;
mod harness;
mod held_calls;
mod hooks;
mod log;
mod mcp;
mod process;
mod quiet_lines;
mod recovery;
mod requests;
mod routing;
mod running_cost;
mod settings;
mod turns;
