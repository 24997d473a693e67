//! Finds Git repositories on disk that a command line would make git read. Git runs programs named in the settings of a
//! repository, and only the settings of the working directory's own repository are protected from the agent.

use std::io::Read;
use std::path::Path;

use super::allow::Search;
use crate::bash::{Part, Script, Word, base_name};
use crate::paths;

/// Programs that read the settings of the repository they are started in.
const PROGRAMS: [&str; 12] =
    ["gh", "git", "glab", "got", "hg", "jj", "lazygit", "pre-commit", "sl", "stg", "svn", "tig"];

/// Subcommands of git that take a repository as an operand.
const TAKE_REPOSITORY: [&str; 7] = ["clone", "fetch", "ls-remote", "pull", "push", "remote", "submodule"];

/// The maximum number of words to look up on disk. A command with more needs approval.
const MAX_WORDS: usize = 200;

impl Search<'_, '_> {
    /// Whether a line changes to a folder and starts a version control program there that would read settings other
    /// than those of the working directory's repository.
    pub(super) fn enters_repository(&self, script: &Script) -> bool {
        let programs: Vec<&Part> = script.parts.iter().filter(|part| runs_program(part)).collect();
        !programs.is_empty()
            && script
                .parts
                .iter()
                .filter_map(|part| moving(&part.words))
                .any(|to| self.is_other_repository(to, &programs))
    }

    /// Whether the operands of a `cd` lead to a folder that belongs to another repository, or whose repository is
    /// unknown before it runs, or from which a word of these programs leads to another repository.
    fn is_other_repository(&self, operands: &[Word], programs: &[&Part]) -> bool {
        let to = match operands {
            [to] => to.literal().filter(|to| !to.starts_with(['-', '+'])),
            _ => None,
        };
        let Some(to) = to else { return true };
        let folder = self.call.cwd.join(to);
        let words = || programs.iter().flat_map(|part| &part.words[1..]).filter_map(Word::literal);
        words().nth(MAX_WORDS).is_some()
            || !folder.is_dir()
            || self.lies_in_other_repository(&folder)
            || words().any(|word| self.lies_in_other_repository(&folder.join(word)))
    }

    /// Whether a path leads out of the working directory, or to another repository in it.
    fn lies_in_other_repository(&self, path: &Path) -> bool {
        let (Some(path), Ok(cwd)) = (paths::target(path, self.call.cwd), paths::resolve(self.call.cwd))
        else {
            return true;
        };
        path.real.iter().any(|real| {
            !real.starts_with(&cwd) || real.ancestors().take_while(|folder| *folder != cwd).any(is_repository)
        })
    }

    /// The words of a git command that name a repository in the working directory: git treats a name that is no
    /// configured remote as a path.
    pub(super) fn local_repositories(&self, part: &Part) -> Vec<usize> {
        let text = |at: usize| part.words.get(at).and_then(Word::literal);
        match text(0).map(base_name) {
            Some("hg" | "svn") if part.words.len() > MAX_WORDS => return vec![usize::MAX],
            Some("git") => {}
            // These programs look for a repository at their operands.
            Some("hg" | "svn") => {
                let is_other =
                    |at: &usize| text(*at).is_some_and(|path| self.lies_in_other_repository(Path::new(path)));
                return (1..part.words.len()).filter(is_other).collect();
            }
            _ => return Vec::new(),
        }
        let specifier_kind = |at: &usize| text(*at).is_some_and(|word| TAKE_REPOSITORY.contains(&word));
        let Some(subcommand) = (1..part.words.len()).find(specifier_kind) else { return Vec::new() };
        if part.words.len() > MAX_WORDS {
            return vec![usize::MAX];
        }
        let is_local = |at: &usize| {
            text(*at).is_some_and(|name| {
                let spellings = [name.to_owned(), format!("{name}.git")];
                !name.is_empty() && spellings.iter().any(|name| is_repository(&self.call.cwd.join(name)))
            })
        };
        (subcommand + 1..part.words.len()).filter(is_local).collect()
    }
}

/// Whether a command starts a version control program, possibly through a wrapper.
fn runs_program(part: &Part) -> bool {
    let is_program = |word: &Word| {
        let name = word.literal().map(base_name).unwrap_or_default();
        PROGRAMS.contains(&name) || name.starts_with("git-")
    };
    part.words.iter().any(is_program)
}

/// The operands of a command that changes the directory.
fn moving(words: &[Word]) -> Option<&[Word]> {
    let at = words.iter().position(|word| {
        !matches!(word.literal(), Some("builtin" | "command" | "nocorrect" | "noglob" | "time" | "--"))
    })?;
    let moves = matches!(words[at].literal(), Some("cd" | "chdir" | "popd" | "pushd"));
    moves.then_some(&words[at + 1..])
}

/// Whether a path is a repository, with or without a working tree, or a file that refers to one.
fn is_repository(path: &Path) -> bool {
    let has = |name: &str| path.join(name).symlink_metadata().is_ok();
    has(".git")
        || has(".hg")
        || has(".jj")
        || has(".svn")
        || has("HEAD") && has("objects")
        || is_git_file(path)
}

/// A file that refers to a repository elsewhere.
fn is_git_file(path: &Path) -> bool {
    let mut start = [0; 7];
    let mut read = || std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    path.is_file() && read().is_ok() && start == *b"gitdir:"
}
