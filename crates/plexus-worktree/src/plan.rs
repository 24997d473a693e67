//! From what a caller asked for to a worktree that is there: all that can be refused is refused before anything is
//! made, and what will be made is known by name before the first of it is.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use git2::build::CheckoutBuilder;
use git2::{ErrorCode, Repository};
use plexus_protocol::worktree::Worktree;
use serde::{Deserialize, Serialize};

use crate::copy::Copy;
use crate::error::at;
use crate::files::{new_dir, open_regular, private_dir};
use crate::{Baseline, Result, WorktreeError, admin_dir, open};

/// What a worktree is to be.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Request {
    /// Where the session would work without one.
    pub working_dir: PathBuf,
    /// Where worktrees are made.
    pub worktrees_dir: PathBuf,
    /// What is to be its name; no other worktree has had it.
    pub name: String,
    /// The revision to begin at; HEAD unless said.
    pub base: Option<String>,
    /// Files and directories to copy, from the root of the repository.
    pub copy: Vec<String>,
    /// The directory outside of which nothing is copied; the whole repository unless said.
    pub copy_within: Option<PathBuf>,
}

/// A worktree that can be made.
#[derive(Debug, Serialize, Deserialize)]
pub struct Plan {
    worktree: Worktree,
    working_dir: PathBuf,
    copies: Vec<Copy>,
}

/// What a worktree that was made began as.
#[derive(Debug)]
pub struct Made {
    /// The index of the fresh checkout.
    pub index: File,
    /// What copying changed.
    pub baseline: Baseline,
}

impl Plan {
    /// Looks at the repository and settles what is to be made. Nothing is made but the directory it goes into.
    pub fn of(request: &Request) -> Result<Self> {
        let given = &request.working_dir;
        let repo = discover(given)?;
        let root = repo.workdir().ok_or_else(|| WorktreeError::Bare(given.clone()))?;
        let root = root.canonicalize().map_err(at(root))?;
        let within = given.strip_prefix(&root).map_err(|_| WorktreeError::NotInTree(given.clone()))?;
        if within.components().any(|part| part.as_os_str() == ".git") {
            return Err(WorktreeError::NotInTree(given.clone()));
        }
        let base = base(&repo, given, request.base.as_deref())?;
        let copies = request.copy.iter().map(|path| Copy::of(&root, path)).collect::<Result<Vec<_>>>()?;
        if let Some(within) = &request.copy_within {
            copies.iter().try_for_each(|copy| copy.check_within(within))?;
        }
        let common = repo.commondir().canonicalize().map_err(at(repo.commondir()))?;
        let dir = &request.worktrees_dir;
        private_dir(dir).map_err(at(dir))?;
        let name = ref_name(&request.name);
        let path = dir.canonicalize().map_err(at(dir))?.join(repo_name(&common)).join(&name);
        let working_dir = path.join(within);
        let text = |path: &Path| {
            let bad = || WorktreeError::BadRepository { path: path.to_owned(), why: "not UTF-8".to_owned() };
            path.to_str().map(str::to_owned).ok_or_else(bad)
        };
        text(&working_dir)?;
        let worktree = Worktree {
            path: text(&path)?,
            branch: format!("plexus/{name}"),
            base: base.to_string(),
            repo: text(&common)?,
        };
        Ok(Self { worktree, working_dir, copies })
    }

    /// What will be made.
    pub fn worktree(&self) -> &Worktree {
        &self.worktree
    }

    /// Where the session will work.
    pub fn working_dir(&self) -> &Path {
        &self.working_dir
    }

