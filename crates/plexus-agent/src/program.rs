//! Selects the file to execute when a program starts itself again. A child of the same user may have replaced the
//! program at its path, and the hub would run the replacement outside the sandbox.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The executable of the running process, even if its path now leads to another file.
const ITSELF: &str = "/proc/self/exe";

/// The path to execute `program`: through the running process if it is the same file, otherwise `program` itself.
pub fn pinned(program: &Path) -> PathBuf {
    let file = |path: &Path| path.metadata().map(|file| (file.dev(), file.ino())).ok();
    let same = file(program).is_some_and(|program| Some(program) == file(Path::new(ITSELF)));
    if same { ITSELF.into() } else { program.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_running_program_is_started_through_proc() {
        let this = std::env::current_exe().unwrap();
        assert_eq!(pinned(&this), Path::new(ITSELF));
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("copy");
        std::fs::copy(&this, &copy).unwrap();
        assert_eq!(pinned(&copy), copy);
        assert_eq!(pinned(Path::new("/none")), Path::new("/none"));
    }
}
