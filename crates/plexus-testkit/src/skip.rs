//! Skipped tests: a test that cannot run because something is missing reports its name, so that CI can count it as a failure.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Reports that a test is skipped because something is missing: in the file `$PLEXUS_TEST_SKIPPED` and in the output. The test must return.
pub fn skip(test_name: &str, missing: &str) {
    let report = std::env::var_os("PLEXUS_TEST_SKIPPED").map(PathBuf::from);
    note(report.as_deref(), test_name, missing);
}

#[expect(clippy::print_stdout, reason = "a skipped test says so where its reader looks")]
fn note(report: Option<&Path>, test_name: &str, missing: &str) {
    println!("skipped: {test_name} (no {missing}; run cargo xtask test)");
    let Some(path) = report else { return };
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(format!("{test_name}\n").as_bytes()));
    if let Err(error) = written {
        println!("cannot note the skipped test in {}: {error}", path.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_skipped_test_is_reported_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let report = dir.path().join("skipped");
        note(Some(&report), "first", "claude 2.1.197");
        note(Some(&report), "second", "claude 2.1.197");
        assert_eq!(std::fs::read_to_string(report).unwrap(), "first\nsecond\n");
    }
}
