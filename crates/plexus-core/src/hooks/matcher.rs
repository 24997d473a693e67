//! Matchers of hooks, in Claude Code's syntax. The hub evaluates them itself: Claude Code silently skips a hook whose matcher is not a
//! valid regular expression (measured on four versions), and then nothing checks the call.

use regex::{Regex, RegexBuilder};

/// The maximum memory of a compiled regular expression.
const MAX_COMPILED_BYTES: usize = 1024 * 1024;

/// The tools, or types of sub-agents, that a hook runs for.
#[derive(Debug)]
pub(super) enum Matcher {
    All,
    Names(Vec<String>),
    Pattern(Regex),
}

impl Matcher {
    /// Reads a matcher: nothing or `*` matches everything; names are separated by `|` or `,`; other text is a regular expression that
    /// may match any part of the name.
    pub(super) fn parse(text: Option<&str>) -> Result<Self, regex::Error> {
        let text = text.unwrap_or_default().trim();
        if text.is_empty() || text == "*" {
            return Ok(Self::All);
        }
        let is_list = |c: char| c.is_ascii_alphanumeric() || "_- ,|".contains(c);
        if text.chars().all(is_list) {
            let names = text.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty());
            return Ok(Self::Names(names.map(str::to_owned).collect()));
        }
        RegexBuilder::new(text).size_limit(MAX_COMPILED_BYTES).build().map(Self::Pattern)
    }

    pub(super) fn matches(&self, subject: &str) -> bool {
        match self {
            Self::All => true,
            Self::Names(names) => names.iter().any(|name| name == subject),
            Self::Pattern(pattern) => pattern.is_match(subject),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matcher_matches_as_in_claude_code() {
        for (matcher, subject, expected) in [
            (None, "Bash", true),
            (Some(""), "Bash", true),
            (Some("*"), "Bash", true),
            (Some("Bash"), "Bash", true),
            (Some("Bash"), "BashOutput", false),
            (Some("bash"), "Bash", false),
            (Some("Edit|Write"), "Write", true),
            (Some("Edit, Write"), "Write", true),
            (Some("Edit|Write"), "NotebookEdit", false),
            (Some("^Ba.*"), "Bash", true),
            (Some("Notebook.*"), "NotebookEdit", true),
            (Some("mcp__memory"), "mcp__memory__add", false),
            (Some("mcp__memory__.*"), "mcp__memory__add", true),
            (Some("general-purpose"), "general-purpose", true),
        ] {
            let found = Matcher::parse(matcher).expect("a valid matcher").matches(subject);
            assert_eq!(found, expected, "{matcher:?} {subject}");
        }
    }

    #[test]
    fn an_invalid_regular_expression_is_an_error() {
        assert!(Matcher::parse(Some("Ba(sh")).is_err());
        assert!(Matcher::parse(Some("(?!Bash).*")).is_err(), "look-ahead is not supported");
        assert!(Matcher::parse(Some("((a{1000}){1000}){1000}")).is_err(), "too large");
    }
}
