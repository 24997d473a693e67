//! Files in prompts, with real CLIs: what the model receives, what Claude Code does not read, and what a killed hub delivers.

use anyhow::Context as _;
use plexus_e2e::{Channel, DoorKind, Setup, World, events, over, text};
use plexus_testkit::model::Step;
use serde_json::{Value, json};

over!(versions: the_model_receives_files_and_claude_code_expands_nothing_in_them);
over!(clis: an_image_reaches_a_running_turn_and_a_pdf_is_refused, a_prompt_with_an_image_survives_any_kill_of_the_hub);

/// An image of one pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// `%PDF-1.4` and an empty document.
const PDF: &str = "JVBERi0xLjQKdHJhaWxlcjw8Pj4KJSVFT0YK";
/// `/compact @inside.txt` and `@/etc/passwd`, on two lines.
const TEXT: &str = "L2NvbXBhY3QgQGluc2lkZS50eHQKQC9ldGMvcGFzc3dk";

fn file(name: &str, media_type: &str, data: &str) -> Value {
    json!({"name": name, "media_type": media_type, "data": data})
}

/// The blocks of one type in the user's messages of a model request.
fn user_blocks(request: &Value, kind: &str) -> Vec<Value> {
    let messages = request["messages"].as_array().into_iter().flatten();
    let blocks = messages
        .filter(|message| message["role"] == "user")
        .filter_map(|message| message["content"].as_array());
    blocks.flatten().filter(|block| block["type"] == kind).cloned().collect()
}

fn images(request: &Value) -> Vec<String> {
    user_blocks(request, "image").iter().map(|block| text(&block["source"]["data"])).collect()
}

