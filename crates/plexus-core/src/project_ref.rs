//! Which project a session belongs to, from its stored configuration alone: no file is opened, since agents can change
//! every directory that they work in.

use std::path::Path;

use plexus_protocol::claudecode::ProjectRef;
use plexus_protocol::visible;
use plexus_store::SessionConfig;

/// The project of a session with this configuration.
pub(crate) fn project_of(config: &SessionConfig) -> ProjectRef {
    let root = project_root(config);
    let name = Path::new(root).file_name().and_then(|name| name.to_str()).unwrap_or(root);
    ProjectRef { name: shown(name), root: shown(root) }
}

/// The repository of the session if it is known, otherwise its working directory. Sessions of earlier versions know only
/// the repository of their worktree.
pub(crate) fn project_root(config: &SessionConfig) -> &str {
    let of_worktree = config.worktree.as_ref().map(|worktree| {
        let git_dir = worktree.repo.trim_end_matches('/');
        git_dir.strip_suffix("/.git").unwrap_or(git_dir)
    });
    config.repository.as_deref().or(of_worktree).unwrap_or(&config.working_dir)
}

fn shown(text: &str) -> String {
    visible(text).unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use plexus_protocol::worktree::Worktree;

    use super::*;
    use crate::test_support::session_config;

    #[test]
    fn the_project_is_the_repository_or_the_working_directory() {
        let worktree = |repo: &str| Worktree {
            path: "/worktrees/app/a-1".to_owned(),
            branch: "plexus/a-1".to_owned(),
            base: "0".repeat(40),
            repo: repo.to_owned(),
            base_branch: None,
            checkout: None,
        };
        let repository = |root: &str| Some(root.to_owned());
        for (config, name, root) in [
            (session_config(), "w", "/w"),
            (SessionConfig { working_dir: "/".to_owned(), ..session_config() }, "/", "/"),
            (SessionConfig { repository: repository("/src/app"), ..session_config() }, "app", "/src/app"),
            (
                SessionConfig { worktree: Some(worktree("/src/app/.git")), ..session_config() },
                "app",
                "/src/app",
            ),
            (
                SessionConfig { worktree: Some(worktree("/src/app.git/")), ..session_config() },
                "app.git",
                "/src/app.git",
            ),
            (
                SessionConfig {
                    worktree: Some(worktree("/src/app/.git")),
                    repository: repository("/src/app"),
                    ..session_config()
                },
                "app",
                "/src/app",
            ),
        ] {
            let project = project_of(&config);
            assert_eq!((project.name.as_str(), project.root.as_str()), (name, root));
        }
    }
}
