//! A tool's input in the user's editor: a private file with JSON, opened as often as it takes. It owns the file, and
//! says what became of it; what is done with that is for whoever asked.

use std::io::{Read as _, Seek as _, Write as _};

use plexus_protocol::Object;
use tempfile::NamedTempFile;
use thiserror::Error;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// What came out of an editor.
#[derive(Debug, PartialEq)]
pub(crate) enum Edited {
    /// It says what it said before.
    Same,
    /// It says something else.
    Changed(Object),
}

/// Why there is nothing to go by.
#[derive(Debug, Error)]
pub(crate) enum EditError {
    /// It can be opened again, and mended.
    #[error("this is no JSON object: {0}")]
    Invalid(String),
    /// There is no use in trying again.
    #[error("the editor `{editor}` {why}; set VISUAL or EDITOR to another")]
    Editor {
        /// As it was called.
        editor: String,
        /// What became of it.
        why: String,
    },
    /// The file cannot be written or read.
    #[error("the file for the editor: {0}")]
    File(#[from] std::io::Error),
}

/// An input that is being edited.
#[derive(Debug)]
pub(crate) struct Draft {
    before: Object,
    file: NamedTempFile,
}

impl Draft {
    /// A draft that begins as this input.
    pub(crate) fn of(input: &Object) -> Result<Self, EditError> {
        let mut file = tempfile::Builder::new().prefix("plexus-").suffix(".json").tempfile()?;
        let text = serde_json::to_string_pretty(input).map_err(std::io::Error::other)?;
        writeln!(file, "{text}")?;
        file.flush()?;
        Ok(Self { before: input.clone(), file })
    }

    /// A draft for this input that reads so by now.
    pub(crate) fn again(input: &Object, text: &str) -> Result<Self, EditError> {
        let draft = Self::of(input)?;
        std::fs::write(draft.file.path(), text)?;
        Ok(draft)
    }

    /// What stands in it.
    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(self.file.path()).unwrap_or_default()
    }

    /// Opens it in the user's editor and waits for that to end.
    pub(crate) async fn edit(&mut self) -> Result<Edited, EditError> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let editor = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".to_owned());
        let failed = |why: String| EditError::Editor { editor: editor.clone(), why };
        // Ctrl-C belongs to the editor meanwhile.
        let _interrupts = signal(SignalKind::interrupt())?;
        // As a line of the shell, since people put options there: EDITOR="code --wait".
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{editor} \"$@\"")).arg(&editor).arg(self.file.path());
        let status = command.status().await.map_err(|error| failed(error.to_string()))?;
        if !status.success() {
            return Err(failed(format!("ended with {status}")));
        }
        self.read()
    }

    fn read(&mut self) -> Result<Edited, EditError> {
        // By its path: editors put a new file in the place of the old one.
        let mut text = String::new();
        let mut file = std::fs::File::open(self.file.path())?;
        file.rewind()?;
        file.read_to_string(&mut text)?;
        let now: Object =
            serde_json::from_str(&text).map_err(|error| EditError::Invalid(error.to_string()))?;
        Ok(if now == self.before { Edited::Same } else { Edited::Changed(now) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_written_decides_and_rubbish_is_told() {
        let input = json!({"command": "ls"}).as_object().unwrap().clone();
        let mut draft = Draft::of(&input).unwrap();
        assert_eq!(draft.read().unwrap(), Edited::Same);
        std::fs::write(draft.file.path(), "{\"command\": \"ls -a\"}").unwrap();
        let other = json!({"command": "ls -a"}).as_object().unwrap().clone();
        assert_eq!(draft.read().unwrap(), Edited::Changed(other));
        for rubbish in ["", "[1]", "{\"command\": "] {
            std::fs::write(draft.file.path(), rubbish).unwrap();
            assert!(matches!(draft.read(), Err(EditError::Invalid(_))), "{rubbish}");
        }
    }
}
