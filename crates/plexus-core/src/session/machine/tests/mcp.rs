//! Approval requests over MCP.

use plexus_protocol::claudecode::{Channel, PolicyName};
use plexus_protocol::{ApprovalId, ApprovalStatus};
use plexus_store::{CallIds, Change};
use serde_json::json;
use tokio::sync::oneshot;

use super::fixtures::{allow, bash, decided, object, tool_result};
use super::harness::{Harness, Setup};
use crate::limits::Limits;
use crate::session::{Command, PermitCommand};
use crate::session::{NewStream, Permitted};

fn over_mcp(limits: Limits) -> Harness {
    let mut setup = Setup::policy(PolicyName::AskAll);
    setup.row.config.channel = Channel::Mcp;
    setup.limits = limits;
    let mut harness = setup.build();
    harness.prompt("go").unwrap();
    harness.initialized();
    harness.line(json!({"type": "control_response", "response": {"subtype": "success",
        "request_id": "plexus-mcp-status-1",
        "response": {"mcpServers": [{"name": "plexus", "status": "connected"}]}}}));
    harness.take_log();
    harness
}

#[test]
fn a_request_reads_the_lines_before_it_first() {
    let mut harness = over_mcp(Limits::default());
    harness.unread.push_back(bash("t", "ls"));
    let answer = harness.permit(1, "t", "ls");
    harness.expect(&["store call t: ask", "send g-t: ask", "store ask about t", "reply"]);
    assert_eq!(decided(answer), "waiting");
}

#[test]
fn each_wrong_request_is_denied() {
    for (run, at_gate, asked, expected) in [
        (1, None, "ls", "deny: This call did not pass the gate, so it is denied."),
        (2, Some("ls"), "ls", "deny: The run of this call has ended, so it is denied."),
        (1, Some("ls"), "ls", "waiting"),
    ] {
        let mut harness = over_mcp(Limits::default());
        at_gate.into_iter().for_each(|command| harness.line(bash("t", command)));
        assert_eq!(decided(harness.permit(run, "t", asked)), expected);
    }
}

#[test]
fn a_request_after_the_result_is_denied() {
    let mut harness = over_mcp(Limits::default());
    harness.line(bash("t", "ls"));
    drop(harness.permit(1, "t", "ls"));
    harness.resolve("t", ApprovalStatus::Allowed, allow());
    harness.line(tool_result("t"));
    let replayed = harness.permit(1, "t", "ls");
    assert_eq!(decided(replayed), "deny: This call did not pass the gate, so it is denied.");
}

#[test]
fn the_same_request_again_waits_for_the_same_approval() {
    let mut harness = over_mcp(Limits::default());
    harness.line(bash("t", "ls"));
    let ids: Vec<ApprovalId> = (0..2)
        .map(|_| match harness.permit(1, "t", "ls").try_recv() {
            Ok(Permitted::Waiting(id)) => id,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ids[0], ids[1]);
    let asked = harness.stored.iter().filter(|change| matches!(change, Change::Ask(_))).count();
    assert_eq!(asked, 1);
}

#[test]
fn a_request_with_another_input_is_denied_and_recorded() {
    let mut harness = over_mcp(Limits::default());
    harness.line(bash("t", "ls"));
    drop(harness.permit(1, "t", "ls"));
    harness.take_log();
    let other = harness.permit(1, "t", "rm x");
    assert_eq!(
        decided(other),
        "deny: This call already had an approval request with a different input, so it is denied."
    );
    harness.expect(&["store system ask_mismatch", "reply"]);
}

#[test]
fn a_request_beyond_a_limit_is_denied() {
    let mut harness = over_mcp(Limits { open_approvals: 0, ..Limits::default() });
    harness.line(bash("t", "ls"));
    harness.take_log();
    assert!(
        decided(harness.permit(1, "t", "ls"))
            .starts_with("deny: This call did not run, because no approval could be requested")
    );
    harness.expect(&["store system ask_denied", "reply"]);
}

#[test]
fn the_stream_of_a_request_is_durable_with_its_approval() {
    let mut harness = over_mcp(Limits::default());
    harness.line(bash("t", "ls"));
    harness.take_log();
    let (reply, mut answer) = oneshot::channel();
    let stream =
        NewStream { stream_id: "e".to_owned(), ids: CallIds { jsonrpc_id: json!(1), progress_token: None } };
    let input = object(json!({"command": "ls"}));
    let params = plexus_protocol::loopback::PermitParams {
        tool_name: "Bash".to_owned(),
        tool_use_id: "t".to_owned(),
        input,
    };
    harness.command(Command::Permit(Box::new(PermitCommand { run: 1, params, stream: Some(stream), reply })));
    harness.expect(&["store ask about t, stream", "reply"]);
    assert!(matches!(answer.try_recv(), Ok(Permitted::Waiting(_))));
}

#[test]
fn a_process_outside_the_hub_requests_permits_without_the_gate() {
    let mut harness = Setup::policy(PolicyName::AskAll).build();
    let (reply, mut token) = oneshot::channel();
    harness.command(Command::Configure { token: "secret".to_owned(), reply });
    assert_eq!(token.try_recv().unwrap().unwrap(), "secret");
    harness.expect(&["store begin run 1 (External)", "reply"]);
    assert_eq!(decided(harness.permit(1, "t", "ls")), "waiting");
    let (reply, mut stopped) = oneshot::channel();
    harness.command(Command::Stop { why: "enough".to_owned(), reply });
    stopped.try_recv().expect("stopped");
    assert_eq!(
        decided(harness.permit(1, "t", "ls")),
        "deny: The run of this call has ended, so it is denied."
    );
}

#[test]
fn a_lost_permit_withdraws_its_approval_and_interrupts_the_child() {
    let mut harness = over_mcp(Limits::default());
    harness.line(bash("t", "ls"));
    drop(harness.permit(1, "t", "ls"));
    let approval = harness.asked("t").approval.id;
    harness.take_log();
    harness.command(Command::PermitLost(approval));
    harness.expect(&["store Withdrawn if pending", "send interrupt"]);
    assert!(harness.machine.turn.as_ref().unwrap().progress.permit_lost);
}

#[test]
fn a_lost_permit_is_withdrawn_if_its_call_already_has_a_result() {
    let mut harness = over_mcp(Limits::default());
    harness.line(bash("t", "ls"));
    drop(harness.permit(1, "t", "ls"));
    let approval = harness.asked("t").approval.id;
    let mut failed = tool_result("t");
    failed["message"]["content"][0]["is_error"] = json!(true);
    harness.unread.push_back(failed);
    harness.take_log();
    harness.command(Command::PermitLost(approval));
    harness.expect(&["store Withdrawn if pending, free t, tool_result"]);
}
