//! Stored conversations with real CLIs: forking, reading and rendering them, and what the model receives.

mod storage;

use anyhow::Context as _;
use plexus_e2e::{World, events, over, text};
use plexus_testkit::model::Step;
use serde_json::{Value, json};

over!(channels:
    both_branches_of_a_fork_continue_with_only_their_own_history,
    a_fork_starts_from_the_last_message_that_a_killed_agent_has_written,
    a_rendered_conversation_shows_each_decision_with_its_call
);

/// The texts of the last model request for this marker, in order.
fn received(world: &World, marker: &str) -> Vec<String> {
    let request = world.model.requests_for(marker).pop().unwrap_or_default();
    let mut received = Vec::new();
    let messages = request["messages"].as_array().into_iter().flatten();
    for message in messages.filter(|message| message["role"] != "system") {
        match &message["content"] {
            Value::String(said) => received.push(said.clone()),
            blocks => {
                let said = blocks.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
                received.extend(said.map(str::to_owned));
            }
        }
    }
    received.retain(|said| !said.contains("<system-reminder>") && !said.starts_with("Available agent types"));
    received
}

async fn turn(world: &World, session: &str, prompt: &str) -> anyhow::Result<Value> {
    world.chat(session, prompt).await?;
    let ended = world.ended(session).await?;
    assert_eq!(ended["status"], "complete", "{ended:#}");
    Ok(ended)
}

async fn rendered(world: &World, session: &str) -> anyhow::Result<Vec<(String, String)>> {
    let render = json!({"session_id": session, "format": "messages"});
    let messages = world.call("arbor.render", render).await?["messages"].take();
    let message = |message: &Value| (text(&message["role"]), text(&message["content"][0]["text"]));
    Ok(messages.as_array().into_iter().flatten().map(message).collect())
}

fn pairs(said: &[(&str, &str)]) -> Vec<(String, String)> {
    said.iter().map(|(role, said)| ((*role).to_owned(), (*said).to_owned())).collect()
}

async fn both_branches_of_a_fork_continue_with_only_their_own_history(world: World) -> anyhow::Result<()> {
    let steps = ["Eins.", "Zwei.", "Drei."].map(Step::text);
    world.model.script("FORKED", steps.to_vec());
    let original = world.create("original", json!({"metadata": {"for": "the test"}})).await?;
    turn(&world, &original, "FORKED: first, grüße 世界").await?;
    let second = turn(&world, &original, "second of the original").await?;

    let forked =
        world.call("claudecode.fork", json!({"name": "original", "new_name": "branch", "at": 1})).await?;
    assert_eq!(forked["type"], "forked");
    let branch = text(&forked["id"]);
    let third = turn(&world, &branch, "second of the branch").await?;
    assert_eq!(received(&world, "FORKED"), ["FORKED: first, grüße 世界", "Eins.", "second of the branch"]);
    turn(&world, &original, "third of the original").await?;
    let all = received(&world, "FORKED");
    assert_eq!(
        all,
        ["FORKED: first, grüße 世界", "Eins.", "second of the original", "Zwei.", "third of the original"]
    );
    let sent = world.model.requests_for("FORKED").pop().unwrap_or_default().to_string();
    assert!(
        !sent.contains("Plexus runs other agents"),
        "a child without the hub's tools gets no instructions"
    );
    // The cost of a turn does not include the turns before it.
    let cost = |poll: &Value| events(poll, "complete")[0]["cost_usd"].as_f64().unwrap_or_default();
    assert!((cost(&third) - cost(&second)).abs() < 1e-9, "{} and {}", cost(&third), cost(&second));

    let first = [("user", "FORKED: first, grüße 世界"), ("assistant", "Eins.")];
    let here = [("user", "second of the branch"), ("assistant", "Zwei.")];
    assert_eq!(rendered(&world, &branch).await?, pairs(&[first, here].concat()));
    let there = [("user", "second of the original"), ("assistant", "Zwei.")];
    let later = [("user", "third of the original"), ("assistant", "Drei.")];
    assert_eq!(rendered(&world, &original).await?, pairs(&[first, there, later].concat()));
    let tree = world.call("arbor.tree_get", json!({"tree_id": forked["head"]["tree_id"]})).await?;
    assert_eq!(tree["tree"]["sessions"].as_array().map(Vec::len), Some(2), "{tree:#}");
    let shared = tree["nodes"].as_array().into_iter().flatten().find(|node| node["children"] == 2);
    assert_eq!(shared.map(|node| &node["id"]), Some(&forked["head"]["node_id"]), "{tree:#}");
    let found = world.call("arbor.search", json!({"query": "世界"})).await?;
    assert_eq!(found["found"].as_array().map(Vec::len), Some(1), "each text is stored once: {found}");

    // A fork of a branch without turns has the same history. A fork before the first turn has none.
    let twig = world.call("claudecode.fork", json!({"name": "branch", "new_name": "twig", "at": 0})).await?;
    assert_eq!(twig["head"], forked["head"]);
    turn(&world, &text(&twig["id"]), "second of the twig").await?;
    assert_eq!(received(&world, "FORKED"), ["FORKED: first, grüße 世界", "Eins.", "second of the twig"]);
    let fresh =
        world.call("claudecode.fork", json!({"name": "original", "new_name": "fresh", "at": 0})).await?;
    turn(&world, &text(&fresh["id"]), "FORKED: anew").await?;
    assert_eq!(received(&world, "FORKED"), ["FORKED: anew"]);
    for (at, kind) in [(json!(9), "turn_not_found"), (twig["id"].clone(), "node_not_found")] {
        let params = json!({"name": "original", "new_name": "never", "at": at});
        assert_eq!(world.refused("claudecode.fork", params).await?.kind.as_deref(), Some(kind), "{at}");
    }
    Ok(())
}

