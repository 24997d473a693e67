//! Finds Git repositories among the operands of a command. A file written below `.git` (a hook, a setting) can run a
//! program at git's next command. The settings of another local repository can do the same if git is directed to it.

use super::script::{Piece, Word};

/// Which operands of a git command name a remote repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RemoteAt {
    /// The first one: `git push REPOSITORY REFSPEC…`.
    First,
    /// All of them: `git remote show REPOSITORY…`.
    All,
    /// All but the first: `git remote add NAME URL`.
    Later,
}

impl RemoteAt {
    /// Whether the operand with this index names a remote repository.
    pub(super) fn holds(self, nth: usize) -> bool {
        match self {
            Self::First => nth == 0,
            Self::All => true,
            Self::Later => nth > 0,
        }
    }
}

/// Whether a text names a repository that git reaches over the network, or a configured remote. A path, `file://` and
/// `transport::address` make git read the settings of another repository or run a program.
pub(super) fn is_remote(text: &str) -> bool {
    let plain = |text: &str, signs: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || signs.contains(c))
    };
    if let Some((scheme, rest)) = text.split_once("://") {
        let known = matches!(scheme, "https" | "http" | "ssh" | "git" | "git+ssh" | "ssh+git");
        let host = rest.split('/').next().unwrap_or_default();
        return known && plain(host, "._-@:%+[]");
    }
    match text.split_once(':') {
        // `user@host:path`. A single letter is a drive on some systems.
        Some((host, path)) => host.len() > 1 && plain(host, "._-@") && !path.starts_with(':'),
        None => plain(text, "_-"),
    }
}

/// Whether a word names a repository's own folder or a file in it, as far as can be known.
pub(super) fn leads_into(word: &Word) -> bool {
    // Unknown text becomes a character that no name contains.
    let text: String = word
        .pieces()
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => text.as_str(),
            Piece::Home => "~",
            Piece::Any => "\u{1}",
        })
        .collect();
    let is_address = text.contains("://") || text.contains('@');
    let is_braced = text.contains('\u{1}') && text.contains('}');
    is_braced && may_compose(&text)
        || text
            .split(['/', '\\', '{', ',', '}', '=', ':'])
            .any(|name| names_repository(name) || !is_address && is_bare_repository(name))
}

/// Whether brace expansion may produce `.git`.
fn may_compose(text: &str) -> bool {
    let small = text.to_ascii_lowercase();
    small.contains("..") || ".git".chars().all(|c| small.contains(c))
}

/// `.git` as file systems accept it: in any case, with characters that HFS+ ignores, with suffixes that NTFS drops, or
/// by its short name.
fn names_repository(name: &str) -> bool {
    let seen: String =
        name.chars().filter(|c| c.is_ascii() || c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let seen = seen.trim_end_matches(['.', ' ']);
    let (start, pattern) = seen.split_once('\u{1}').unwrap_or((seen, ""));
    let may_match = start.len() < seen.len() && start.starts_with('.') && ".git".starts_with(start);
    seen == ".git" || seen.starts_with("git~") || may_match || start.is_empty() && pattern == "git"
}

/// `project.git`, the usual name of a bare repository.
fn is_bare_repository(name: &str) -> bool {
    name.len() > 4 && name.to_ascii_lowercase().ends_with(".git")
}

#[cfg(test)]
mod tests {
    use super::super::script::Expansion;
    use super::*;

    #[test]
    fn a_remote_is_a_plain_name_or_an_address_on_the_network() {
        for text in [
            "origin",
            "my-fork_2",
            "https://github.com/a/b.git",
            "ssh://git@host:22/a",
            "git@github.com:a/b.git",
            "host:a",
        ] {
            assert!(is_remote(text), "{text}");
        }
        for text in [
            "./ev.git",
            "../x",
            "/tmp/x",
            "ev.git",
            "a/b",
            ".",
            "..",
            "~/x",
            "file:///tmp/x",
            "ext::sh -c id",
            "ext::sh",
            "fd::17",
            "FILE:///x",
            "c:/x",
            "-x",
            "",
            "ssh://-oProxyCommand=x/y",
            "https:///x",
            "-o:x",
        ] {
            assert!(!is_remote(text), "{text}");
        }
    }

    #[test]
    fn every_spelling_of_the_folder_is_found() {
        for text in [
            ".git",
            ".git/config",
            "./.git",
            "sub/../.git/hooks/x",
            "/a/.git/x",
            ".GIT/config",
            ".Git",
            "git~1/x",
            ".git./x",
            ".git /x",
            ".g\u{200c}it/config",
            "x.git/config",
            "../ev.git",
            "a\\.git\\x",
            "of=.git/config",
            ".git::$INDEX_ALLOCATION/x",
        ] {
            assert!(leads_into(&Word::text(text)), "{text}");
        }
        for text in [
            "src",
            ".github/workflows/x",
            ".gitignore",
            "a/.gitattributes",
            "git",
            "https://h/a/b.git",
            "git@h:a/b.git",
        ] {
            assert!(!leads_into(&Word::text(text)), "{text}");
        }
    }

    #[test]
    fn a_pattern_that_may_match_the_folder_is_found() {
        let word = |parts: &[&str]| {
            let mut word = Word::default();
            for (nth, part) in parts.iter().enumerate() {
                if nth > 0 {
                    word.push(Piece::Any, Expansion::Each);
                }
                word.push_str(part);
            }
            word
        };
        for parts in [
            &[".g", "/config"][..],
            &[".", ""],
            &["./", ".git,y}/config"],
            &["./", ".g,x}it/config"],
            &[".gi", "t]/config"],
            &["./", "git/config"],
        ] {
            assert!(leads_into(&word(parts)), "{parts:?}");
        }
        for parts in [&["src/", ".rs"][..], &["a", ",.bak}"], &["src/", ""], &[".env", ""]] {
            assert!(!leads_into(&word(parts)), "{parts:?}");
        }
    }
}
