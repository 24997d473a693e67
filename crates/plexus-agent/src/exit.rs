//! How a run ended: `exit.json`, which the keeper writes last, and the last lines of stderr. A run whose keeper was
//! killed leaves no `exit.json`; the hub decides how to report that.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::run_dir::{RunDir, replace};

/// How much of the end of `stderr.log` is searched for its last lines.
const TAIL_BYTES: u64 = 64 * 1024;

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The exit code, if the child exited by itself.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// Why the child was never started, or was abandoned.
    pub error: Option<String>,
    /// The time, in Unix seconds.
    pub at: u64,
}

impl Exit {
    pub(crate) fn now(code: Option<i32>, signal: Option<i32>, error: Option<String>) -> Self {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self { code, signal, error, at }
    }

    pub(crate) fn write(&self, dir: &RunDir) -> io::Result<()> {
        replace(&dir.exit(), &serde_json::to_vec(self)?)
    }
}

/// How the run ended; `None` while it is running, or if its keeper was killed before it could report.
pub fn read_exit(dir: &RunDir) -> Option<Exit> {
    serde_json::from_slice(&std::fs::read(dir.exit()).ok()?).ok()
}

/// The last lines of the child's and the keeper's stderr, oldest first, without blank lines.
pub fn stderr_tail(dir: &RunDir, max_lines: usize) -> Vec<String> {
    let Ok(tail) = read_tail(dir) else { return Vec::new() };
    let text = String::from_utf8_lossy(&tail);
    let mut lines: Vec<String> = text
        .lines()
        .rev()
        .filter(|line| !line.trim().is_empty())
        .take(max_lines)
        .map(str::to_owned)
        .collect();
    lines.reverse();
    lines
}

fn read_tail(dir: &RunDir) -> io::Result<Vec<u8>> {
    let mut file = File::open(dir.stderr())?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    Ok(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_stderr_are_shown_in_order() {
        let home = tempfile::tempdir().unwrap();
        let dir = RunDir::new(home.path().to_path_buf());
        assert!(stderr_tail(&dir, 3).is_empty(), "there is no file yet");
        std::fs::write(dir.stderr(), "one\n\ntwo \u{20ac}\nthree\n").unwrap();
        assert_eq!(stderr_tail(&dir, 2), ["two \u{20ac}", "three"]);
    }

    #[test]
    fn a_stored_exit_is_read_back_unchanged() {
        let home = tempfile::tempdir().unwrap();
        let dir = RunDir::new(home.path().to_path_buf());
        assert_eq!(read_exit(&dir), None);
        let exit = Exit::now(None, Some(9), None);
        exit.write(&dir).unwrap();
        assert_eq!(read_exit(&dir), Some(exit));
    }
}
