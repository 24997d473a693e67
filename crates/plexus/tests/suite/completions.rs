//! `plexus completions`: what each shell offers.

use std::path::{Path, PathBuf};

use crate::support::{LIMIT, TestHub, plexus, run, text};

async fn script(shell: &str, home: &Path) -> PathBuf {
    let path = home.join(format!("plexus.{shell}"));
    std::fs::write(&path, run(&["completions", shell], home).await.stdout).unwrap();
    path
}

/// What bash offers for the last of these words.
async fn in_bash(script: &Path, words: &[&str], env: &[(&str, &Path)]) -> String {
    let line = format!(
        ". {}; COMP_WORDS=(plexus {} ''); COMP_CWORD={}; _clap_complete_plexus plexus '' x; echo \"${{COMPREPLY[*]}}\"",
        script.display(),
        words.join(" "),
        words.len() + 1,
    );
    let mut bash = tokio::process::Command::new("bash");
    bash.args(["--norc", "-c", &line]).env_clear().env("PATH", std::env::var("PATH").unwrap());
    bash.envs(env.iter().copied()).kill_on_drop(true);
    let completed = tokio::time::timeout(LIMIT, bash.output()).await.expect("bash ends").unwrap();
    text(&completed.stdout).trim_end().replace('\u{b}', " ")
}

#[tokio::test]
async fn bash_offers_session_names_and_approval_ids_of_the_running_hub() {
    let hub = TestHub::start().await;
    let (_, approval) = hub.asking_session("fixer").await;
    hub.asking_session("reviewer").await;
    let home = hub.folder.path();
    let script = script("bash", home).await;
    let env = [("HOME", home), ("PLEXUS_DATA_DIR", hub.process.data_dir())];
    for verb in ["logs", "attach", "stop", "transcript", "fork"] {
        let offered = in_bash(&script, &[verb], &env).await;
        assert!(offered.starts_with("fixer reviewer"), "{verb}: {offered}");
    }
    for verb in ["approve", "deny", "approvals"] {
        let offered = in_bash(&script, &[verb], &env).await;
        assert!(offered.contains(&approval), "{verb}: {offered}");
    }
    let flag = ["--data-dir", hub.process.data_dir().to_str().unwrap()];
    let offered = in_bash(&script, &[&["logs"][..], &flag].concat(), &[("HOME", home)]).await;
    assert!(offered.starts_with("fixer reviewer"), "{offered}");
    let methods = in_bash(&script, &["claudecode"], &env).await;
    assert!(methods.contains("chat-async"), "{methods}");
    for words in [&["allow", "--session"][..], &["claudecode", "get", "--name"], &["rename"]] {
        let offered = in_bash(&script, words, &env).await;
        assert!(offered.starts_with("fixer reviewer"), "{words:?}: {offered}");
    }
    for words in [&["run", "--name"][..], &["claudecode", "create", "--name"], &["rename", "fixer"]] {
        let offered = in_bash(&script, words, &env).await;
        assert!(!offered.contains("reviewer"), "{words:?} is the name of a new session: {offered}");
    }
}

#[tokio::test]
async fn bash_offers_the_rules_and_tokens_to_remove() {
    let hub = TestHub::start().await;
    let home = hub.folder.path();
    let script = script("bash", home).await;
    let env = [("HOME", home), ("PLEXUS_DATA_DIR", hub.process.data_dir())];
    assert!(hub.run(&["allow", "Bash(npm test:*)"]).await.status.success());
    assert!(hub.run(&["tokens", "new", "phone"]).await.status.success());
    for (words, expected) in [(["rules", "rm"], "1"), (["tokens", "rm"], "phone")] {
        let offered = in_bash(&script, &words, &env).await;
        assert_eq!(offered.split_whitespace().next(), Some(expected), "{words:?}: {offered}");
    }
    hub.asking_session("fixer").await;
    let offered = in_bash(&script, &["tokens", "new"], &env).await;
    assert!(!offered.contains("fixer"), "the name of a new token: {offered}");
}

#[tokio::test]
async fn completing_a_session_starts_no_hub() {
    let home = tempfile::tempdir().unwrap();
    let script = script("bash", home.path()).await;
    let dir = home.path().join("data");
    let offered = in_bash(&script, &["logs"], &[("HOME", home.path()), ("PLEXUS_DATA_DIR", &dir)]).await;
    assert!(!offered.contains("error"), "{offered}");
    assert!(!dir.exists());
}

/// The scripts of zsh and fish pass the words in this way.
#[tokio::test]
async fn zsh_and_fish_get_names_with_a_description() {
    let hub = TestHub::start().await;
    hub.asking_session("fixer").await;
    for (shell, line) in [("zsh", "fixer:awaiting permission"), ("fish", "fixer\tawaiting permission")] {
        let mut asked = tokio::process::Command::from(plexus(hub.folder.path()));
        asked
            .args(["--", "plexus", "logs", ""])
            .env("PLEXUS_COMPLETE", shell)
            .env("_CLAP_COMPLETE_INDEX", "2");
        let asked = asked.env("_CLAP_IFS", "\n").env("PLEXUS_DATA_DIR", hub.process.data_dir());
        let offered = text(&asked.output().await.unwrap().stdout);
        assert!(offered.lines().any(|offered| offered == line), "{shell}: {offered}");
    }
}

/// zsh loads a script in `fpath` when it is needed first.
#[tokio::test]
async fn zsh_completes_at_the_first_key() {
    let home = tempfile::tempdir().unwrap();
    std::fs::rename(script("zsh", home.path()).await, home.path().join("_plexus")).unwrap();
    // Outside of a line editor these two functions are missing.
    let line = "fpath=($HOME $fpath); autoload -Uz _plexus; compdef() { }; _describe() { print -rl -- \"${(P@)3}\" }; \
                words=(plexus claudecode cha); CURRENT=3; _plexus";
    let mut zsh = tokio::process::Command::new("zsh");
    zsh.args(["-f", "-c", line]).env_clear().env("HOME", home.path());
    let Ok(loaded) = zsh.env("PATH", std::env::var("PATH").unwrap()).output().await else {
        return plexus_testkit::skip("zsh_completes_at_the_first_key", "zsh is missing");
    };
    let offered = text(&loaded.stdout);
    let names: Vec<&str> = offered.lines().filter_map(|line| Some(line.split_once(':')?.0)).collect();
    assert_eq!(names, ["chat", "chat-async"], "{}", text(&loaded.stderr));
}
