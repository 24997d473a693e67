//! What a person types to an approval. It decides nothing and calls nobody.

/// What a person says to an approval.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// Allow it.
    Yes,
    /// Deny it, perhaps with a reason.
    No(Option<String>),
    /// Change the input first.
    Edit,
    /// Allow it, and make a rule.
    Always,
    /// Leave it to others.
    Skip,
    /// Show the next page.
    More,
    /// None of these.
    Unclear,
}

/// Reads what was typed.
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
    fn only_what_is_clear_counts() {
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
