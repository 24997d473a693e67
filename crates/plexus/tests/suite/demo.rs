//! `plexus demo`: the first thing a newcomer sees.

use std::path::Path;
use std::process::Stdio;

use plexus_testkit::pty::Pty;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::support::{LIMIT, plexus, text};

#[tokio::test]
async fn the_demo_with_yes_needs_no_answer_and_leaves_no_files() {
    let home = tempfile::tempdir().unwrap();
    let mut command = tokio::process::Command::from(plexus(home.path()));
    command.args(["demo", "--yes"]).env("TMPDIR", home.path()).stdin(Stdio::null());
    let shown = tokio::time::timeout(LIMIT, command.output()).await.expect("it ends").unwrap();
    let (stdout, stderr) = (text(&shown.stdout), text(&shown.stderr));
    assert!(shown.status.success(), "{stdout}\n{stderr}");
    assert!(stdout.contains("APPROVAL NEEDED") && stdout.contains("the turn is complete"), "{stdout}");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "its directory is gone");
}

#[tokio::test]
async fn the_command_that_the_demo_shows_answers_the_approval() {
    let home = tempfile::tempdir().unwrap();
    let mut command = tokio::process::Command::from(plexus(home.path()));
    command
        .arg("demo")
        .env("TMPDIR", home.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut demo = command.spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let guided = async {
        let mut answered = 0;
        let mut shown = String::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            if let Some((_, args)) =
                line.split_once(" approve ").filter(|(_, args)| args.contains("--data-dir"))
            {
                let args: Vec<&str> = std::iter::once("approve").chain(args.split(' ')).collect();
                let program = env!("CARGO_BIN_EXE_plexus").as_ref();
                let mut approve = Pty::start(program, &args, home.path(), &terminal(home.path())).unwrap();
                approve.expect("Allow it?").await.unwrap();
                approve.press("y\n").unwrap();
                assert_eq!(approve.end().await.unwrap(), 0, "{}", approve.shown());
                answered += 1;
            }
            shown.push_str(&line);
            shown.push('\n');
        }
        (answered, shown)
    };
    let (answered, shown) = tokio::time::timeout(LIMIT, guided).await.expect("it ends");
    assert_eq!(answered, 2);
    assert!(shown.contains("plexus run") && shown.contains("plexus console"), "{shown}");
    assert!(demo.wait().await.unwrap().success());
}

/// The environment of a program at a terminal.
fn terminal(home: &Path) -> Vec<(String, String)> {
    let home = home.to_str().unwrap().to_owned();
    let path = std::env::var("PATH").unwrap();
    [("HOME", home.clone()), ("TMPDIR", home), ("TERM", "xterm".to_owned()), ("PATH", path)]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
}

#[tokio::test]
async fn a_capital_y_allows_and_input_typed_before_the_prompt_does_not() {
    let home = tempfile::tempdir().unwrap();
    let mut demo =
        Pty::start(env!("CARGO_BIN_EXE_plexus").as_ref(), &["demo"], home.path(), &terminal(home.path()))
            .unwrap();
    demo.press("n too early\n").unwrap();
    demo.expect("Type y to allow it").await.unwrap();
    demo.press("Y\n").unwrap();
    demo.expect("decided: allowed").await.unwrap();
}
