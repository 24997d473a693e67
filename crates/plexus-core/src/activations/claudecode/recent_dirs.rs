//! `claudecode.recent_dirs`: lists the directories in which the operator last started sessions, for a form that starts
//! another one. They include the directories of deleted sessions, so only the operator may list them.

use std::collections::HashSet;
use std::sync::Arc;

use plexus_protocol::claudecode::{NoParams, RecentDir, RecentDirsResult};
use plexus_protocol::{AskedOf, Error};
use plexus_store::SessionRow;

use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;
use crate::project_ref::project_root;

/// The maximum number of sessions to search.
const SESSIONS: u64 = 500;
/// The maximum number of directories to list.
const DIRS: usize = 20;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.recent_dirs",
        "Lists the directories in which you started sessions, the latest first.",
        Audience::Programs,
        Needs::Rule,
        recent_dirs,
    )
    .repeatable()
}

async fn recent_dirs(hub: Arc<Hub>, _caller: Admitted, _params: NoParams) -> Result<RecentDirsResult, Error> {
    let sessions = hub.store().newest_sessions(SESSIONS).await.map_err(store_error)?;
    Ok(RecentDirsResult::Ok { dirs: distinct_dirs(&sessions) })
}

/// The directories of the operator's own sessions. A worktree belongs to one session, so its repository is listed instead.
fn distinct_dirs(newest_first: &[SessionRow]) -> Vec<RecentDir> {
    let mut known = HashSet::new();
    let own = newest_first.iter().filter(|session| session.answers_to == AskedOf::Operator);
    own.map(|SessionRow { config, created_at, .. }| {
        let path = if config.worktree.is_some() { project_root(config) } else { &config.working_dir };
        RecentDir { path: path.to_owned(), used_at: *created_at }
    })
    .filter(|dir| known.insert(dir.path.clone()))
    .take(DIRS)
    .collect()
}

#[cfg(test)]
mod tests {
    use plexus_protocol::SessionId;
    use plexus_protocol::worktree::Worktree;

    use super::*;
    use crate::test_support::session_row;

    #[test]
    fn each_directory_of_the_operator_is_listed_once_latest_first() {
        let at = |created_at: u64, dir: &str| {
            let mut row = SessionRow { created_at, ..session_row("a") };
            row.config.working_dir = dir.to_owned();
            row
        };
        let mut isolated = at(5, "/worktrees/app/a-1");
        isolated.config.worktree = Some(Worktree {
            path: "/worktrees/app/a-1".to_owned(),
            branch: "b".to_owned(),
            base: String::new(),
            repo: "/src/app/.git".to_owned(),
            base_branch: None,
            checkout: None,
        });
        let child =
            SessionRow { answers_to: AskedOf::Session { id: SessionId::random() }, ..at(6, "/child") };
        let deleted = SessionRow { deleted_at: Some(9), ..at(2, "/gone") };
        let listed = distinct_dirs(&[child, isolated, at(4, "/a"), at(3, "/src/app"), deleted, at(1, "/a")]);
        let shown: Vec<(&str, u64)> = listed.iter().map(|dir| (dir.path.as_str(), dir.used_at)).collect();
        assert_eq!(shown, [("/src/app", 5), ("/a", 4), ("/gone", 2)]);
    }
}
