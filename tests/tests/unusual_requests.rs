//! A child that sends an unknown request, withdraws a permission request, sends several at once and floods the hub with
//! events. Each request gets one answer, and every event is stored in the order in which it was written.

use std::collections::HashMap;

use anyhow::Context as _;
use plexus_e2e::{Setup, events, script, text};
use serde_json::{Value, json};

const FLOOD: usize = 10_000;

#[tokio::test]
async fn every_request_is_answered_once_and_no_event_is_lost() -> anyhow::Result<()> {
    let world = Setup::scripted().world("every_request_is_answered_once_and_no_event_is_lost").await?;
    let world = world.context("the scripted agent is always available")?;
    let call = |n: usize| json!({"tool": "Bash", "input": {"command": format!("echo {n}")}, "id": format!("toolu_{n}")});
    let steps = json!([
        {"unknown_request": "make_coffee"},
        {"cancel_open": true, "wait_file": "take-back"},
        {"tools": (0..8).map(call).collect::<Vec<_>>(), "parallel": true},
        {"flood": {"events": FLOOD, "bytes": 50}},
        {"say": "done"},
    ]);
    let session = world.create("wild", json!({"prompt": script(&steps)})).await?;

    let (_, withdrawn_approval) = world.asked(&session).await?;
    std::fs::write(world.file("take-back"), "")?;
    let eight = world
        .poll_until(&session, |poll| {
            let open = poll["pending_approvals"].as_array().map_or(0, Vec::len);
            let withdrawn =
                events(poll, "approval_resolved").iter().any(|event| event["status"] == "withdrawn");
            withdrawn && open == 8
        })
        .await?;
    let open = eight["pending_approvals"].as_array().context("eight approvals")?;
    assert!(open.iter().all(|approval| approval["id"] != withdrawn_approval["id"]));
    // Half of them are allowed, half denied, in reverse order.
    let decisions: Vec<Value> = open
        .iter()
        .rev()
        .enumerate()
        .map(|(n, approval)| json!({"approval_id": approval["id"], "approve": n % 2 == 0}))
        .collect();
    let wanted: HashMap<String, bool> = open
        .iter()
        .rev()
        .enumerate()
        .map(|(n, approval)| (text(&approval["tool_use_id"]), n % 2 == 0))
        .collect();
    world.call("loopback.respond", json!({"decisions": decisions})).await?;

    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "complete");
    let all = json!({"session_id": session, "from_seq": 0, "limit": 10_000, "turn": 1});
    let mut told =
        world.call("claudecode.poll", all).await?["events"].as_array().cloned().unwrap_or_default();
    let rest = json!({"session_id": session, "from_seq": told.len(), "limit": 10_000, "turn": 1});
    told.extend(world.call("claudecode.poll", rest).await?["events"].as_array().cloned().unwrap_or_default());
    let seqs: Vec<Option<u64>> = told.iter().map(|event| event["seq"].as_u64()).collect();
    assert_eq!(seqs, (0..told.len() as u64).map(Some).collect::<Vec<_>>());

    let of_kind = |kind: &'static str| {
        told.iter().map(|told| &told["event"]).filter(move |event| event["type"] == kind)
    };
    let kinds: Vec<&Value> = of_kind("content").collect();
    assert!(text(&kinds[0]["text"]).starts_with("make_coffee was answered with error:"), "{}", kinds[0]);
    let flood: Vec<usize> =
        kinds.iter().filter_map(|event| event["text"].as_str()?.split_once('x')?.0.parse().ok()).collect();
    assert_eq!(flood, (0..FLOOD).collect::<Vec<_>>(), "nothing lost, order kept");
    assert_eq!(kinds.last().map(|event| text(&event["text"])).as_deref(), Some("done"));
    let results: HashMap<String, bool> = of_kind("tool_result")
        .filter(|result| result["tool_use_id"] != withdrawn_approval["tool_use_id"])
        .map(|result| (text(&result["tool_use_id"]), result["is_error"] != true))
        .collect();
    assert_eq!(results, wanted, "each got its own answer");
    let resolved = of_kind("approval_resolved").count();
    assert_eq!((of_kind("approval_requested").count(), resolved), (9, 9));

    let journal = std::fs::read_to_string(world.run_dir(&session, 1).join("journal.jsonl"))?;
    let asked: Vec<Value> = journal
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|line| line["type"] == "control_request")
        .collect();
    let outbox = std::fs::read_to_string(world.run_dir(&session, 1).join("outbox.jsonl"))?;
    let replies: Vec<Value> = outbox
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .map(|line| line["response"]["request_id"].clone())
        .filter(|id| !id.is_null())
        .collect();
    for request in &asked {
        let answers = replies.iter().filter(|id| **id == request["request_id"]).count();
        // A withdrawn request gets no answer.
        let taken_back = request["request"]["subtype"] == "can_use_tool"
            && request["request"]["tool_use_id"] == withdrawn_approval["tool_use_id"];
        assert_eq!(answers, usize::from(!taken_back), "{request}");
    }
    Ok(())
}
