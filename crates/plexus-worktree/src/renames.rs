//! Finds files that a session moved: a new file with the content of a deleted file, or with most of its lines. Bounded in
//! files, bytes and comparisons. It only decides how a diff presents the changes: the digest of a review covers both paths.
//!
//! libgit2's own search works on trees in an object database and reads the configuration of the repository; this one works
//! on contents alone.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use git2::Oid;

use crate::Result;
use crate::comparison::Difference;
use crate::current::{Current, GITLINK, LINK};
use crate::work::Work;

/// The maximum number of deleted files, and of new files, that are compared by lines. Git's default is 1000.
const MAX_FILES: usize = 200;
/// The maximum size of such a file; and of all deleted ones together, and of all new ones.
const MAX_FILE_BYTES: usize = 256 * 1024;
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// The maximum number of lines to compare, over all pairs of files.
const MAX_LINES: usize = 20_000_000;
/// A moved file shares at least this part of its bytes with the old one, in percent. Git has the same default.
const MIN_SIMILARITY: usize = 50;

/// The origin of a moved file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The path of the deleted file.
    pub(crate) path: PathBuf,
    /// Its content in the base.
    pub(crate) old: Oid,
}

/// The moved files of a worktree, by their new paths. After `until`, the files that remain count as new.
pub(crate) fn find(work: &Work, until: Instant) -> Result<BTreeMap<PathBuf, Origin>> {
    let mut gone = Gone::of(work)?;
    let mut moved = BTreeMap::new();
    let (mut rest, mut bytes) = (Vec::new(), 0);
    for Difference { path, .. } in
        work.differences.iter().filter(|difference| difference.exists && difference.old.is_none())
    {
        if gone.by_content.is_empty() || Instant::now() > until {
            return Ok(moved);
        }
        if !gone.has_similar_size(work.size(path)) {
            continue;
        }
        // An unreadable file counts as new; a later step reports that it cannot be read.
        let Ok(now @ Current::File { mode, .. }) = work.read_for_diff(path) else { continue };
        let id = now.entry()?.map(|entry| entry.id);
        if let Some(origin) = id.and_then(|id| gone.take(id, path)) {
            moved.insert(path.clone(), origin);
        } else if let Current::File { content, .. } = now
            && ![LINK, GITLINK].contains(&mode)
            && rest.len() < MAX_FILES
            && bytes + content.len() <= MAX_BYTES
        {
            bytes += content.len();
            rest.extend(Lines::of(&content).map(|lines| (path.clone(), lines)));
        }
    }
    let origins = if rest.is_empty() { Vec::new() } else { gone.lines(work, until)? };
    moved.extend(similar(&rest, &origins, until));
    Ok(moved)
}

/// The deleted files that no new file was found to be yet.
struct Gone {
    by_content: BTreeMap<Oid, Vec<Origin>>,
    sizes: BTreeSet<u64>,
}

impl Gone {
    fn of(work: &Work) -> Result<Self> {
        let mut gone = Self { by_content: BTreeMap::new(), sizes: BTreeSet::new() };
        for difference in work.differences.iter().filter(|difference| !difference.exists) {
            let Some(old) = difference.old else { continue };
            let (size, _) = work.comparison.repo.odb()?.read_header(old)?;
            // Empty files are alike by chance.
            if size > 0 {
                gone.sizes.insert(size as u64);
                let origin = Origin { path: difference.path.clone(), old };
                gone.by_content.entry(old).or_default().push(origin);
            }
        }
        Ok(gone)
    }

    /// Whether a deleted file has a size that a moved file of this size can have had.
    fn has_similar_size(&self, size: u64) -> bool {
        let least = size.saturating_mul(MIN_SIMILARITY as u64) / 100;
        let most = size.saturating_mul(100) / MIN_SIMILARITY as u64;
        self.sizes.range(least..=most).next().is_some()
    }

    /// Takes a file with exactly this content, if possible one with the same name.
    fn take(&mut self, content: Oid, path: &Path) -> Option<Origin> {
        let origins = self.by_content.get_mut(&content)?;
        let at = origins.iter().position(|origin| origin.path.file_name() == path.file_name());
        let origin = origins.remove(at.unwrap_or(0));
        if origins.is_empty() {
            self.by_content.remove(&content);
        }
        Some(origin)
    }

    /// The files with their lines, by path.
    fn lines(self, work: &Work, until: Instant) -> Result<Vec<(Origin, Lines)>> {
        let mut origins: Vec<Origin> = self.by_content.into_values().flatten().collect();
        origins.sort_by(|a, b| a.path.cmp(&b.path));
        let (mut found, mut bytes) = (Vec::new(), 0);
        for origin in origins.into_iter().take(MAX_FILES) {
            let (size, _) = work.comparison.repo.odb()?.read_header(origin.old)?;
            if size > MAX_FILE_BYTES || bytes + size > MAX_BYTES || Instant::now() > until {
                continue;
            }
            bytes += size;
            let blob = work.comparison.repo.find_blob(origin.old)?;
            found.extend(Lines::of(blob.content()).map(|lines| (origin, lines)));
        }
        Ok(found)
    }
}

