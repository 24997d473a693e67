//! Shared code for the processes that the hub starts: their environment and shell, their sandbox, and the identity by which the hub
//! finds them again. `files` reads and changes files through such a process, and `sandboxed_command` runs one command in the
//! sandbox. `session/` decides when a process starts.

pub mod child_mcp;
pub mod environment;
pub mod files;
pub mod keepers;
pub mod run_process;
pub mod sandbox;
pub mod sandboxed_command;
pub mod shell;
