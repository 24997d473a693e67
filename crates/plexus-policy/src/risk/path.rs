//! Marks the files that a call names: files outside the project, secrets, and files that another program runs later. Paths are
//! compared as they are written, without access to the file system.

use std::path::{Component, Path, PathBuf};

use plexus_protocol::RiskKind;

use super::file_table::{
    CREDENTIALS, DISKS, HISTORY, NOT_CREDENTIALS, PROGRAM_DIRS, RUNS_LATER, STANDARD_DEVICES,
};
use super::{Marks, hosts, pattern, quoted};
use crate::paths::lexical;
use crate::wildcard::name_matches;

/// Longer texts are not paths.
pub(super) const MAX_BYTES: usize = 1_000;

/// What the call does with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
    Unknown,
    /// Runs it as a program.
    Run,
}

/// The directories that paths are compared with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Directories<'a> {
    pub(super) cwd: &'a Path,
    pub(super) home: Option<&'a Path>,
    pub(super) roots: &'a [&'a Path],
}

impl Directories<'_> {
    /// Adds the marks of a path, as it is written in the call. `~` is the home directory.
    pub(super) fn mark(&self, written: &str, access: Access, marks: &mut Marks) {
        if written.is_empty() || written.len() > MAX_BYTES || written.contains(['\0', '\n']) {
            return;
        }
        if self.secret(written) {
            let verb = match access {
                Access::Read | Access::Run => "reads",
                Access::Write => "changes",
                Access::Unknown => "names",
            };
            marks.add(
                RiskKind::Credentials,
                format!("{verb} {}, which usually holds secrets", quoted(written)),
            );
        }
        let path = self.absolute(written);
        if matches!(access, Access::Write | Access::Unknown) && self.matches_any(RUNS_LATER, written, &path) {
            marks.add(
                RiskKind::RunsLater,
                format!("may change {}, which other programs run or obey later", quoted(written)),
            );
        }
        if matches!(access, Access::Write | Access::Unknown) && self.matches_any(HISTORY, written, &path) {
            marks.add(
                RiskKind::HistoryRewrite,
                format!("may change {}, where git stores branches and commits", quoted(written)),
            );
        }
        if access != Access::Read && self.matches_any(DISKS, written, &path) {
            marks.add(RiskKind::System, format!("may write to the device {}", quoted(written)));
        }
        hosts::device(written, marks);
        if self.is_outside(written, &path, access) {
            let verb = match access {
                Access::Read => "reads",
                Access::Write => "changes",
                Access::Run => "runs",
                Access::Unknown => "names",
            };
            marks.add(
                RiskKind::OutsideProject,
                format!("{verb} {}, which is outside the project", quoted(written)),
            );
        }
    }

    /// Marks a call that runs outside the project.
    pub(super) fn mark_cwd(&self, marks: &mut Marks) {
        let cwd = lexical(self.cwd);
        if !self.roots.is_empty() && !self.contains(&cwd) {
            let cwd = quoted(&cwd.to_string_lossy());
            marks.add(RiskKind::OutsideProject, format!("runs in {cwd}, which is outside the project"));
        }
    }

    /// Adds the marks of the end of a path whose start is unknown: it may name a secret, or go up. The start counts as the
    /// current directory.
    pub(super) fn mark_end(&self, end: &str, marks: &mut Marks) {
        let end = end.trim_start_matches('/');
        let goes_up = end.len() <= MAX_BYTES && end.split('/').any(|part| part == "..");
        if goes_up && self.is_outside(end, &self.absolute(end), Access::Unknown) {
            let shown = quoted(&format!("…/{end}"));
            marks.add(RiskKind::OutsideProject, format!("names {shown}, which may be outside the project"));
        }
        if !end.is_empty() && end.len() <= MAX_BYTES && self.secret(end) {
            marks.add(
                RiskKind::Credentials,
                format!("names {}, which usually holds secrets", quoted(&format!("…/{end}"))),
            );
        }
    }

    /// Adds the marks of a file name pattern: it may match a secret, or the parent directory.
    pub(super) fn mark_pattern(&self, written: &str, marks: &mut Marks) {
        if written.len() > MAX_BYTES {
            return;
        }
        let names: Vec<&str> = written.split('/').collect();
        if names.iter().any(|name| pattern::may_match_any(name, CREDENTIALS)) {
            let shown = quoted(written);
            marks.add(RiskKind::Credentials, format!("{shown} matches files that usually hold secrets"));
        }
        let up = |name: &str| if pattern::may_match_parent(name) { ".." } else { name }.to_owned();
        let climbed = names.iter().map(|name| up(name)).collect::<Vec<_>>().join("/");
        if climbed != written && self.is_outside(&climbed, &self.absolute(&climbed), Access::Unknown) {
            let shown = quoted(written);
            marks.add(RiskKind::OutsideProject, format!("{shown} matches the parent directory"));
        }
    }

    fn secret(&self, written: &str) -> bool {
        let path = self.absolute(written);
        let plain = |pattern: &&str| {
            path.file_name().is_some_and(|name| name_matches(pattern, &name.to_string_lossy()))
        };
        self.matches_any(CREDENTIALS, written, &path) && !NOT_CREDENTIALS.iter().any(plain)
    }

    fn is_outside(&self, written: &str, path: &Path, access: Access) -> bool {
        // Only a path that is absolute or goes up can leave the directory of the call.
        let leaves = written.starts_with(['/', '~']) || written.split('/').any(|part| part == "..");
        let exempt = |list: &[&str]| self.matches_any(list, written, path);
        leaves
            && !self.roots.is_empty()
            && !self.contains(path)
            && !exempt(STANDARD_DEVICES)
            && !written.starts_with("/dev/tcp/")
            && !written.starts_with("/dev/udp/")
            && !(access == Access::Run && exempt(PROGRAM_DIRS))
    }

    fn contains(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(lexical(root)))
    }

    /// The path without `.` and `..`. Without a known home directory, `~` stays as a first component.
    fn absolute(&self, written: &str) -> PathBuf {
        let home = |rest: &str| match self.home {
            Some(home) => lexical(&home.join(rest)),
            None => lexical(&Path::new("/~").join(rest)),
        };
        match written.strip_prefix('~') {
            Some("") => home(""),
            Some(rest) if rest.starts_with('/') => home(rest.trim_start_matches('/')),
            Some(_) => lexical(Path::new("/~other").join(written).as_path()),
            None => lexical(&self.cwd.join(written)),
        }
    }

    fn matches_any(&self, patterns: &[&str], written: &str, path: &Path) -> bool {
        // Only the written part counts for a relative path: a project below a directory named `.env` is not a secret.
        let names: Vec<&str> = match written.starts_with(['/', '~']) {
            true => components(path),
            false => components(Path::new(written)),
        };
        patterns.iter().any(|pattern| {
            let (anchored, names, pattern) = match pattern.strip_prefix("~/") {
                Some(rest) => match self.below_home(path) {
                    Some(below) => (true, below, rest),
                    None => return false,
                },
                None => (
                    pattern.starts_with('/'),
                    if pattern.starts_with('/') { components(path) } else { names.clone() },
                    *pattern,
                ),
            };
            let wanted: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
            let starts = if anchored { 0..1 } else { 0..names.len() };
            starts.into_iter().any(|start| {
                names.len() >= start + wanted.len()
                    && wanted.iter().zip(&names[start..]).all(|(wanted, name)| name_matches(wanted, name))
            })
        })
    }

    /// The components of a path below the home directory.
    fn below_home<'p>(&self, path: &'p Path) -> Option<Vec<&'p str>> {
        let home = self.home.unwrap_or(Path::new("/~"));
        path.strip_prefix(home).ok().map(components)
    }
}

fn components(path: &Path) -> Vec<&str> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect()
}
