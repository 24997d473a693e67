//! Data directories of earlier versions. The current hub opens each of them, shows the same content, answers its open approvals and
//! continues its sessions.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use plexus_e2e::saved_data_dir::Expected;
use plexus_e2e::{Setup, World, events, script, text};
use plexus_testkit::hub_process::{HubOptions, HubProcess};
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};

fn saved(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// The present hub on a copy of the saved directory `name`.
async fn opened(name: &str) -> anyhow::Result<(World, Expected)> {
    let saved = saved(name);
    let expected = serde_json::from_str(&std::fs::read_to_string(saved.join("expected.json"))?)?;
    // The external child is disconnected for longer than the hub normally waits for a stream.
    let mut setup = Setup::scripted().with_config("sse_retry_ms = 3600000");
    setup.saved = Some(saved.join("data"));
    Ok((setup.world("saved").await?.context("the scripted agent is always available")?, expected))
}

/// Checks that every field of `then` has the same value in `now`. Later versions may add fields.
#[track_caller]
fn contains(now: &Value, then: &Value) {
    match (now, then) {
        (Value::Object(now_has), Value::Object(then_had)) => {
            for (field, then) in then_had {
                contains(now_has.get(field).unwrap_or(&Value::Null), then);
            }
        }
        (Value::Array(now_has), Value::Array(then_had)) => {
            assert_eq!(now_has.len(), then_had.len(), "then: {then:#}\nnow: {now:#}");
            now_has.iter().zip(then_had).for_each(|(now, then)| contains(now, then));
        }
        _ => assert_eq!(now, then),
    }
}

async fn assert_opens_with_the_current_hub(name: &str) -> anyhow::Result<()> {
    let (world, expected) = opened(name).await?;
    let session = text(&expected.finished["id"]);

    let view = world.call("claudecode.get", json!({"name": "finished"})).await?;
    contains(&view["session"], &expected.finished);
    for then in &expected.turns {
        let all = json!({"session_id": session, "turn": then["turn"], "from_seq": 0});
        contains(&world.call("claudecode.poll", all).await?, then);
    }
    for then in &expected.resolved {
        contains(&world.call("loopback.get", json!({"approval_id": then["id"]})).await?["approval"], then);
        let late = world.respond(then, json!({"approve": true})).await?;
        assert_eq!(
            (&late["type"], &late["status"]),
            (&json!("already_resolved"), &then["status"]),
            "{late:#}"
        );
    }

    // Its process does not exist on this machine, so its approval is withdrawn.
    let cut_off = text(&expected.cut_off["pending_approvals"][0]["session_id"]);
    let poll = world.ended(&cut_off).await?;
    let seen_then = expected.cut_off["events"].as_array().context("events")?;
    contains(&poll["events"].as_array().context("events")?[..seen_then.len()].into(), &json!(seen_then));
    assert_eq!(poll["status"], "failed", "{poll:#}");
    assert_eq!(events(&poll, "approval_resolved")[0]["status"], "withdrawn", "{poll:#}");

    // An external child repeats its request, and is answered.
    let open = world.call("loopback.pending", json!({})).await?;
    contains(&open["approvals"], &json!([expected.open]));
    let (rpc, asked) = (Rpc::new(world.hub.url(), &expected.token), expected.asked.clone());
    let child = tokio::spawn(async move { rpc.call("loopback.permit", asked).await });
    world.allow(&expected.open).await?;
    let answer = child.await??;
    assert!(answer.to_string().contains("allow"), "{answer}");

    for name in ["finished", "cut-off"] {
        let turn = world
            .call("claudecode.chat_async", json!({"name": name, "prompt": script(&json!([{"say": "back"}]))}))
            .await?;
        let poll = world.ended(&text(&turn["session_id"])).await?;
        assert_eq!(events(&poll, "complete")[0]["result"], "back", "{poll:#}");
    }
    Ok(())
}

#[tokio::test]
async fn a_data_directory_of_version_1_opens_and_continues() -> anyhow::Result<()> {
    assert_opens_with_the_current_hub("data-dir-v1").await
}

#[tokio::test]
async fn a_restored_database_without_the_files_of_its_runs_opens() -> anyhow::Result<()> {
    let copy = tempfile::tempdir()?;
    std::fs::copy(saved("data-dir-v1").join("data/plexus.db"), copy.path().join("plexus.db"))?;
    let mut setup = Setup::scripted();
    setup.saved = Some(copy.path().to_owned());
    let world = setup.world("saved").await?.context("the scripted agent is always available")?;
    let view = world.call("claudecode.get", json!({"name": "cut-off"})).await?;
    let poll = world.ended(&text(&view["session"]["id"])).await?;
    assert_eq!((&poll["status"], poll["events"].is_array()), (&json!("failed"), true), "{poll:#}");
    Ok(())
}

/// The content of all files, except those that SQLite creates when it opens a database.
fn contents(dir: &Path) -> anyhow::Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("plexus.db")) {
            files.push((path.clone(), std::fs::read(path)?));
        }
    }
    files.retain(|(path, bytes)| {
        let path = path.to_string_lossy();
        !(path.ends_with("-shm") || path.ends_with("-wal") && bytes.is_empty())
    });
    files.sort();
    Ok(files)
}

#[tokio::test]
async fn a_hub_refuses_a_database_that_it_cannot_trust_and_does_not_change_it() -> anyhow::Result<()> {
    let whole = std::fs::read(saved("data-dir-v1").join("data/plexus.db"))?;
    let patched = |at: usize, with: &[u8]| {
        let mut bytes = whole.clone();
        bytes[at..at + with.len()].copy_from_slice(with);
        bytes
    };
    let cases = [
        (patched(0, b"rubbish!"), "is not a SQLite database"),
        (patched(100, &[0xA5; 3996]), "is damaged"),
        (patched(5 * 4096, &[0xA5; 4096]), "is damaged"),
        (whole[..whole.len() / 2].to_vec(), "is damaged"),
        (patched(68, &[0, 0, 0, 1]), "belongs to another program"),
        (patched(60, &[0, 0, 0, 99]), "was written by a newer version of plexus"),
    ];
    let dir = tempfile::tempdir()?;
    for (number, (bytes, word)) in cases.into_iter().enumerate() {
        let data = dir.path().join(number.to_string());
        std::fs::create_dir(&data)?;
        std::fs::write(data.join("plexus.db"), bytes)?;
        let before = contents(&data)?;
        let options = HubOptions {
            data_dir: data.clone(),
            claude: plexus_testkit::binaries::scripted_agent()?,
            ..HubOptions::default()
        };
        let refused = HubProcess::start(options).await.map(drop).unwrap_err().to_string();
        for part in
            [word, &data.join("plexus.db").display().to_string(), "another data directory", "exit status: 6"]
        {
            assert!(refused.contains(part), "{part}: {refused}");
        }
        assert!(contents(&data)? == before, "{word}: the file was changed");
    }
    Ok(())
}