/// An agent that is killed in a call leaves a transcript without the result of the call and without the messages that it had not yet written.
async fn a_fork_starts_from_the_last_message_that_a_killed_agent_has_written(
    world: World,
) -> anyhow::Result<()> {
    let call = Step::tool("Bash", json!({"command": "true", "description": "a step"}));
    world.model.script("LOST", vec![Step::text("Eins."), call, Step::text("Zwei."), Step::text("Drei.")]);
    let original = world.create("original", json!({"policy": "allow_all"})).await?;
    turn(&world, &original, "LOST: first").await?;
    turn(&world, &original, "second").await?;
    world.call("claudecode.stop", json!({"session_id": original})).await?;
    let projects = std::fs::read_dir(world.home.join(".claude/projects"))?.flatten();
    let mut transcripts = projects.map(|project| project.path().join(format!("{original}.jsonl")));
    let transcript = transcripts.find(|path| path.exists()).context("the transcript")?;
    let written = std::fs::read_to_string(&transcript)?;
    let lines: Vec<&str> = written.split_inclusive('\n').collect();
    let called = lines.iter().position(|line| line.contains(r#""type":"tool_use""#)).context("the call")?;
    std::fs::write(&transcript, lines[..=called].concat())?;

    let fork = world.call("claudecode.fork", json!({"name": "original", "new_name": "fork"})).await?;
    turn(&world, &text(&fork["id"]), "third").await?;
    // Claude Code joins the two prompts with a line break.
    let received = received(&world, "LOST");
    let received: Vec<&str> = received.iter().map(|text| text.trim_end()).collect();
    assert_eq!(received, ["LOST: first", "Eins.", "second", "third"]);
    Ok(())
}

async fn a_rendered_conversation_shows_each_decision_with_its_call(world: World) -> anyhow::Result<()> {
    let bash = |command: &str| Step::tool("Bash", json!({"command": command, "description": "a step"}));
    world
        .model
        .script("DECIDED", vec![bash("touch größer.txt"), bash("touch never.txt"), Step::text("Fertig.")]);
    let session = world.create("decided", json!({})).await?;
    world.chat(&session, "DECIDED").await?;
    for (command, answer) in [
        (
            "touch größer.txt",
            json!({"approve": true, "updated_input": {"command": "touch größer.txt; echo größer!"}}),
        ),
        ("touch never.txt", json!({"approve": false, "message": "not that"})),
    ] {
        loop {
            let (_, asked) = world.asked(&session).await?;
            if asked["input"]["command"] == command {
                world.respond(&asked, answer).await?;
                break;
            }
        }
    }
    let ended = world.ended(&session).await?;
    assert_eq!(ended["status"], "complete", "{ended:#}");

    let path = world.call("arbor.path", json!({"session_id": session})).await?;
    let nodes = path["nodes"].as_array().cloned().unwrap_or_default();
    let roles: Vec<&str> = nodes.iter().filter_map(|node| node["role"].as_str()).collect();
    let expected = ["root", "user", "assistant", "user", "assistant", "user", "assistant", "outcome"];
    assert_eq!(roles, expected, "{path:#}");
    let decided = |node: &Value| node["content"][0]["decision"]["approval"].clone();
    let (allowed, denied) = (decided(&nodes[3]), decided(&nodes[5]));
    assert_eq!((&allowed["status"], &allowed["by"]["kind"]), (&json!("allowed"), &json!("operator")));
    assert_eq!(allowed["updated_input"], json!({"command": "touch größer.txt; echo größer!"}));
    assert_eq!((&denied["status"], &denied["message"]), (&json!("denied"), &json!("not that")));
    assert!(nodes[3]["content"][0]["content"].to_string().contains("größer!"), "{:#}", nodes[3]);
    assert_eq!(
        (&nodes[7]["content"]["status"], nodes[7]["content"]["usage"].is_object()),
        (&json!("complete"), true)
    );
    assert!(nodes[7]["content"]["cost_usd"].as_f64().is_some_and(|cost| cost > 0.0));
    assert_eq!(events(&ended, "complete")[0]["new_head"]["node_id"], nodes[7]["id"]);

    let render = async |format: &str| -> anyhow::Result<Value> {
        world.call("arbor.render", json!({"session_id": session, "format": format})).await
    };
    let markdown = text(&render("markdown").await?["text"]);
    for part in [
        "## User\n\n> DECIDED",
        "**Call** ` Bash `",
        "*allowed by operator*",
        "Ran with an edited input:",
        "*denied by operator: not that*",
        "Fertig.",
    ] {
        assert!(markdown.contains(part), "{part} in\n{markdown}");
    }
    let messages = render("messages").await?["messages"].take();
    assert_eq!(messages[2]["content"][0]["type"], "tool_result", "{messages:#}");
    assert!(!messages.to_string().contains("decision"), "decisions are not part of the exported messages");
    let plain = text(&render("text").await?["text"]);
    assert!(
        plain.contains("call: Bash {") && plain.contains("assistant: Fertig.\n--: complete, $"),
        "{plain}"
    );
    Ok(())
}
