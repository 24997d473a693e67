//! Programs that a test writes and then runs. Another process writes them: the kernel executes no file that is open for writing, and a
//! program that another test starts at that moment would inherit a descriptor of this process.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// Writes an executable script.
///
/// # Errors
/// If the file cannot be written.
pub fn write(path: &Path, script: &str) -> io::Result<()> {
    let mut writer = Command::new("/bin/sh");
    writer.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut writer = writer.spawn()?;
    if let Some(mut stdin) = writer.stdin.take() {
        stdin.write_all(script.as_bytes())?;
    }
    succeeded(path, writer.wait()?)
}

/// Copies a program.
///
/// # Errors
/// If the file cannot be copied.
pub fn copy(program: &Path, to: &Path) -> io::Result<()> {
    succeeded(to, Command::new("/bin/cp").arg(program).arg(to).status()?)
}

fn succeeded(path: &Path, status: ExitStatus) -> io::Result<()> {
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("{} was not written", path.display())))
    }
}
