//! The hooks of a session: commands of the operator that run before and after its tool calls. `given` checks them when a session is
//! created, `matcher` selects the commands for a callback, `run` runs them in the children's sandbox, and `output` interprets their
//! output. A session stores the callback and sends the answer.
//!
//! A hook restricts and never allows: the gate decides beside it, and no output of a command becomes an "allow".

mod given;
mod matcher;
mod output;
mod run;

use plexus_claude::{HookCallback, HookEvent};
use plexus_protocol::claudecode::{HookCommand, Hooks};

pub(crate) use given::check;
pub(crate) use output::HookOutcome;
pub(crate) use run::{HookRun, stop_orphaned_hooks};

use matcher::Matcher;

/// The events for which a session has commands.
pub(crate) fn events_of(hooks: Option<&Hooks>) -> Vec<HookEvent> {
    let has_commands = |event: &HookEvent| {
        let groups = hooks.and_then(|hooks| hooks.0.get(event.as_str())).into_iter().flatten();
        groups.flat_map(|group| &group.hooks).next().is_some()
    };
    HookEvent::ALL.into_iter().filter(has_commands).collect()
}

/// The commands of a session that run for a callback.
pub(crate) fn commands_for(hooks: Option<&Hooks>, callback: &HookCallback) -> Vec<HookCommand> {
    let groups = hooks.and_then(|hooks| hooks.0.get(callback.event.as_str())).into_iter().flatten();
    // A stored matcher that cannot be read matches: the hook must not be skipped.
    let matches = |matcher: Option<&str>| {
        Matcher::parse(matcher).map_or(true, |matcher| matcher.matches(&callback.subject))
    };
    groups.filter(|group| matches(group.matcher.as_deref())).flat_map(|group| group.hooks.clone()).collect()
}
