//! Which permission rules of the user's settings the hub can apply unchanged to every session. A rule whose meaning
//! depends on a directory that the hub does not know is refused. An allow rule is never widened.

use std::path::Path;

use plexus_policy::{RuleEffect, RuleEntry};
use plexus_protocol::policy::Effect;

/// A rule that can be imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImportedRule {
    /// As written in the settings.
    pub(crate) text: String,
    pub(crate) effect: Effect,
    /// As the hub stores it, with an absolute path.
    pub(crate) stored: String,
}

/// Converts a rule, or says why it cannot be imported.
pub(super) fn import(text: &str, effect: Effect, home: Option<&Path>) -> Result<ImportedRule, String> {
    let entry = RuleEntry::parse(text, of(effect))
        .map_err(|error| format!("not a valid rule: at byte {}: expected {}", error.at, error.expected))?;
    if effect == Effect::Allow && entry.rule().tool() == "*" {
        return Err("it allows every tool; if you want that, use `plexus allow '*'`".to_owned());
    }
    let anchored = entry.anchored(Path::new("/"), home);
    // The user's deny rules apply to each session in its own directory, without an import.
    if effect != Effect::Deny && !entry.rule().is_anchored() {
        let path = text.split_once('(').map_or("", |(_, path)| path);
        if path.starts_with('/') {
            let why =
                "its path is relative to the directory of the settings; write `//` for an absolute path";
            return Err(why.to_owned());
        }
        if !path.starts_with('~') {
            let why = "its path is relative to the working directory, which differs between sessions; use \
                       `plexus allow --session` for one session";
            return Err(why.to_owned());
        }
        if !anchored.rule().is_anchored() {
            return Err("the home directory of the hub is unknown".to_owned());
        }
    }
    Ok(ImportedRule { text: text.to_owned(), effect, stored: anchored.rule().to_string() })
}

/// The text of a rule as the hub stores it.
pub(super) fn stored(text: &str, effect: Effect, home: Option<&Path>) -> Option<String> {
    let entry = RuleEntry::parse(text, of(effect)).ok()?;
    Some(entry.anchored(Path::new("/"), home).rule().to_string())
}

fn of(effect: Effect) -> RuleEffect {
    match effect {
        Effect::Allow => RuleEffect::Allow,
        Effect::Deny => RuleEffect::Deny,
        Effect::Ask => RuleEffect::Ask,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_means_the_same_in_every_session_is_imported_unchanged() {
        let home = Path::new("/nonexistent/home");
        for (text, stored) in [
            ("Bash(npm run test:*)", "Bash(npm run test:*)"),
            ("Read(//etc/hosts)", "Read(//etc/hosts)"),
            ("Read(~/notes/**)", "Read(//nonexistent/home/notes/**)"),
            ("WebFetch(domain:example.com)", "WebFetch(domain:example.com)"),
            ("mcp__github__get_issue", "mcp__github__get_issue"),
        ] {
            let rule = import(text, Effect::Allow, Some(home)).expect(text);
            assert_eq!((rule.text.as_str(), rule.stored.as_str()), (text, stored));
        }
    }

    #[test]
    fn a_rule_that_would_be_widened_is_refused_with_the_reason() {
        for (text, effect, why) in [
            ("Edit(src/**)", Effect::Allow, "working directory"),
            ("Read(.env)", Effect::Ask, "working directory"),
            ("Read(./a)", Effect::Allow, "working directory"),
            ("Edit(/docs/**)", Effect::Allow, "directory of the settings"),
            ("Read(~/x)", Effect::Allow, "home directory"),
            ("*", Effect::Allow, "every tool"),
            ("mcp__*", Effect::Allow, "not a valid rule"),
            ("Bash(", Effect::Ask, "not a valid rule"),
        ] {
            let refused = import(text, effect, None).expect_err(text);
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
