//! Parses what a user types at an approval.

/// A typed answer to an approval.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TypedAnswer {
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
pub(crate) fn read(line: &str) -> TypedAnswer {
    let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
    let rest = rest.trim();
    match (word.to_ascii_lowercase().as_str(), rest.is_empty()) {
        ("y" | "yes", true) => TypedAnswer::Yes,
        ("n" | "no", true) => TypedAnswer::No(None),
        ("n" | "no", false) => TypedAnswer::No(Some(rest.to_owned())),
        ("e" | "edit", true) => TypedAnswer::Edit,
        ("a" | "always", true) => TypedAnswer::Always,
        ("s" | "skip", true) => TypedAnswer::Skip,
        ("", true) => TypedAnswer::More,
        _ => TypedAnswer::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_answers_are_accepted() {
        assert_eq!(read(" Y "), TypedAnswer::Yes);
        assert_eq!(read("n"), TypedAnswer::No(None));
        assert_eq!(read("no  not here "), TypedAnswer::No(Some("not here".to_owned())));
        assert_eq!(
            [read("e"), read("always"), read("s"), read("")],
            [TypedAnswer::Edit, TypedAnswer::Always, TypedAnswer::Skip, TypedAnswer::More]
        );
        for unclear in ["yn", "y please", "1", "allow", "\u{1b}y", "\u{1b}]11;rgb:0\u{7}y"] {
            assert_eq!(read(unclear), TypedAnswer::Unclear, "{unclear}");
        }
    }
}
