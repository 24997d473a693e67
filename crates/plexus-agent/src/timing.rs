//! The names under which hub and keeper log timing marks: `tracing` events at the boundaries of the stages of a tool call. `cargo xtask trace`
//! reads them. A mark has ids and offsets, and never a part of an input. It is written before the action that wakes the next stage.

/// The target of timing marks. They are off unless `PLEXUS_LOG` has `plexus::timing=trace`.
pub const TIMING: &str = "plexus::timing";

/// The argument of `plexus keep` that turns on the keeper's marks. An environment variable would reach the child.
pub const TIMING_ARG: &str = "--timing";