/// Pairs new files with deleted ones, the most similar pair first; each file is in at most one pair.
fn similar(new: &[(PathBuf, Lines)], gone: &[(Origin, Lines)], until: Instant) -> Vec<(PathBuf, Origin)> {
    let mut pairs = Vec::new();
    let mut lines = 0;
    'all: for (i, (path, now)) in new.iter().enumerate() {
        for (j, (origin, old)) in gone.iter().enumerate() {
            if !now.can_be_similar(old) {
                continue;
            }
            lines += now.by_hash.len() + old.by_hash.len();
            if lines > MAX_LINES || Instant::now() > until {
                break 'all;
            }
            let similarity = now.similarity(old);
            if similarity >= MIN_SIMILARITY {
                // Of equally similar files, one with the same name is preferred, then the first.
                let is_same_name = path.file_name() == origin.path.file_name();
                pairs.push((std::cmp::Reverse((similarity, is_same_name)), i, j));
            }
        }
    }
    pairs.sort();
    let (mut used_new, mut used_gone) = (BTreeSet::new(), BTreeSet::new());
    let mut found = Vec::new();
    for (_, i, j) in pairs {
        if !used_new.contains(&i) && !used_gone.contains(&j) {
            used_new.insert(i);
            used_gone.insert(j);
            found.push((new[i].0.clone(), gone[j].0.clone()));
        }
    }
    found
}

/// The lines of a text: the number of bytes in lines with each hash.
struct Lines {
    by_hash: BTreeMap<u64, usize>,
    bytes: usize,
}

impl Lines {
    /// `None` for a file that is too large, empty or binary.
    fn of(content: &[u8]) -> Option<Self> {
        if content.len() > MAX_FILE_BYTES || content.is_empty() || content.contains(&0) {
            return None;
        }
        let mut by_hash = BTreeMap::new();
        for line in content.split_inclusive(|&byte| byte == b'\n') {
            let mut hasher = DefaultHasher::new();
            hasher.write(line);
            *by_hash.entry(hasher.finish()).or_insert(0) += line.len();
        }
        Some(Self { by_hash, bytes: content.len() })
    }

    /// Whether the sizes allow the required similarity.
    fn can_be_similar(&self, other: &Self) -> bool {
        self.bytes.min(other.bytes) * 100 >= self.bytes.max(other.bytes) * MIN_SIMILARITY
    }

    /// The bytes in lines that both have, in percent of the larger text.
    fn similarity(&self, other: &Self) -> usize {
        let shared: usize = self
            .by_hash
            .iter()
            .map(|(hash, bytes)| other.by_hash.get(hash).map_or(0, |there| (*bytes).min(*there)))
            .sum();
        shared * 100 / self.bytes.max(other.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    fn new(path: &str, content: &str) -> (PathBuf, Lines) {
        (path.into(), Lines::of(content.as_bytes()).unwrap())
    }

    fn gone(path: &str, content: &str) -> (Origin, Lines) {
        (Origin { path: path.into(), old: Oid::ZERO_SHA1 }, Lines::of(content.as_bytes()).unwrap())
    }

    fn found(new: &[(PathBuf, Lines)], gone: &[(Origin, Lines)], until: Instant) -> Vec<(String, String)> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        similar(new, gone, until).iter().map(|(path, origin)| (text(path), text(&origin.path))).collect()
    }

    #[test]
    fn each_file_is_paired_with_the_most_similar_one() {
        let text = |lines: std::ops::Range<u32>| lines.map(|n| format!("line {n}\n")).collect::<String>();
        let gone = [gone("a", &text(0..10)), gone("b", &text(0..20)), gone("c", "quite different\n")];
        let new = [new("x", &text(0..19)), new("y", &text(1..11)), new("z", &text(50..60))];
        assert_eq!(found(&new, &gone, later()), [("x".into(), "b".into()), ("y".into(), "a".into())]);
        assert_eq!(found(&new, &gone, Instant::now()), [], "no time is left");
    }

    #[test]
    fn of_equal_files_one_with_the_same_name_is_the_origin() {
        let same = "one\ntwo\n";
        let gone = [gone("a/first", same), gone("a/second", same)];
        assert_eq!(
            found(&[new("b/second", same), new("b/other", same)], &gone, later()),
            [("b/second".into(), "a/second".into()), ("b/other".into(), "a/first".into())]
        );
    }

    #[test]
    fn repeated_lines_count_as_often_as_both_have_them() {
        let [one, many] =
            ["x\n".repeat(10), "x\n".repeat(19)].map(|text| Lines::of(text.as_bytes()).unwrap());
        assert_eq!(one.similarity(&many), 52);
        assert!(one.can_be_similar(&many) && !one.can_be_similar(&Lines::of(&[b'x'; 41]).unwrap()));
        assert!(Lines::of(b"a\0").is_none() && Lines::of(b"").is_none());
    }
}
