//! Forks when the hub is killed, transcripts with any content, and deletion.

use anyhow::Context as _;
use plexus_e2e::{Setup, World, script, text};
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};

async fn scripted(file: Option<&std::path::Path>) -> anyhow::Result<World> {
    let mut setup = Setup::scripted();
    let env = file.map(|file| ("PLEXUS_KILL_POINT_FILE".to_owned(), file.display().to_string()));
    setup.env.extend(env);
    setup.world("scripted").await?.context("the scripted agent is always available")
}

#[tokio::test]
async fn a_fork_exists_completely_or_not_at_all_when_the_hub_is_killed() -> anyhow::Result<()> {
    for (point, there) in [("fork: read", false), ("fork: stored", true)] {
        let place = tempfile::tempdir()?;
        let file = place.path().join("kill");
        let mut world = scripted(Some(&file)).await?;
        let rules = json!([{"rule": "Bash(rm:*)", "effect": "deny"}]);
        let prompt = script(&json!([{"say": "one"}]));
        let session = world
            .create("original", json!({"prompt": prompt, "rules": rules, "budget": {"turns": 9}}))
            .await?;
        world.ended(&session).await?;
        std::fs::write(&file, point)?;
        let fork = json!({"name": "original", "new_name": "branch"});
        assert!(world.door.call("claudecode.fork", fork.clone()).await.is_err(), "{point}");
        world.hub.restart().await?;
        world.door = Box::new(Rpc::new(world.hub.url(), &world.hub.token()?));
        let got = world.door.call("claudecode.get", json!({"name": "branch"})).await;
        assert_eq!(got.is_ok(), there, "{point}: {got:?}");
        if !there {
            world.call("claudecode.fork", fork).await?;
        }
        // The fork has the rules of the original.
        let rules = world.call("policy.list", json!({"name": "branch"})).await?;
        assert_eq!(rules["rules"].as_array().map(Vec::len), Some(1), "{rules}");
        let branch = world.call("claudecode.get", json!({"name": "branch"})).await?["session"].take();
        assert_eq!(branch["budget"]["turns"]["limit"], 9, "{branch}");
        let tree = world.call("arbor.tree_get", json!({"tree_id": branch["head"]["tree_id"]})).await?;
        assert_eq!(tree["tree"]["sessions"].as_array().map(Vec::len), Some(2), "{tree}");
        let acts = world.call("audit.list", json!({"kind": "session", "session_id": session})).await?;
        let forks =
            acts["rows"].as_array().into_iter().flatten().filter(|row| row["entry"]["status"] == "forked");
        assert_eq!(forks.count(), 1, "{acts}");
    }
    Ok(())
}

#[tokio::test]
async fn a_transcript_is_sent_in_parts_and_runs_nothing() -> anyhow::Result<()> {
    let world = scripted(None).await?;
    let hostile = "<script>alert(1)</script> ``` \u{202e}\u{1b}[31m grüße";
    let steps = json!([{"tool": "Bash", "input": {"command": hostile}}, {"say": hostile}]);
    let session = world.create("hostile", json!({"prompt": script(&steps)})).await?;
    let (_, asked) = world.asked(&session).await?;
    world.respond(&asked, json!({"approve": false, "message": hostile})).await?;
    world.ended(&session).await?;
    let whole = async |format: &str, limit: u64| -> anyhow::Result<String> {
        let (mut all, mut from) = (String::new(), json!(0));
        while !from.is_null() {
            let params = json!({"session_id": session, "format": format, "limit": limit, "from": from});
            let mut part = world.call("claudecode.transcript", params).await?;
            all += &text(&part["text"]);
            from = part["next"].take();
        }
        Ok(all)
    };
    for format in ["markdown", "jsonl", "html"] {
        assert_eq!(
            whole(format, 1).await?,
            whole(format, 1000).await?,
            "{format}: the parts make up the whole transcript"
        );
    }
    let page = whole("html", 3).await?;
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{page}");
    assert!(!page.contains("<script") && !page.contains(['\u{202e}', '\u{1b}']), "{page}");
    assert!(page.contains("denied by operator") && page.contains("grüße"), "{page}");
    let lines = whole("jsonl", 1000).await?;
    let nodes: Vec<Value> = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    assert_eq!(nodes.last().map(|node| &node["role"]), Some(&json!("outcome")));
    assert!(whole("markdown", 1000).await?.contains("````"), "the text cannot close the fence");
    Ok(())
}

#[tokio::test]
async fn a_deleted_conversation_is_removed_and_the_audit_log_stays() -> anyhow::Result<()> {
    let world = scripted(None).await?;
    let session = world.create("one", json!({"prompt": script(&json!([{"say": "unmistakable"}]))})).await?;
    world.ended(&session).await?;
    let tree =
        world.call("claudecode.get", json!({"session_id": session})).await?["session"]["head"]["tree_id"]
            .take();
    let delete = json!({"tree_id": tree});
    assert_eq!(world.refused("arbor.delete", delete.clone()).await?.kind.as_deref(), Some("tree_in_use"));
    world.call("claudecode.delete", json!({"session_id": session})).await?;
    let found = json!({"query": "unmistakable"});
    let before = world.call("arbor.search", found.clone()).await?["found"].take();
    assert_eq!(before.as_array().map(Vec::len), Some(3), "the prompt, the answer, the outcome: {before}");
    assert!(
        world.call("arbor.delete", delete).await?["removed"].as_u64().is_some_and(|removed| removed >= 3)
    );
    assert_eq!(world.call("arbor.search", found).await?["found"], json!([]));
    let acts = world.call("audit.list", json!({"kind": "session"})).await?;
    let last = acts["rows"].as_array().and_then(|rows| rows.last()).cloned().unwrap_or_default();
    assert_eq!(last["entry"]["status"], "conversation_deleted", "{acts}");
    Ok(())
}
