//! The environment of the processes that the hub starts for a session: the hub's own without its secrets, the variables
//! of the session, the shell that the hub chooses, and the variable by which the hub finds all descendants of the process.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use plexus_agent::SESSION_ID_VARIABLE;
use plexus_protocol::SessionId;

use crate::Settings;
use crate::processes::shell::fix_shell;

/// Variables with the hub's access to its database.
pub(crate) const DATABASE_VARIABLES: [&str; 4] =
    ["PLEXUS_STORE", "PLEXUS_STORE_PASSWORD_FILE", "PGPASSFILE", "PGPASSWORD"];

/// The environment of a child, or of the command that prepares its worktree. Their descendants inherit it.
pub(crate) fn environment(
    settings: &Settings,
    session: SessionId,
    given: &BTreeMap<String, String>,
) -> BTreeMap<OsString, OsString> {
    let mut env: BTreeMap<OsString, OsString> = BTreeMap::new();
    if !settings.clean_env {
        env.extend(std::env::vars_os().filter(|(name, _)| !is_of_hub(name)));
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

/// Whether a variable is for the hub only.
fn is_of_hub(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name == "CLAUDECODE" || name.starts_with("PLEXUS_") || DATABASE_VARIABLES.contains(&&*name)
}

/// The directory in which Claude Code stores transcripts if it runs in this environment.
pub(crate) fn claude_projects(env: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    let get = |name: &str| env.get(&OsString::from(name)).map(PathBuf::from);
    let config = get("CLAUDE_CONFIG_DIR").or_else(|| get("HOME").map(|home| home.join(".claude")))?;
    Some(config.join("projects"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_does_not_inherit_the_access_to_the_database() {
        for name in DATABASE_VARIABLES.iter().chain(&["CLAUDECODE", "PLEXUS_TOKEN"]) {
            assert!(is_of_hub(OsStr::new(name)), "{name}");
        }
        for name in ["PATH", "PGHOST", "CLAUDECODE_X", "MY_PLEXUS_STORE"] {
            assert!(!is_of_hub(OsStr::new(name)), "{name}");
        }
    }
}
