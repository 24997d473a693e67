//! `plexus run --resume`: the Claude Code session to continue. Without a valid id, the error lists the recent sessions of the directory.

use std::path::Path;

use plexus_protocol::SessionId;
use plexus_protocol::claudecode::{ResumableResult, ResumableSession};
use serde_json::json;

use crate::error::ExpectedError;
use crate::hub::HubClient;
use crate::terminal::{age, now, one_line};

/// The number of sessions to list.
const LISTED: usize = 10;
/// The longest first prompt to show, in columns.
const WIDTH: usize = 60;

/// The session with this id.
pub(super) async fn session(hub: &HubClient, dir: &Path, given: &str) -> Result<SessionId, ExpectedError> {
    if let Ok(id) = given.parse() {
        return Ok(id);
    }
    let params = json!({"working_dir": dir, "limit": LISTED});
    let ResumableResult::Ok { sessions } = hub.call("claudecode.resumable", params).await?;
    let why = match given {
        "" => "--resume needs the id of a Claude Code session".to_owned(),
        given => format!("--resume {}: not the id of a Claude Code session", one_line(given, WIDTH)),
    };
    Err(ExpectedError::Usage(format!("{why}. {}", listed(dir, &sessions, now()))))
}

fn listed(dir: &Path, sessions: &[ResumableSession], now: u64) -> String {
    let dir = one_line(&dir.to_string_lossy(), usize::MAX);
    if sessions.is_empty() {
        return format!(
            "There is none in {dir}: Claude Code keeps the sessions of each directory separately"
        );
    }
    let mut lines = vec![format!("The most recent ones in {dir}:")];
    lines.extend(sessions.iter().map(|session| {
        let ago = age(now.saturating_sub(session.modified_at));
        format!("  {}  {ago:>7} ago  {}", session.id, one_line(&session.first_prompt, WIDTH))
    }));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sessions_are_listed_with_their_age_and_first_prompt() {
        let id = "4b983b28-9d18-41fa-9871-3489783bd38c";
        let first_prompt = "Fix\nthe \u{1b}[1mtest".to_owned();
        let session = ResumableSession { id: id.parse().unwrap(), modified_at: 1000, first_prompt };
        assert_eq!(
            listed(Path::new("/work"), &[session], 4700),
            format!("The most recent ones in /work:\n  {id}    1h01m ago  Fix⏎the \\u{{1b}}[1mtest")
        );
        assert!(listed(Path::new("/work"), &[], 0).starts_with("There is none in /work"));
    }
}
