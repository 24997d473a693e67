//! Finds the paths that lead to a directory: its own, the paths where the same part of the file system is mounted again
//! (as in containers that expose host files), and the ancestors of the directory. It reads `/proc/self/mountinfo` and
//! changes nothing.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FsWord, statfs};
use serde::{Deserialize, Serialize};

/// The type that `statfs` reports for a file system of terminals.
const TERMINALS: FsWord = 0x1cd1;

/// One mount: its file system, the mounted part, and the mount point.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mounted {
    device: String,
    root: PathBuf,
    at: PathBuf,
}

/// All paths that lead to `dir` or to a part of it without passing through it. `dir` itself comes first.
pub(super) fn leading_to(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let dir = dir.canonicalize()?;
    let mounts = parse(&std::fs::read("/proc/self/mountinfo")?);
    let mut paths = vec![dir.clone()];
    // Candidates are verified, because another file system may be mounted over them.
    for (candidate, part) in candidates(&mounts, &dir) {
        if !paths.contains(&candidate) && candidate.is_dir() && same(&candidate, &part) {
            paths.push(candidate);
        }
    }
    Ok(paths)
}

/// The directories that contain terminals.
pub(super) fn terminals() -> io::Result<Vec<PathBuf>> {
    let mounts = parse(&std::fs::read("/proc/self/mountinfo")?);
    let mut found = Vec::new();
    for mount in mounts {
        // Another file system may be mounted over it, or it may be a single terminal.
        let shown = statfs(&mount.at).is_ok_and(|system| system.f_type == TERMINALS) && mount.at.is_dir();
        if shown && !found.contains(&mount.at) {
            found.push(mount.at);
        }
    }
    Ok(found)
}

/// The ancestors of `dir`, outermost first and without the root. All of them count as movable: a child could make a
/// folder that its user owns read-only now, and writable again when the next child runs.
pub(super) fn above(dir: &Path) -> Vec<PathBuf> {
    let around = dir.ancestors().skip(1).filter(|folder| folder.parent().is_some());
    let mut found: Vec<PathBuf> = around.map(Path::to_owned).collect();
    found.reverse();
    found
}

/// Identifies a file or directory independently of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inode {
    device: u64,
    number: u64,
}

impl Inode {
    /// The inode that `path` leads to.
    pub fn of(path: &Path) -> io::Result<Self> {
        let found = path.metadata()?;
        Ok(Self { device: found.dev(), number: found.ino() })
    }
}

fn same(one: &Path, other: &Path) -> bool {
    matches!((Inode::of(one), Inode::of(other)), (Ok(one), Ok(other)) if one == other)
}

/// Where `dir` or a part of it may be visible again: the path there, and the path in `dir`.
fn candidates(mounts: &[Mounted], dir: &Path) -> Vec<(PathBuf, PathBuf)> {
    let mut found = Vec::new();
    // The mount that contains `dir`. Of several mounts at one mount point, the last one is on top.
    let around = mounts.iter().filter(|mount| dir.starts_with(&mount.at));
    let holding = around.max_by_key(|mount| mount.at.components().count());
    let below = mounts.iter().filter(|mount| mount.at.starts_with(dir) && mount.at != dir);
    for part in holding.into_iter().chain(below) {
        // The hidden part, by its name in the file system and by its path here.
        let (hidden, here) = match dir.strip_prefix(&part.at) {
            Ok(rest) => (part.root.join(rest), dir.to_owned()),
            Err(_) => (part.root.clone(), part.at.clone()),
        };
        for other in mounts.iter().filter(|mount| mount.device == part.device && !mount.at.starts_with(dir)) {
            if let Ok(rest) = hidden.strip_prefix(&other.root) {
                found.push((other.at.join(rest), here.clone()));
            } else if let Ok(rest) = other.root.strip_prefix(&hidden) {
                found.push((other.at.clone(), here.join(rest)));
            }
        }
    }
    found.retain(|(there, _)| !there.starts_with(dir));
    found
}

/// Parses lines such as `36 35 98:0 /part /place rw - ext4 /dev/sda rw`. Skips lines that it cannot parse.
fn parse(text: &[u8]) -> Vec<Mounted> {
    let line = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b' ').skip(2);
        Some(Mounted {
            device: String::from_utf8_lossy(fields.next()?).into_owned(),
            root: unescaped(fields.next()?),
            at: unescaped(fields.next()?),
        })
    };
    text.split(|byte| *byte == b'\n').filter_map(line).collect()
}

/// Blanks and similar characters are escaped as `\040`.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let code = (byte == b'\\').then(|| after.get(..3)).flatten();
        let code = code.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        path.push(code.unwrap_or(byte));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    OsString::from_vec(path).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(mounts: &str, dir: &str) -> Vec<String> {
        let found = candidates(&parse(mounts.as_bytes()), Path::new(dir));
        let mut found: Vec<String> =
            found.iter().map(|(there, here)| format!("{} = {}", there.display(), here.display())).collect();
        found.sort();
        found.dedup();
        found
    }

    #[test]
    fn a_second_mount_of_the_directory_is_found() {
        let mounts = "1 0 8:1 / / rw - ext4 a rw\n2 1 8:2 / /home rw - ext4 b rw\n\
                      3 1 8:1 / /run/host rw - ext4 a rw\n4 3 8:2 / /run/host/home rw - ext4 b rw\n";
        assert_eq!(found(mounts, "/home/u/data"), ["/run/host/home/u/data = /home/u/data"]);
        assert_eq!(found(mounts, "/srv"), ["/run/host/srv = /srv"]);
    }

    #[test]
    fn mounts_of_subdirectories_and_inside_the_directory_are_found() {
        let mounts = "1 0 8:1 / / rw - ext4 a rw\n2 1 8:1 /data/sessions /peek\\040here rw - ext4 a rw\n\
                      3 1 8:3 /deep /data/disk rw - ext4 c rw\n4 1 8:3 / /disk rw - ext4 c rw\n";
        assert_eq!(found(mounts, "/data"), ["/disk/deep = /data/disk", "/peek here = /data/sessions"]);
    }

    #[test]
    fn unrelated_mounts_are_ignored() {
        let mounts = "1 0 8:1 / / rw - ext4 a rw\n2 1 0:5 / /proc rw - proc p rw\n\
                      3 1 8:1 /database /mnt rw - ext4 a rw\nrubbish\n\n";
        assert_eq!(found(mounts, "/data"), Vec::<String>::new());
    }

    #[test]
    fn all_parent_directories_except_the_root_are_listed() {
        let around = above(Path::new("/home/u/.local/data"));
        assert_eq!(around, ["/home", "/home/u", "/home/u/.local"].map(PathBuf::from));
        assert!(above(Path::new("/data")).is_empty(), "the root stays where it is");
    }

    #[test]
    fn the_paths_to_a_directory_start_with_its_real_path() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        std::os::unix::fs::symlink(&real, real.join("link")).unwrap();
        assert_eq!(leading_to(&real.join("link")).unwrap()[0], real);
        assert!(leading_to(Path::new("/no/such/directory")).is_err());
    }
}
