//! The pinned Claude Code CLIs: the location of their cache, and the only environment in which they may run.

use std::path::{Path, PathBuf};

use crate::skip::skip;

/// The pinned `claude` of this version, if `cargo xtask test` has fetched it: in `$PLEXUS_CLAUDE_CACHE`, else in the user's cache.
#[must_use]
pub fn claude(version: &str) -> Option<PathBuf> {
    let cache = cache_dir(|name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from))?;
    let program = cache.join(version).join("claude");
    program.is_file().then_some(program)
}

fn cache_dir(var: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    var("PLEXUS_CLAUDE_CACHE").or_else(|| {
        let cache = var("XDG_CACHE_HOME").or_else(|| Some(var("HOME")?.join(".cache")))?;
        Some(cache.join("plexus").join("claude"))
    })
}

/// As [`claude`], for a test. If the CLI is missing, reports the test as skipped; the test must return.
#[must_use]
pub fn require_claude(version: &str, test_name: &str) -> Option<PathBuf> {
    let found = claude(version);
    if found.is_none() {
        skip(test_name, &format!("claude {version}"));
    }
    found
}

/// The complete environment of a real CLI under test. Clear the inherited one first, so that no test can reach a real model or use a real
/// credential.
#[must_use]
pub fn clean_env(home: &Path, model_url: &str) -> Vec<(String, String)> {
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".to_owned());
    [
        ("HOME", home.to_string_lossy().into_owned()),
        ("PATH", path),
        // Otherwise Claude Code uses zsh if it is installed, and commands fail with other messages.
        ("SHELL", "/bin/bash".to_owned()),
        ("ANTHROPIC_BASE_URL", model_url.to_owned()),
        ("ANTHROPIC_API_KEY", "made-up".to_owned()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
        ("DISABLE_AUTOUPDATER", "1".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars<'a>(given: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<PathBuf> + 'a {
        move |name| given.iter().find(|(n, _)| *n == name).map(|(_, v)| PathBuf::from(v))
    }

    #[test]
    fn the_cache_of_the_test_command_has_priority() {
        let all = [("PLEXUS_CLAUDE_CACHE", "/a"), ("XDG_CACHE_HOME", "/b"), ("HOME", "/c")];
        assert_eq!(cache_dir(vars(&all)), Some("/a".into()));
        assert_eq!(cache_dir(vars(&all[1..])), Some("/b/plexus/claude".into()));
        assert_eq!(cache_dir(vars(&all[2..])), Some("/c/.cache/plexus/claude".into()));
        assert_eq!(cache_dir(vars(&[])), None);
    }

    #[test]
    fn the_environment_contains_only_what_the_cli_needs() {
        let env = clean_env(Path::new("/h"), "http://127.0.0.1:1");
        let names: Vec<_> = env.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "HOME",
                "PATH",
                "SHELL",
                "ANTHROPIC_BASE_URL",
                "ANTHROPIC_API_KEY",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
                "DISABLE_AUTOUPDATER"
            ]
        );
    }
}
