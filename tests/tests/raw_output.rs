//! `claudecode.output`: what a real `claude` writes is returned unchanged, in pages, while it runs and afterwards.

use anyhow::Context as _;
use plexus_e2e::{World, over, text};
use plexus_testkit::model::Step;
use serde_json::json;

// The hub asks for the state of MCP servers if approvals are requested over MCP.
over!(mcp_channels: the_raw_lines_of_a_run_are_read_in_pages);

/// A secret in the configuration of a server.
const SECRET: &str = "s3cret-of-a-server";

/// All lines from a position on, in pages of this many lines, with the position of the next line.
async fn lines(world: &World, session: &str, from: u64, limit: u64) -> anyhow::Result<(Vec<String>, u64)> {
    let (mut all, mut next) = (Vec::new(), from);
    loop {
        let params = json!({"session_id": session, "from": next, "limit": limit, "max_bytes": 1_000_000});
        let page = world.call("claudecode.output", params).await?;
        all.extend(page["lines"].as_array().context("lines")?.iter().map(|line| text(&line["text"])));
        next = page["next"].as_u64().context("next")?;
        if page["has_more"] != true {
            return Ok((all, next));
        }
    }
}

async fn the_raw_lines_of_a_run_are_read_in_pages(world: World) -> anyhow::Result<()> {
    let (held, hold) = Step::hold(Step::text("answer-one"));
    world.model.script("TALK", vec![held]);
    world.model.script("AGAIN", vec![Step::text("answer-two")]);
    let server = json!({"type": "http", "url": "http://127.0.0.1:9/", "headers": {"Authorization": SECRET}});
    let created = json!({"prompt": "TALK", "mcp_servers": {"web": server}});
    let session = world.create("talker", created).await?;
    world.model.seen(|request| request.marker.as_deref() == Some("TALK")).await?;
    let running = world.call("claudecode.output", json!({"session_id": session})).await?;
    assert_eq!((&running["run"], &running["running"]), (&json!(1), &json!(true)), "{running:#}");
    hold.release();
    world.ended(&session).await?;
    let (_, position) = lines(&world, &session, 0, 3).await?;
    world.chat(&session, "AGAIN").await?;
    world.ended(&session).await?;
    world.call("claudecode.stop", json!({"session_id": session})).await?;

    let journal = std::fs::read_to_string(world.run_dir(&session, 1).join("journal.jsonl"))?;
    let is_server_status = |line: &&str| line.contains("mcpServers");
    let written: Vec<&str> = journal.lines().filter(|line| !is_server_status(line)).collect();
    assert!(written.len() < journal.lines().count(), "Claude Code reports its servers: {journal}");
    for limit in [1, 7, 10_000] {
        let (all, next) = lines(&world, &session, 0, limit).await?;
        let shown: Vec<&str> =
            all.iter().map(String::as_str).filter(|line| !is_server_status(line)).collect();
        assert!(shown == written && next == journal.len() as u64, "pages of {limit} lines");
        assert!(!all.concat().contains(SECRET), "the headers of a server are hidden");
    }
    assert!(journal.contains(SECRET), "the journal has them");
    let (later, _) = lines(&world, &session, position, 7).await?;
    assert!(later.concat().contains("answer-two") && !later.concat().contains("answer-one"), "{later:?}");
    let stderr = world.call("claudecode.output", json!({"name": "talker", "stream": "stderr"})).await?;
    assert_eq!((&stderr["type"], &stderr["running"]), (&json!("ok"), &json!(false)), "{stderr:#}");
    Ok(())
}
