//! Versions of Claude Code, and the differences between them that Plexus has to know.

use std::fmt;

/// The versions of Claude Code that Plexus is tested with: the oldest supported and the newest known version, and two between
/// them that differ (see the methods of [`Version`]).
pub const TESTED_VERSIONS: [&str; 4] = ["2.1.197", "2.1.263", "2.1.290", "2.1.325"];

/// The version of a Claude Code program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version([u32; 3]);

impl Version {
    /// The oldest supported version: older ones run tools without asking Plexus.
    pub const OLDEST: Self = Self([2, 1, 197]);

    /// Parses a version number such as `2.1.197`.
    pub fn parse(number: &str) -> Option<Self> {
        let parts: Vec<u32> = number.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        parts.try_into().ok().map(Self)
    }

    /// Parses the output of `claude --version`. Another program has no version of Claude Code.
    pub fn printed(text: &str) -> Option<Self> {
        let number = text.trim().strip_suffix("(Claude Code)")?;
        Self::parse(number.trim())
    }

    /// Whether this version omits its own instructions, such as those of plan mode, from a prompt with `client_composed`.
    pub(crate) fn drops_instructions_of_composed_prompts(self) -> bool {
        (Self([2, 1, 248])..=Self([2, 1, 280])).contains(&self)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert!(Version::parse("2.1.98") < Version::parse("2.1.197"));
        assert!(Version::parse("2.0.75").is_some_and(|version| version < Version::OLDEST));
        assert_eq!([Version::parse("2.1"), Version::parse("two"), Version::parse("2.1.x")], [None; 3]);
    }

    #[test]
    fn only_claude_code_has_a_version() {
        assert_eq!(Version::printed("2.1.325 (Claude Code)\n"), Version::parse("2.1.325"));
        for other in ["0.0.0 (scripted)", "2.1.325", "git version 2.1.325", ""] {
            assert_eq!(Version::printed(other), None, "{other}");
        }
        assert_eq!(Version::OLDEST.to_string(), "2.1.197");
    }
}
