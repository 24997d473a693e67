//! Tests that could not run. A test that lacks something (a real Claude Code, for one) appends its name to the
//! file that `PLEXUS_TEST_SKIPPED` names and returns; here the names are shown, so that no skip goes unseen,
//! and in CI they are a failure.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::{fmt, fs, io, path::Path};

/// What a skipped test means where we run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// On somebody's own machine: it is said, no more.
    Tolerate,
    /// In CI: the run has not shown what it should.
    Refuse,
}

/// Tests were skipped where none may be.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0} test(s) skipped, and CI is set: a skip is a failure there")]
pub struct SkippedInCi(usize);

/// The names of the tests that were skipped, each once.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Skipped(BTreeSet<String>);

impl Rule {
    /// The rule that follows from the value of `CI`.
    pub fn from_ci(value: Option<&OsStr>) -> Self {
        match value {
            Some(value) if !value.is_empty() && value != "0" && value != "false" => Self::Refuse,
            _ => Self::Tolerate,
        }
    }
}

impl Skipped {
    /// Reads the file the tests wrote to: one name a line. No file means that none wrote.
    pub fn read(path: &Path) -> io::Result<Self> {
        match fs::read_to_string(path) {
            Ok(text) => Ok(Self::parse(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    fn parse(text: &str) -> Self {
        Self(text.lines().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    /// Whether the run may still count as good.
    pub fn judge(&self, rule: Rule) -> Result<(), SkippedInCi> {
        if self.0.is_empty() || rule == Rule::Tolerate { Ok(()) } else { Err(SkippedInCi(self.0.len())) }
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|name| writeln!(f, "skipped: {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_skipped_test_is_named_once() {
        let skipped = Skipped::parse("b::second\na::first\n\nb::second\n");
        assert_eq!(skipped.to_string(), "skipped: a::first\nskipped: b::second\n");
    }

    #[test]
    fn a_skip_is_a_failure_in_ci_only() {
        let skipped = Skipped::parse("one\ntwo\n");
        assert_eq!(skipped.judge(Rule::Tolerate), Ok(()));
        assert_eq!(skipped.judge(Rule::Refuse), Err(SkippedInCi(2)));
        assert_eq!(Skipped::default().judge(Rule::Refuse), Ok(()));
    }

    #[test]
    fn ci_is_set_when_it_says_so() {
        for (value, rule) in [
            (None, Rule::Tolerate),
            (Some(""), Rule::Tolerate),
            (Some("false"), Rule::Tolerate),
            (Some("0"), Rule::Tolerate),
            (Some("true"), Rule::Refuse),
            (Some("1"), Rule::Refuse),
        ] {
            assert_eq!(Rule::from_ci(value.map(OsStr::new)), rule, "CI={value:?}");
        }
    }

    #[test]
    fn a_file_nobody_wrote_means_that_nothing_was_skipped() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Skipped::read(&dir.path().join("none")).unwrap(), Skipped::default());
    }
}
