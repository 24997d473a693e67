//! A real `claude` as a parent that manages its children: it cannot wait for itself, it changes, interrupts and deletes its
//! children, and their names belong to it.

use anyhow::Context as _;
use plexus_e2e::{World, over, text};
use plexus_testkit::model::{Step, tool_results};
use serde_json::{Value, json};

use super::{ParentSetup, call, call_of_the_child, create_child, script_child};

over!(parents: a_parent_updates_interrupts_and_deletes_its_child, two_parents_each_have_a_worker);

/// The JSON results of the hub's tools, without the messages of a CLI whose tools are not connected yet.
fn hub_results(request: &Value) -> Vec<Value> {
    let results = tool_results(request);
    let read = results.iter().filter_map(|result| serde_json::from_str::<Value>(&result.text).ok());
    read.filter(Value::is_object).collect()
}

/// The next step of a parent that manages a child: each result leads to the next call.
fn manage(request: &Value, create: &Value) -> Step {
    let results = hub_results(request);
    let child = results.first().map(|created| created["id"].clone());
    let prompt = json!({"session_id": child, "prompt": "CHILD-WORK: make the file"});
    match results.len() {
        0 => create_child(request, create),
        1 => {
            let (mode, model) = ("acceptEdits", "sonnet");
            let update =
                json!({"session_id": child, "new_name": "helper", "permission_mode": mode, "model": model});
            call("claudecode_update", update)
        }
        2 => call("claudecode_chat_async", prompt),
        3 => call("claudecode_get", json!({"name": "helper"})),
        4 => call("claudecode_interrupt", json!({"name": "helper"})),
        5 => call("claudecode_get", json!({"name": "helper"})),
        6 => call("claudecode_delete", json!({"name": "helper"})),
        7 => call("claudecode_list", json!({})),
        _ => Step::text("Done."),
    }
}

async fn a_parent_updates_interrupts_and_deletes_its_child(world: World) -> anyhow::Result<()> {
    // The operator has sessions with the same names, and the parent does not meet them.
    for taken in ["child", "helper"] {
        world.create(taken, json!({})).await?;
    }
    let create = json!({"name": "child", "working_dir": world.work});
    let step = Step::from_fn(move |request| manage(request, &create));
    world.model.script("SUPERVISE", vec![step; 20]);
    let (held, _hold) = Step::hold(call_of_the_child());
    script_child(&world.model, held);
    let place = ParentSetup::of(&world)?;
    let report = place.start(&place.server()?, &[])?.ended().await?;

    let last = world.model.requests_for("SUPERVISE").pop().context("a request of the parent")?;
    assert_eq!(report.said, "Done.", "{:#?}", tool_results(&last));
    let results = hub_results(&last);
    assert_eq!(results[1]["updated"], json!(["new_name", "permission_mode", "model"]), "{results:#?}");
    let (running, interrupted) = (&results[3]["session"], &results[5]["session"]);
    assert_eq!(
        (&running["name"], &running["permission_mode"], &running["model"], &running["status"]),
        (&json!("helper"), &json!("acceptEdits"), &json!("sonnet"), &json!("running")),
    );
    assert_eq!(interrupted["status"], "interrupted");
    assert_eq!(results[6]["type"], "ok", "{results:#?}");
    assert_eq!(results[7]["sessions"], json!([]), "the child was deleted");
    let left = world.call("claudecode.list", json!({})).await?;
    let left: Vec<String> =
        left["sessions"].as_array().into_iter().flatten().map(|one| text(&one["path"])).collect();
    assert_eq!(left, ["child", "helper"]);
    Ok(())
}

/// The next step of a parent that supervises its `worker`. It first tries the call that would wait for itself.
fn supervise_worker(request: &Value, create: &Value) -> Step {
    let results = hub_results(request);
    let Some(worker) = results.first().map(|created| created["id"].clone()) else {
        return create_child(request, create);
    };
    let prompt = json!({"session_id": worker, "prompt": "CHILD-WORK: make the file"});
    if !tool_results(request).iter().any(|result| is_refusal_of_chat(&result.text)) {
        return call("claudecode_chat", prompt);
    }
    if results.len() == 1 {
        return call("claudecode_chat_async", prompt);
    }
    let last = results.last().unwrap_or(&Value::Null);
    if last["finished"].get(0).is_some() {
        return Step::text("Done.");
    }
    match last["approvals"].get(0) {
        Some(asked) => call("loopback_respond", json!({"approval_id": asked["id"], "approve": true})),
        None => {
            let cursor = results.iter().rev().find_map(|result| result["cursor"].as_u64());
            call("loopback_wait", json!({"cursor": cursor, "timeout_ms": 50_000}))
        }
    }
}

/// Claude Code's answer to a call of a tool that the hub does not offer.
fn is_refusal_of_chat(text: &str) -> bool {
    text.contains("No such tool available: mcp__plexus__claudecode_chat")
}

async fn two_parents_each_have_a_worker(world: World) -> anyhow::Result<()> {
    let create = json!({"name": "worker", "working_dir": world.work});
    let step = Step::from_fn(move |request| supervise_worker(request, &create));
    world.model.script("SUPERVISE", vec![step; 60]);
    script_child(&world.model, call_of_the_child());
    let place = ParentSetup::of(&world)?;
    let parents = [place.start(&place.server()?, &[])?, place.start(&place.server()?, &[])?];
    let [one, other] = parents.map(super::Parent::ended);
    let (one, other) = tokio::join!(one, other);
    let (one, other) = (one?, other?);

    assert_eq!((one.said.as_str(), other.said.as_str()), ("Done.", "Done."));
    let offered = world.model.requests_for("SUPERVISE").pop().context("a request of a parent")?;
    let offered: Vec<String> =
        offered["tools"].as_array().into_iter().flatten().map(|tool| text(&tool["name"])).collect();
    assert!(!offered.contains(&"mcp__plexus__claudecode_chat".to_owned()), "{offered:?}");
    // The operator sees both, and tells them apart by the parent above each.
    let mut expected = [&one, &other].map(|parent| format!("{}/worker", text(&parent.session)));
    expected.sort();
    let list = world.call("claudecode.list", json!({})).await?;
    let paths = list["sessions"].as_array().into_iter().flatten().map(|one| text(&one["path"]));
    let mut paths: Vec<String> = paths.collect();
    paths.sort();
    assert_eq!(paths, expected);
    let decided = world.call("audit.list", json!({"kind": "decision"})).await?;
    let decided = decided["rows"].as_array().into_iter().flatten();
    let mut decided: Vec<String> = decided.map(|row| text(&row["entry"]["session_path"])).collect();
    decided.sort();
    assert_eq!(decided, expected);
    let ambiguous = world.refused("claudecode.get", json!({"name": "worker"})).await?;
    assert_eq!(ambiguous.data["paths"], json!(expected), "{ambiguous}");
    Ok(())
}
