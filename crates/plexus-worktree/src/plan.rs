//! Turns a request into a worktree. All checks happen before anything is created, and the plan names everything that
//! will be created.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use git2::build::CheckoutBuilder;
use git2::{ErrorCode, Repository};
use plexus_protocol::worktree::Worktree;
use serde::{Deserialize, Serialize};

use crate::base::base;
use crate::copy::Copy;
use crate::error::at;
use crate::files::{new_dir, open_regular, private_dir};
use crate::layout::{check_admin_dir, check_references};
use crate::{Baseline, Result, WorktreeError, admin_dir, open, open_worktree};

/// The parameters of a worktree.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Request {
    /// The directory where the session would work without a worktree.
    pub working_dir: PathBuf,
    /// The directory for worktrees.
    pub worktrees_dir: PathBuf,
    /// The name of the worktree. No other worktree has ever had it.
    pub name: String,
    /// The base revision; HEAD by default.
    pub base: Option<String>,
    /// Files and directories to copy, relative to the root of the repository.
    pub copy: Vec<String>,
    /// The directory outside which nothing is copied; by default the whole repository.
    pub copy_within: Option<PathBuf>,
}

/// A worktree that can be created.
#[derive(Debug, Serialize, Deserialize)]
pub struct Plan {
    worktree: Worktree,
    working_dir: PathBuf,
    copies: Vec<Copy>,
}

/// The initial state of a created worktree.
#[derive(Debug)]
pub struct FreshCheckout {
    /// The index of the fresh checkout.
    pub index: File,
    /// The differences that copying caused.
    pub baseline: Baseline,
}

impl Plan {
    /// Inspects the repository and plans the worktree. Creates nothing but the directory for worktrees.
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
        let common = common_dir(&repo, given)?;
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
            base: base.commit.to_string(),
            repo: text(&common)?,
            base_branch: base.branch,
            // Only the main working tree: the path of a linked one is in files that a child can write.
            checkout: root
                .join(".git")
                .canonicalize()
                .is_ok_and(|git_dir| git_dir == common)
                .then(|| text(&root))
                .transpose()?,
        };
        Ok(Self { worktree, working_dir, copies })
    }

    /// The planned worktree.
    pub fn worktree(&self) -> &Worktree {
        &self.worktree
    }

    /// The working directory of the session.
    pub fn working_dir(&self) -> &Path {
        &self.working_dir
    }

    /// Creates the worktree and records its initial state. After a failure, the caller must delete what was created.
    pub fn create(&self) -> Result<FreshCheckout> {
        let worktree = &self.worktree;
        let path = Path::new(&worktree.path);
        let admin = admin_dir(worktree)?;
        check_references(worktree.repo.as_ref(), &worktree.branch)?;
        check_admin_dir(worktree.repo.as_ref(), crate::name(worktree)?)?;
        let repo = open(&worktree.repo)?;
        let commit = repo.find_commit(worktree.base.parse()?)?;
        repo.branch(&worktree.branch, &commit, false)?;
        link(worktree, &admin)?;
        let mut fresh = CheckoutBuilder::new();
        open_worktree(&worktree.path)?.checkout_head(Some(fresh.safe().recreate_missing(true)))?;
        let index_file = admin.join("index");
        let index = open_regular(&index_file).map_err(at(&index_file))?;
        for copy in &self.copies {
            copy.copy_to(path)?;
        }
        // The revision may lack this directory, or have a link in its place.
        match self.working_dir.canonicalize() {
            Ok(real) if real.starts_with(path) && real.is_dir() => {}
            _ => return Err(WorktreeError::NotInTree(self.working_dir.clone())),
        }
        // Uses the descriptor, so that it reads the same file that it returns.
        let path = PathBuf::from(format!("/proc/self/fd/{}", index.as_raw_fd()));
        Ok(FreshCheckout { baseline: Baseline::take(worktree, &path)?, index })
    }
}

/// Creates the two directories and the links between them, in git's layout. libgit2 could do this too, but it would
/// first open every other worktree of the repository, and fail if a child has broken one.
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

/// The git directory of the repository that a working tree belongs to. Only git's directory about a linked worktree names
/// another one; a child could add such a file to any git directory.
fn common_dir(repo: &Repository, given: &Path) -> Result<PathBuf> {
    let common = repo.commondir().canonicalize().map_err(at(repo.commondir()))?;
    let own = repo.path().canonicalize().map_err(at(repo.path()))?;
    let is_linked = own.parent() == Some(&common.join("worktrees"));
    if (own == common || is_linked) && common.join("commondir").symlink_metadata().is_err() {
        return Ok(common);
    }
    Err(WorktreeError::BadRepository {
        path: given.to_owned(),
        why: format!("{} uses the data of another repository; delete its file `commondir`", own.display()),
    })
}

/// The common name of the repository with this git directory.
fn repo_name(common: &Path) -> String {
    let last = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = match last(common) {
        Some(name) if name == ".git" => common.parent().and_then(last),
        Some(name) => Some(name.strip_suffix(".git").unwrap_or(&name).to_owned()),
        None => None,
    };
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "repository".to_owned())
}

/// A session's name as part of a branch name. Branch names may not have a leading dot or two consecutive dots.
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
    fn every_session_name_becomes_a_valid_branch_name() {
        for name in ["a", ".", "..", "...", "a..b", ".hidden", "x.lock", "-", "a.-", "@", "HEAD"] {
            let branch = format!("refs/heads/plexus/{}", ref_name(&format!("{name}-1a2b3c4d")));
            assert!(git2::Reference::is_valid_name(&branch), "{branch}");
        }
    }

    #[test]
    fn a_repository_has_its_common_name() {
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
