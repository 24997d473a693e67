//! Versions of Claude Code, and the differences between them that Plexus has to know.

use std::fmt;

/// The versions of Claude Code that Plexus is tested with: the oldest supported and the newest known version, and two between
/// them that differ (see the methods of [`Version`]).
pub const TESTED_VERSIONS: [&str; 4] = ["2.1.197", "2.1.263", "2.1.290", "2.1.325"];

/// The version of a Claude Code program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version([u32; 3]);

impl Version {
    /// The oldest supported version. Older ones are not tested, and 2.0.75 runs tools without asking the gate, because there
    /// `disableAllHooks` also disables the callback of Plexus.
    pub const OLDEST: Self = Self([2, 1, 197]);

    /// Parses a version number such as `2.1.197`.
    pub fn parse(number: &str) -> Option<Self> {
        let parts: Vec<u32> = number.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        parts.try_into().ok().map(Self)
    }

    /// Parses the output of `claude --version`: the last line with a version, because a launcher may print others. Another program
    /// has no version of Claude Code.
    pub fn printed(text: &str) -> Option<Self> {
        text.lines().rev().find_map(|line| Self::parse(line.trim().strip_suffix("(Claude Code)")?.trim()))
    }

    /// Rejects a version that is not supported any more.
    ///
    /// # Errors
    /// If it is older than [`Version::OLDEST`].
    pub fn check(self) -> Result<(), TooOld> {
        if self < Self::OLDEST { Err(TooOld(self)) } else { Ok(()) }
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

/// A version that is older than [`Version::OLDEST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooOld(Version);

impl TooOld {
    /// What the user can do.
    pub const FIX: &str = "run `claude update`, or set `claude` in plexus.toml to a newer version";
}

impl fmt::Display for TooOld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Claude Code {} is too old; {} or later is required", self.0, Version::OLDEST)
    }
}

impl std::error::Error for TooOld {}

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
        let of_launcher = "Need to install: x\n2.1.325 (Claude Code)\nnpm notice\n";
        assert_eq!(Version::printed(of_launcher), Version::parse("2.1.325"));
    }

    #[test]
    fn versions_before_the_oldest_are_too_old() {
        assert_eq!(Version::OLDEST.check(), Ok(()));
        let too_old = Version::parse("2.0.75").unwrap().check().unwrap_err();
        assert_eq!(too_old.to_string(), "Claude Code 2.0.75 is too old; 2.1.197 or later is required");
    }
}
