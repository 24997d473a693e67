//! The environment of what the hub starts for a session: the hub's own without its secrets, what the session was
//! given, the shell that the hub chooses, and the mark by which everything that stems from it is found again.

use std::collections::BTreeMap;
use std::ffi::OsString;

use plexus_agent::SESSION_ID_VARIABLE;
use plexus_protocol::SessionId;

use crate::Settings;
use crate::shell::fix_shell;

/// What a child, or the command that makes its worktree ready, and all that stems from it has as environment.
pub(crate) fn environment(
    settings: &Settings,
    session: SessionId,
    given: &BTreeMap<String, String>,
) -> BTreeMap<OsString, OsString> {
    let mut env: BTreeMap<OsString, OsString> = BTreeMap::new();
    if !settings.clean_env {
        let ours = |name: &OsString| name == "CLAUDECODE" || name.to_string_lossy().starts_with("PLEXUS_");
        env.extend(std::env::vars_os().filter(|(name, _)| !ours(name)));
    }
    env.extend(given.iter().map(|(name, value)| (name.into(), value.into())));
    fix_shell(&mut env);
    for (name, value) in [
        ("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1"),
        ("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", "1"),
        ("MCP_CONNECTION_NONBLOCKING", "0"),
        (SESSION_ID_VARIABLE, session.to_string().as_str()),
    ] {
        env.insert(name.into(), value.into());
    }
    env
}