async fn the_model_receives_files_and_claude_code_expands_nothing_in_them(
    world: World,
) -> anyhow::Result<()> {
    world.plant("inside.txt", "THE-SECRET-INSIDE")?;
    for marker in ["LOOK-1", "LOOK-2", "LOOK-3"] {
        world.model.script(marker, vec![Step::text("Hm.")]);
    }
    let session = world.create("reader", json!({})).await?;
    let files = [
        file("@inside.txt", "image/png", PNG),
        file("a.pdf", "application/pdf", PDF),
        file("/compact @inside.txt", "text/markdown", TEXT),
    ];
    let prompt = json!({"session_id": session, "prompt": "LOOK-1 at @inside.txt", "attachments": files});
    world.call("claudecode.chat_async", prompt).await?;
    let ended = world.ended(&session).await?;
    assert_eq!(ended["status"], "complete", "{ended:#}");
    let shown = &events(&ended, "start")[0]["attachments"];
    assert_eq!(shown[0], json!({"name": "@inside.txt", "media_type": "image/png", "bytes": 70}), "{shown}");
    assert_eq!(
        shown[2],
        json!({"name": "/compact @inside.txt", "media_type": "text/plain", "bytes": 33}),
        "{shown}"
    );

    let request = world.model.requests_for("LOOK-1").pop().context("a request")?;
    assert_eq!(images(&request), [PNG]);
    assert_eq!(user_blocks(&request, "document")[0]["source"]["data"], PDF);
    let sent = request["messages"].to_string();
    assert!(sent.contains("File /compact @inside.txt:\\n\\n/compact @inside.txt\\n@/etc/passwd"), "{sent}");
    let all = world.model.requests().iter().map(|request| request.body.to_string()).collect::<String>();
    assert!(!all.contains("THE-SECRET-INSIDE") && !all.contains("root:x:0"));

    // A new process and a fork still have them.
    world.call("claudecode.stop", json!({"session_id": session})).await?;
    world.chat(&session, "LOOK-2 again").await?;
    world.ended(&session).await?;
    assert_eq!(images(&world.model.requests_for("LOOK-2").pop().context("a request")?), [PNG]);
    let forked =
        world.call("claudecode.fork", json!({"name": "reader", "new_name": "branch", "at": 1})).await?;
    let branch = text(&forked["id"]);
    world.chat(&branch, "LOOK-3 there").await?;
    world.ended(&branch).await?;
    assert_eq!(images(&world.model.requests_for("LOOK-3").pop().context("a request")?), [PNG]);

    let page = |format: &str| json!({"session_id": session, "format": format});
    let html = text(&world.call("claudecode.transcript", page("html")).await?["text"]);
    assert!(html.contains(&format!("<img alt=\"\" src=\"data:image/png;base64,{PNG}\">")), "{html}");
    let markdown = text(&world.call("claudecode.transcript", page("markdown")).await?["text"]);
    assert!(markdown.contains("a.pdf (application/pdf, 27 bytes)") && !markdown.contains(PNG), "{markdown}");
    let listed = world.call("claudecode.list", json!({})).await?.to_string();
    assert!(!listed.contains(PNG) && !ended.to_string().contains(PNG));
    let found = world
        .call(
            "arbor.search",
            json!({"query": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"}),
        )
        .await?;
    assert_eq!(found["found"], json!([]), "the search has only the names of files");
    Ok(())
}

async fn an_image_reaches_a_running_turn_and_a_pdf_is_refused(world: World) -> anyhow::Result<()> {
    let call = Step::tool("Bash", json!({"command": "touch made", "description": "a step"}));
    world.model.script("ADD-TO", vec![call, Step::text("Done."), Step::text("Done.")]);
    let session = world.create("busy", json!({})).await?;
    world.chat(&session, "ADD-TO the turn").await?;
    let (_, approval) = world.asked(&session).await?;
    let message = |files: Value| json!({"session_id": session, "prompt": "and this", "attachments": files});
    let refused =
        world.refused("claudecode.send", message(json!([file("a.pdf", "application/pdf", PDF)]))).await?;
    assert!(refused.message.contains("`a.pdf`") && refused.message.contains("during a turn"), "{refused:?}");
    world.call("claudecode.send", message(json!([file("a.png", "image/png", PNG)]))).await?;
    world.allow(&approval).await?;
    let ended = world.ended(&session).await?;
    assert_eq!(ended["status"], "complete", "{ended:#}");
    let received = world.model.requests().iter().any(|request| images(&request.body) == [PNG]);
    assert!(received, "{:#?}", world.model.requests());
    let sent = events(&ended, "system").into_iter().find(|event| event["subtype"] == "sent");
    assert_eq!(sent.context("an event")?["data"]["attachments"][0]["name"], "a.png");
    Ok(())
}

/// The prompt is delivered once: the model receives one request, with the image.
async fn a_prompt_with_an_image_survives_any_kill_of_the_hub(world: World) -> anyhow::Result<()> {
    let version = world.setup.cli.context("a CLI")?;
    drop(world);
    let files = tempfile::tempdir()?;
    let kill_point = files.path().join("kill-point");
    for point in ["prompt: turn begun", "prompt: bound", "prompt: sent"] {
        let mut setup = Setup::cli(version, Channel::Control, DoorKind::Rpc);
        setup.env.push(("PLEXUS_KILL_POINT_FILE".to_owned(), kill_point.display().to_string()));
        let mut world = setup.world("a prompt with an image").await?.context("a CLI")?;
        world.model.script("KILLED", vec![Step::text("Seen.")]);
        let session = world.create("seer", json!({})).await?;
        std::fs::write(&kill_point, point)?;
        let prompt = json!({"session_id": session, "prompt": "KILLED look", "attachments": [file("a.png", "image/png", PNG)]});
        // The hub may die before it has answered.
        let _ = world.door.call("claudecode.chat_async", prompt).await;
        world.hub.wait().await?;
        world.hub.restart().await?;
        let ended = world.ended(&session).await?;
        assert_eq!(ended["status"], "complete", "{point}: {ended:#}");
        let requests = world.model.requests_for("KILLED");
        assert_eq!(requests.iter().map(images).collect::<Vec<_>>(), [[PNG]], "{point}");
    }
    Ok(())
}

#[tokio::test]
async fn a_file_that_is_not_what_it_claims_is_refused() -> anyhow::Result<()> {
    let world = Setup::scripted().world("files").await?.context("the scripted agent")?;
    let session = world.create("careful", json!({})).await?;
    let many = vec![file("a", "text/plain", TEXT); 21];
    for (files, words) in [
        (json!([file("a.jpg", "image/jpeg", PNG)]), "`a.jpg` is image/png, not image/jpeg"),
        (json!([file("a.svg", "image/svg+xml", TEXT)]), "`a.svg` is text/plain, not image/svg+xml"),
        (json!([file("a.png", "image/png", "!")]), "is not valid base64"),
        (json!([file("a.bin", "application/octet-stream", "AAAA")]), "`a.bin` is neither an image (PNG"),
        (json!(many), "at most 20 files"),
    ] {
        let prompt = json!({"session_id": session, "prompt": "look", "attachments": files});
        let refused = world.refused("claudecode.chat_async", prompt.clone()).await?;
        assert!(refused.message.contains(words), "{words}: {refused:?}");
        assert_eq!(world.refused("claudecode.chat", prompt).await?.message, refused.message);
    }
    let create =
        json!({"name": "x", "working_dir": world.work, "attachments": [file("a.png", "image/png", PNG)]});
    let refused = world.refused("claudecode.create", create).await?;
    assert!(refused.message.contains("needs `prompt`"), "{refused:?}");
    Ok(())
}
