//! `plexus demo`: the first thing a newcomer sees.

use std::process::Stdio;

use plexus_testkit::pty::Pty;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::support::{LIMIT, plexus, run, text};

#[tokio::test]
async fn with_yes_it_goes_through_by_itself_and_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let mut command = tokio::process::Command::from(plexus(home.path()));
    command.args(["demo", "--yes"]).env("TMPDIR", home.path()).stdin(Stdio::null());
    let shown = tokio::time::timeout(LIMIT, command.output()).await.expect("it ends").unwrap();
    let (stdout, stderr) = (text(&shown.stdout), text(&shown.stderr));
    assert!(shown.status.success(), "{stdout}\n{stderr}");
    assert!(stdout.contains("PERMISSION NEEDED") && stdout.contains("the turn is complete"), "{stdout}");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "its folder is gone");
}

#[tokio::test]
async fn the_command_it_shows_answers_it() {
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
        while let Some(line) = lines.next_line().await.unwrap() {
            if let Some((_, args)) = line.split_once(" loopback respond ") {
                let args: Vec<&str> = ["loopback", "respond"].into_iter().chain(args.split(' ')).collect();
                let answer = run(&args, home.path()).await;
                assert!(answer.status.success(), "{}", text(&answer.stderr));
                answered += 1;
            }
        }
        answered
    };
    let answered = tokio::time::timeout(LIMIT, guided).await.expect("it ends");
    assert_eq!(answered, 2);
    assert!(demo.wait().await.unwrap().success());
}

#[tokio::test]
async fn a_capital_y_allows_and_what_was_typed_before_the_question_does_not_answer_it() {
    let home = tempfile::tempdir().unwrap();
    let env = [
        ("HOME", home.path().to_str().unwrap()),
        ("TMPDIR", home.path().to_str().unwrap()),
        ("TERM", "xterm"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let path = ("PATH".to_owned(), std::env::var("PATH").unwrap());
    let env: Vec<(String, String)> = env.into_iter().chain([path]).collect();
    let mut demo = Pty::start(env!("CARGO_BIN_EXE_plexus").as_ref(), &["demo"], home.path(), &env).unwrap();
    demo.press("n too early\n").unwrap();
    demo.expect("Type y to allow it").await.unwrap();
    demo.press("Y\n").unwrap();
    demo.expect("decided: allowed").await.unwrap();
}
