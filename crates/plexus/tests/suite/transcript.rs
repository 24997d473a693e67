//! Complete outputs of the program, compared with files in `transcripts/`. `PLEXUS_WRITE_TRANSCRIPTS=1` writes the files.

use std::path::Path;
use std::process::Output;

use crate::support::text;

/// Compares the output of a command with the transcript of this name. `words` replaces text that differs between runs.
pub(crate) fn matches(name: &str, command: &str, output: &Output, words: &[(&str, &str)]) {
    let mut said = format!("$ plexus {command}\n{}", text(&output.stdout));
    for line in text(&output.stderr).lines() {
        said.push_str(&format!("stderr: {line}\n"));
    }
    said.push_str(&format!("exit: {}\n", output.status.code().unwrap()));
    for (found, word) in words {
        said = said.replace(found, word);
    }
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/transcripts").join(format!("{name}.txt"));
    if std::env::var_os("PLEXUS_WRITE_TRANSCRIPTS").is_some() {
        std::fs::write(&path, &said).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(said, expected, "{} says otherwise", path.display());
}
