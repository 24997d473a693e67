//! Tests that could not run. A test whose tools are missing (such as a real Claude Code) appends its name to
//! the file in `PLEXUS_TEST_SKIPPED` and returns. This module prints the names, so that no skipped test goes
//! unnoticed. In CI, a skipped test is a failure.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::{fmt, fs, io, path::Path};

/// How a skipped test counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// On a developer's machine: it is listed.
    Tolerate,
    /// In CI: it fails the run.
    Refuse,
}

/// The error for skipped tests in CI.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0} test(s) were skipped, which is a failure because CI is set")]
pub struct SkippedInCi(usize);

/// The names of the skipped tests, without duplicates.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Skipped(BTreeSet<String>);

impl Rule {
    /// The rule for this value of `CI`.
    pub fn from_ci(value: Option<&OsStr>) -> Self {
        match value {
            Some(value) if !value.is_empty() && value != "0" && value != "false" => Self::Refuse,
            _ => Self::Tolerate,
        }
    }
}

impl Skipped {
    /// Reads the file that the tests wrote, with one name per line. A missing file means that no test was
    /// skipped.
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

    /// Whether the run can still succeed.
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
    fn skips_are_refused_only_if_ci_is_set_to_true() {
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
    fn a_missing_file_means_that_nothing_was_skipped() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Skipped::read(&dir.path().join("none")).unwrap(), Skipped::default());
    }
}
