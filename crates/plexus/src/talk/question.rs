//! Parses what a user types at an approval.

/// A typed answer to an approval.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// Allow it.
    Yes,
    /// Deny it, optionally with a reason.
    No(Option<String>),
    /// Edit the input first.
    Edit,
    /// Allow it and add a rule.
    Always,
    /// Leave it open.
    Skip,
    /// Show the next page.
    More,
    /// None of these.
    Unclear,
}

/// Parses a line.
pub(crate) fn read(line: &str) -> Said {
    let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
    let rest = rest.trim();
    match (word.to_ascii_lowercase().as_str(), rest.is_empty()) {
        ("y" | "yes", true) => Said::Yes,
        ("n" | "no", true) => Said::No(None),
        ("n" | "no", false) => Said::No(Some(rest.to_owned())),
        ("e" | "edit", true) => Said::Edit,
        ("a" | "always", true) => Said::Always,
        ("s" | "skip", true) => Said::Skip,
        ("", true) => Said::More,
        _ => Said::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_answers_count() {
        assert_eq!(read(" Y "), Said::Yes);
        assert_eq!(read("n"), Said::No(None));
        assert_eq!(read("no  not here "), Said::No(Some("not here".to_owned())));
        assert_eq!(
            [read("e"), read("always"), read("s"), read("")],
            [Said::Edit, Said::Always, Said::Skip, Said::More]
        );
        for unclear in ["yn", "y please", "1", "allow", "\u{1b}y", "\u{1b}]11;rgb:0\u{7}y"] {
            assert_eq!(read(unclear), Said::Unclear, "{unclear}");
        }
    }
}
