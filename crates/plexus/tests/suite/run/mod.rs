//! `plexus run` and `attach` at a real terminal, and without one.

mod answers;
mod editing;
mod given;
mod leaving;
mod shown;
mod typing;

use plexus_testkit::pty::Pty;
use serde_json::json;

use crate::support::TestHub;

/// A prompt for the scripted agent that touches these files, one after the other.
fn touch(files: &[&str]) -> String {
    let steps =
        files.iter().map(|file| json!({"tool": "Bash", "input": {"command": format!("touch {file}")}}));
    json!(steps.collect::<Vec<_>>()).to_string()
}

fn at_terminal(hub: &TestHub, args: &[&str], editor: &str) -> Pty {
    let env = [
        ("HOME", hub.folder.path().to_str().unwrap().to_owned()),
        ("PATH", std::env::var("PATH").unwrap()),
        ("TERM", "xterm".to_owned()),
        ("EDITOR", editor.to_owned()),
        ("PLEXUS_DATA_DIR", hub.process.data_dir().to_str().unwrap().to_owned()),
        ("SECRET", "s3cret".to_owned()),
        ("WANTED", "w4nted".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    Pty::start(env!("CARGO_BIN_EXE_plexus").as_ref(), args, &hub.work(), &env).unwrap()
}

async fn events(hub: &TestHub, name: &str) -> String {
    hub.call("claudecode.poll", json!({"name": name, "from_seq": 0})).await.unwrap()["events"].to_string()
}
