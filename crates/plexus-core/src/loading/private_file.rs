//! Stores a file of the data directory atomically, readable only by the user.

use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde::Serialize;

/// Replaces the content of the file. After a crash the file has the old or the new content.
pub(super) fn store(path: &Path, value: &impl Serialize) -> Result<(), String> {
    let write = || -> io::Result<()> {
        let draft = path.with_extension("tmp");
        let mut file =
            std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(&serde_json::to_vec(value)?)?;
        file.sync_all()?;
        std::fs::rename(&draft, path)
    };
    write().map_err(|error| format!("{}: {error}", path.display()))
}
