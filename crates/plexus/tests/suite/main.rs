//! Tests of the built binary as a real process, with a cleared environment, its own data directory, and the scripted agent in place of
//! Claude Code.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod commands;
mod completions;
mod console;
mod daily_verbs;
mod demo;
mod doctor;
mod doors;
mod import;
mod ls;
mod mcp;
mod notify;
mod permit;
mod raw_logs;
mod relay;
mod rpc;
mod run;
mod run_screens;
mod serve;
mod session_paths;
mod suggestions;
mod support;
mod terminal;
mod transcript;
mod up;
mod verbs;
mod watch;
mod websocket;
mod worktree_end;
