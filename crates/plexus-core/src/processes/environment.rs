//! The environment of the processes that the hub starts for a session: the hub's own without its secrets, the variables
//! of the session, the shell that the hub chooses, and the variable by which the hub finds all descendants of the process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use plexus_agent::SESSION_ID_VARIABLE;
use plexus_protocol::SessionId;

use crate::Settings;
use crate::processes::shell::fix_shell;

/// The environment of a child, or of the command that prepares its worktree. Their descendants inherit it.
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

/// The directory in which Claude Code stores transcripts if it runs in this environment.
pub(crate) fn claude_projects(env: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    let get = |name: &str| env.get(&OsString::from(name)).map(PathBuf::from);
    let config = get("CLAUDE_CONFIG_DIR").or_else(|| get("HOME").map(|home| home.join(".claude")))?;
    Some(config.join("projects"))
}
