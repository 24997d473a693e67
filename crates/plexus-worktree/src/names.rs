//! Names of files that git refuses in a tree, because a checkout would write outside the working tree or into a git
//! directory. A child can write trees with such names without git's help, and libgit2 reads them.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Why a name cannot be that of an entry in a tree; `None` if it can.
pub(crate) fn problem(name: &[u8]) -> Option<&'static str> {
    match name {
        b"" => Some("an empty name"),
        b"." | b".." => Some("a name that means another directory"),
        _ if name.contains(&b'/') => Some("a name with a slash"),
        _ if is_dot_git(name) => Some("a name that means a git directory"),
        _ => None,
    }
}

/// Why a path cannot be that of a file in a working tree; `None` if it can. It compares the bytes: [`Path::components`]
/// would hide empty parts and `.`.
pub(crate) fn path_problem(path: &Path) -> Option<&'static str> {
    path.as_os_str().as_bytes().split(|byte| *byte == b'/').find_map(problem)
}

/// Whether git or a file system takes this name for `.git`: in any case, on NTFS also with trailing spaces and periods, as
/// a stream, or as the short name `git~1`, and on HFS+ with characters that it ignores.
fn is_dot_git(name: &[u8]) -> bool {
    name.split(|byte| *byte == b'\\').any(is_ntfs_dot_git) || is_hfs_dot_git(name)
}

fn is_ntfs_dot_git(part: &[u8]) -> bool {
    let part = part.split(|byte| *byte == b':').next().unwrap_or_default();
    let kept = part.iter().rposition(|byte| !matches!(byte, b' ' | b'.')).map_or(0, |last| last + 1);
    let part = &part[..kept];
    part.eq_ignore_ascii_case(b".git") || part.eq_ignore_ascii_case(b"git~1")
}

fn is_hfs_dot_git(name: &[u8]) -> bool {
    // Like git, it ignores everything after an invalid sequence.
    let valid = name.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let seen = valid.chars().filter(|c| {
        !matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
    });
    seen.map(|c| c.to_ascii_lowercase()).eq(".git".chars())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_dot_git_is_found() {
        for name in [
            ".git",
            ".GIT",
            ".gIt",
            ".git.",
            ".git ",
            ".git . .",
            ".git::$INDEX_ALLOCATION",
            ".git:x",
            "git~1",
            "GIT~1",
            "git~1.",
            "a\\.git",
            ".git\\hooks",
            ".g\u{200c}it",
            "\u{feff}.git",
            ".git\u{200d}",
            ".GI\u{206f}T",
        ] {
            assert_eq!(problem(name.as_bytes()), Some("a name that means a git directory"), "{name:?}");
        }
        assert!(problem(b".git\xff").is_some());
        for name in
            [".gitignore", ".gitmodules", "git", ".gi", "git~2", ".git2", "a.git", "..git", "...", " ", "é"]
        {
            assert_eq!(problem(name.as_bytes()), None, "{name:?}");
        }
    }

    #[test]
    fn a_path_has_no_part_that_means_another_place() {
        for path in ["", "/a", "a/", "a//b", "a/./b", "a/../b", ".", "..", ".git/hooks/x", "a/.Git/x"] {
            assert!(path_problem(Path::new(path)).is_some(), "{path:?}");
        }
        assert_eq!(path_problem(Path::new("a/b.git/c")), None);
    }
}
