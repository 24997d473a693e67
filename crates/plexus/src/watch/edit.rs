//! An input in the user's editor: written to a file of its own, and read back when the editor has ended.

use std::io::Write as _;
use std::process::Stdio;

use plexus_protocol::Object;
use tokio::process::Command;

/// What came of editing.
pub(crate) enum Edited {
    /// Another input.
    To(Object),
    /// Nothing to go on with, and why.
    Not(String),
}

/// Lets the user change `input`, on the terminal as it is.
pub(crate) async fn edit(input: &Object) -> Edited {
    match in_editor(input).await {
        Ok(changed) if changed == *input => {
            Edited::Not("nothing was changed, nothing is answered".to_owned())
        }
        Ok(changed) => Edited::To(changed),
        Err(why) => Edited::Not(why),
    }
}

async fn in_editor(input: &Object) -> Result<Object, String> {
    let text = serde_json::to_string_pretty(input).map_err(|error| error.to_string())?;
    let wrong = |error: std::io::Error| format!("the input cannot be edited: {error}");
    // Only its owner can read it: tempfile makes it so.
    let mut file = tempfile::Builder::new().prefix("plexus-").suffix(".json").tempfile().map_err(wrong)?;
    writeln!(file, "{text}").map_err(wrong)?;
    let editor = ["VISUAL", "EDITOR"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|it| !it.trim().is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or("vi");
    let mut command = Command::new(program);
    command.args(words).arg(file.path()).stdin(Stdio::inherit()).kill_on_drop(true);
    let ended = command.status().await.map_err(|error| format!("{program} cannot be started: {error}"))?;
    if !ended.success() {
        return Err(format!("{program} ended with {ended}: nothing is answered"));
    }
    // By its path: editors put a new file in the place of the old one.
    let text = std::fs::read_to_string(file.path()).map_err(wrong)?;
    serde_json::from_str(&text).map_err(|error| format!("that is no JSON object: {error}"))
}