    /// Makes it, and takes down what it began as. One that fails leaves things to be removed.
    pub fn make(&self) -> Result<Made> {
        let worktree = &self.worktree;
        let path = Path::new(&worktree.path);
        let admin = admin_dir(worktree)?;
        let repo = open(&worktree.repo)?;
        let commit = repo.find_commit(worktree.base.parse()?)?;
        repo.branch(&worktree.branch, &commit, false)?;
        link(worktree, &admin)?;
        let mut fresh = CheckoutBuilder::new();
        open(&worktree.path)?.checkout_head(Some(fresh.safe().recreate_missing(true)))?;
        let index_file = admin.join("index");
        let index = open_regular(&index_file).map_err(at(&index_file))?;
        for copy in &self.copies {
            copy.copy_to(path)?;
        }
        // The revision may have no such directory, or a link in its place.
        match self.working_dir.canonicalize() {
            Ok(real) if real.starts_with(path) && real.is_dir() => {}
            _ => return Err(WorktreeError::NotInTree(self.working_dir.clone())),
        }
        // By its descriptor, so that it is the one which is handed over.
        let path = PathBuf::from(format!("/proc/self/fd/{}", index.as_raw_fd()));
        Ok(Made { baseline: Baseline::take(worktree, &path)?, index })
    }
}

/// Makes the two directories and what ties them together, as git lays it out. libgit2 would do it as well, but only
/// after it has opened every other worktree of the repository; one that a child has broken would be in the way.
fn link(worktree: &Worktree, admin: &Path) -> Result<()> {
    let path = Path::new(&worktree.path);
    new_dir(admin, 0o777).map_err(at(admin))?;
    new_dir(path, 0o700).map_err(at(path))?;
    for (file, content) in [
        (admin.join("HEAD"), format!("ref: refs/heads/{}\n", worktree.branch)),
        (admin.join("commondir"), "../..\n".to_owned()),
        (admin.join("gitdir"), format!("{}\n", path.join(".git").display())),
        (path.join(".git"), format!("gitdir: {}\n", admin.display())),
    ] {
        std::fs::write(&file, content).map_err(at(&file))?;
    }
    Ok(())
}

fn discover(path: &Path) -> Result<Repository> {
    Repository::discover(path).map_err(|error| match error.code() {
        ErrorCode::NotFound => WorktreeError::NoRepository(path.to_owned()),
        _ => WorktreeError::BadRepository { path: path.to_owned(), why: error.message().to_owned() },
    })
}

fn base(repo: &Repository, path: &Path, given: Option<&str>) -> Result<git2::Oid> {
    if let Some(base) = given {
        let commit = repo.revparse_single(base).and_then(|object| object.peel_to_commit());
        return commit.map(|commit| commit.id()).map_err(|error| WorktreeError::NoSuchBase {
            base: base.to_owned(),
            why: error.message().to_owned(),
        });
    }
    match repo.head().and_then(|head| head.peel_to_commit()) {
        Ok(commit) => Ok(commit.id()),
        Err(error) if matches!(error.code(), ErrorCode::UnbornBranch | ErrorCode::NotFound) => {
            Err(WorktreeError::NoCommits(path.to_owned()))
        }
        Err(error) => Err(error.into()),
    }
}

/// What people call the repository whose git directory this is.
fn repo_name(common: &Path) -> String {
    let last = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = match last(common) {
        Some(name) if name == ".git" => common.parent().and_then(last),
        Some(name) => Some(name.strip_suffix(".git").unwrap_or(&name).to_owned()),
        None => None,
    };
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "repository".to_owned())
}

/// A session's name as part of a branch's, where dots may stand neither first nor together.
fn ref_name(name: &str) -> String {
    let mut plain = name.replace("..", "--");
    if plain.starts_with('.') {
        plain.replace_range(..1, "-");
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_session_name_makes_a_branch() {
        for name in ["a", ".", "..", "...", "a..b", ".hidden", "x.lock", "-", "a.-", "@", "HEAD"] {
            let branch = format!("refs/heads/plexus/{}", ref_name(&format!("{name}-1a2b3c4d")));
            assert!(git2::Reference::is_valid_name(&branch), "{branch}");
        }
    }

    #[test]
    fn a_repository_is_called_what_people_call_it() {
        for (common, name) in [
            ("/a/app/.git", "app"),
            ("/a/app.git", "app"),
            ("/a/.git/modules/lib", "lib"),
            ("/.git", "repository"),
        ] {
            assert_eq!(repo_name(Path::new(common)), name);
        }
    }
}
