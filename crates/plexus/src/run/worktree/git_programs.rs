//! Which programs git could run in a repository: its hooks, and settings of the repository itself. An agent can change both, so the
//! user sees them before git runs. Settings that are known to name no program are left out; every other setting is listed.

use std::path::Path;

use tokio::process::Command;

/// Settings that name no program. `*` stands for a name in the middle, such as that of a remote or a branch.
const HARMLESS: [&str; 24] = [
    "branch.*.description",
    "branch.*.merge",
    "branch.*.rebase",
    "branch.*.remote",
    "commit.gpgsign",
    "core.autocrlf",
    "core.bare",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.precomposeunicode",
    "core.repositoryformatversion",
    "core.symlinks",
    "extensions.objectformat",
    "extensions.refstorage",
    "extensions.worktreeconfig",
    "pull.rebase",
    "push.default",
    "remote.*.fetch",
    "remote.*.url",
    "submodule.*.active",
    "user.email",
    "user.name",
];

/// The most directories of a working tree that are searched for repositories.
const MAX_FOLDERS: usize = 200_000;

/// The hooks of the repository, its nested repositories and the settings that may name a program, a line each. An error is a reason not to run git.
pub(super) async fn find(dir: &Path) -> Result<Vec<String>, String> {
    let settings = git_output(dir, &["config", "--list", "--show-scope", "--includes", "-z"]).await?;
    let hooks = git_output(dir, &["rev-parse", "--path-format=absolute", "--git-path", "hooks"]).await?;
    let hooks = Path::new(hooks.trim_end_matches('\n'));
    let mut found = match std::fs::read_dir(hooks) {
        Ok(entries) => {
            hook_lines(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(format!("cannot read {}: {error}", hooks.display())),
    };
    found.extend(setting_lines(&settings));
    found.extend(nested_repositories(dir)?);
    Ok(found)
}

/// The repositories inside the working tree. Git runs programs that their settings name, and those settings are not listed.
fn nested_repositories(dir: &Path) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut left = vec![dir.to_owned()];
    let mut visited = 0;
    while let Some(folder) = left.pop() {
        visited += 1;
        if visited > MAX_FOLDERS {
            return Err(format!("{} has more than {MAX_FOLDERS} directories", dir.display()));
        }
        let entries = std::fs::read_dir(&folder)
            .map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
        for entry in entries.flatten() {
            if entry.file_name() == ".git" {
                if folder != dir {
                    found.push(format!("repository {}", folder.display()));
                }
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                left.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The output of a git command that runs no program of the repository.
pub(super) async fn git_output(dir: &Path, args: &[&str]) -> Result<String, String> {
    let ran = Command::new("git").arg("-C").arg(dir).args(args).output().await;
    let ran = ran.map_err(|error| format!("cannot run git: {error}"))?;
    if !ran.status.success() {
        return Err(format!("git {} failed: {}", args[0], String::from_utf8_lossy(&ran.stderr).trim_end()));
    }
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}

fn hook_lines(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<String> =
        names.filter(|name| !name.ends_with(".sample")).map(|name| format!("hook {name}")).collect();
    lines.sort();
    lines
}

/// The lines for settings of the repository, from the output of `git config --list --show-scope -z`: scope, NUL, key, newline, value, NUL.
fn setting_lines(listed: &str) -> Vec<String> {
    let mut fields = listed.split('\0');
    let mut lines = Vec::new();
    while let (Some(scope), Some(setting)) = (fields.next(), fields.next()) {
        let (key, value) = setting.split_once('\n').unwrap_or((setting, ""));
        if matches!(scope, "local" | "worktree") && !is_harmless(key) {
            lines.push(format!("setting {key} = {value}"));
        }
    }
    lines
}

fn is_harmless(key: &str) -> bool {
    let same = |pattern: &&str| match pattern.split_once('*') {
        Some((start, end)) => key.len() >= pattern.len() && key.starts_with(start) && key.ends_with(end),
        None => key == *pattern,
    };
    HARMLESS.iter().any(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_may_name_a_program_are_listed() {
        let listed = "local\0core.bare\nfalse\0local\0remote.origin.url\nhttps://x\0system\0filter.lfs.clean\ngit-lfs\0\
            local\0filter.x.clean\nsh -c evil\0worktree\0core.fsmonitor\n/tmp/x\0local\0core.unknown\0";
        assert_eq!(
            setting_lines(listed),
            [
                "setting filter.x.clean = sh -c evil",
                "setting core.fsmonitor = /tmp/x",
                "setting core.unknown = "
            ]
        );
        assert_eq!(setting_lines(""), Vec::<String>::new());
    }

    #[test]
    fn a_name_in_the_middle_may_contain_dots() {
        assert!(is_harmless("branch.plexus/a.b.merge") && is_harmless("remote.o.url"));
        assert!(
            !is_harmless("remote.url") && !is_harmless("remote.o.uploadpack") && !is_harmless("core.barex")
        );
    }

    #[test]
    fn samples_are_not_hooks() {
        let names = ["pre-commit.sample", "post-merge", "commit-msg"].map(str::to_owned);
        assert_eq!(hook_lines(names.into_iter()), ["hook commit-msg", "hook post-merge"]);
    }
}
