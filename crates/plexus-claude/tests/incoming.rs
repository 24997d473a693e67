//! The output of the real CLIs is parsed correctly.
//!
//! The fixtures are the complete stdout of a short session with each pinned version and a scripted model: an allowed Bash call, a Read
//! without a permission request, a second prompt whose Bash call was denied with `interrupt`, and two requests that the CLI refuses.

use plexus_claude::{
    Block, CanUseTool, Incoming, Line, LineSplitter, PreToolUse, Request, RequestBody, Response, parse,
    parse_oversized,
};
use serde_json::{Value, json};

fn messages(fixture: &str) -> Vec<Incoming> {
    let mut messages = Vec::new();
    LineSplitter::new(0, 1 << 20).feed(fixture.as_bytes(), |line| match line {
        Line::Whole { bytes, .. } => messages.push(parse(bytes)),
        Line::Oversized { .. } => panic!("no fixture line is that long"),
    });
    messages
}

/// A short description of a message.
fn brief(message: &Incoming) -> String {
    let blocks = |blocks: &[Block]| {
        let names = blocks.iter().map(|block| match block {
            Block::Text { text } => format!("text({text})"),
            Block::Thinking { .. } => "thinking".to_owned(),
            Block::ToolUse { id, name, .. } => format!("use({name} {id})"),
            Block::ToolResult { tool_use_id, is_error, .. } => {
                format!("{}({tool_use_id})", if *is_error { "failed" } else { "done" })
            }
            Block::Other { kind, .. } => format!("other({kind})"),
        });
        names.collect::<Vec<_>>().join(" ")
    };
    match message {
        Incoming::Request(Request { body, .. }) => match body {
            RequestBody::Ask(ask) => format!("ask {} {}", ask.tool_name, ask.tool_use_id),
            RequestBody::Gate(gate) => format!("gate {} {}", gate.tool_name, gate.tool_use_id),
            other => format!("{other:?}"),
        },
        Incoming::Response(Response { request_id, outcome }) => {
            let id = if request_id.starts_with("0000") { "theirs" } else { request_id };
            format!("response {id} {}", if outcome.is_ok() { "ok" } else { "refused" })
        }
        Incoming::System(system) => match system.data.get("state").and_then(Value::as_str) {
            Some(state) => format!("state {state}"),
            None => format!("system {}", system.subtype),
        },
        Incoming::Assistant(assistant) => format!("assistant {}", blocks(&assistant.blocks)),
        Incoming::User(user) if user.is_replay => {
            format!("receipt {} {}", &user.uuid.as_deref().unwrap_or("?")[..4], blocks(&user.blocks))
        }
        Incoming::User(user) => format!("user {}", blocks(&user.blocks)),
        Incoming::Result(result) => {
            let reason = result.terminal_reason.as_deref().unwrap_or("?");
            format!("result {} {reason} denials={}", result.subtype, result.permission_denials.len())
        }
        Incoming::Delta(_) => "delta".to_owned(),
        Incoming::Other { kind, .. } => format!("other {kind}"),
        Incoming::Cancel { .. } => "cancel".to_owned(),
        Incoming::KeepAlive => "keep_alive".to_owned(),
        Incoming::Rubbish { text } => format!("rubbish {text}"),
        Incoming::Blank => "blank".to_owned(),
    }
}

/// The messages that both versions send in the same order. Deltas, lifecycle notices and state changes differ.
const COMMON: &[&str] = &[
    "response init-1 ok",
    "receipt 1111 text(Make the file made.txt. é 漢 🎈)",
    "assistant text(I make the file: é 漢 🎈.)",
    "assistant use(Bash toolu_0001_1)",
    "gate Bash toolu_0001_1",
    "response theirs ok",
    "ask Bash toolu_0001_1",
    "response theirs ok",
    "user done(toolu_0001_1)",
    "assistant use(Read toolu_0002_0)",
    "gate Read toolu_0002_0",
    "response theirs ok",
    "user done(toolu_0002_0)",
    "assistant text(Done.)",
    "result success completed denials=0",
    "receipt 2222 text(Now @) text(other.txt)",
    "assistant use(Bash toolu_0004_0)",
    "gate Bash toolu_0004_0",
    "response theirs ok",
    "ask Bash toolu_0004_0",
    "response theirs ok",
    "user failed(toolu_0004_0)",
    "user text([Request interrupted by user for tool use])",
    "result error_during_execution aborted_tools denials=1",
];

#[track_caller]
fn reads_as_common(fixture: &str, mode_outcome: &str) {
    let all: Vec<_> = messages(fixture).iter().map(brief).collect();
    let noise = ["system", "state", "delta", "other command_lifecycle"];
    let seen: Vec<_> =
        all.iter().filter(|brief| !noise.iter().any(|noise| brief.starts_with(noise))).collect();
    let mut expected = COMMON.to_vec();
    let mode = format!("response mode-1 {mode_outcome}");
    expected.extend([mode.as_str(), "response bad-1 refused"]);
    assert_eq!(seen, expected);
    let states: Vec<_> = all.iter().filter(|brief| brief.starts_with("state")).collect();
    let turn = ["state running", "state requires_action", "state running", "state idle"];
    assert_eq!(states, [turn, turn].concat());
    assert_eq!(all.iter().filter(|brief| *brief == "delta").count(), 3);
    assert_eq!(all.iter().filter(|brief| *brief == "system init").count(), 2);
}

const OLD: &str = include_str!("fixtures/2.1.197.jsonl");
const NEW: &str = include_str!("fixtures/2.1.325.jsonl");

#[test]
fn every_line_of_a_session_of_2_1_197_is_parsed() {
    // This version accepts any text as a mode.
    reads_as_common(OLD, "ok");
}

#[test]
fn every_line_of_a_session_of_2_1_325_is_parsed() {
    reads_as_common(NEW, "refused");
}

#[test]
fn the_real_gate_callback_and_permission_request_have_all_fields() {
    for fixture in [OLD, NEW] {
        let messages = messages(fixture);
        let bodies = messages.iter().filter_map(|message| match message {
            Incoming::Request(request) => Some(&request.body),
            _ => None,
        });
        let bodies: Vec<_> = bodies.collect();
        let input = json!({"command": "touch made.txt", "description": "Make a file"});
        let RequestBody::Gate(gate) = bodies[0] else { panic!("{bodies:?}") };
        let expected = PreToolUse {
            tool_name: "Bash".into(),
            tool_use_id: "toolu_0001_1".into(),
            input: input.as_object().unwrap().clone(),
            cwd: Some("/project".into()),
            permission_mode: Some("default".into()),
            agent_id: None,
        };
        assert_eq!(**gate, expected);
        let RequestBody::Ask(ask) = bodies[1] else { panic!("{bodies:?}") };
        assert_eq!(ask.permission_suggestions.as_ref().unwrap()[0]["rules"][0]["toolName"], "Bash");
        let expected = CanUseTool {
            tool_name: "Bash".into(),
            tool_use_id: "toolu_0001_1".into(),
            input: input.as_object().unwrap().clone(),
            permission_suggestions: ask.permission_suggestions.clone(),
            blocked_path: Some("/project/made.txt".into()),
            decision_reason: None,
            decision_reason_type: None,
            agent_id: None,
            matched_ask_rule: None,
            requires_user_interaction: None,
        };
        assert_eq!(**ask, expected);
    }
}

#[test]
fn the_real_results_have_text_usage_cost_and_errors() {
    for (fixture, uuid) in [(OLD, None), (NEW, Some("11111111-1111-4111-8111-111111111111"))] {
        let results = messages(fixture).into_iter().filter_map(|message| match message {
            Incoming::Result(result) => Some(result),
            _ => None,
        });
        let [done, denied] = results.collect::<Vec<_>>().try_into().unwrap();
        assert_eq!((done.result.as_deref(), done.num_turns, done.is_error), (Some("Done."), Some(3), false));
        assert_eq!((&done.usage["input_tokens"], &done.usage["output_tokens"]), (&json!(30), &json!(15)));
        assert!(done.total_cost_usd.unwrap() > 0.0);
        assert_eq!(done.user_message_uuid.as_deref(), uuid);
        assert_eq!((denied.is_error, denied.result), (true, None));
        assert_eq!(denied.errors.len(), 1);
        assert_eq!(denied.permission_denials[0]["tool_use_id"], "toolu_0004_0");
    }
}

#[test]
fn every_real_line_keeps_its_ids_when_it_is_parsed_as_oversized() {
    for line in OLD.lines().chain(NEW.lines()) {
        let slim = parse_oversized(line.as_bytes(), line.len() as u64);
        match (parse(line.as_bytes()), slim) {
            (Incoming::Request(whole), Incoming::Request(slim)) => {
                assert_eq!(slim.request_id, whole.request_id);
                match (whole.body, slim.body) {
                    (RequestBody::Ask(_), RequestBody::InvalidPermissionRequest { .. }) => {}
                    (RequestBody::Gate(_), RequestBody::InvalidGateRequest { .. }) => {}
                    other => panic!("{other:?}"),
                }
            }
            (Incoming::Response(whole), Incoming::Response(slim)) => {
                assert_eq!(slim.request_id, whole.request_id);
                assert_eq!(slim.outcome.is_ok(), whole.outcome.is_ok());
            }
            (Incoming::System(whole), Incoming::System(slim)) => {
                assert_eq!((slim.subtype, &slim.data["uuid"]), (whole.subtype, &whole.data["uuid"]));
                assert_eq!(slim.data["oversized"], line.len());
            }
            (Incoming::Assistant(_), Incoming::Assistant(_)) | (Incoming::User(_), Incoming::User(_)) => {
                let slim = parse_oversized(line.as_bytes(), line.len() as u64);
                assert_eq!(brief(&slim), brief(&parse(line.as_bytes())));
            }
            (Incoming::Result(mut whole), Incoming::Result(mut slim)) => {
                assert_eq!(slim.usage["input_tokens"], whole.usage["input_tokens"]);
                slim.usage = whole.usage.clone();
                for denial in &mut whole.permission_denials {
                    denial.as_object_mut().unwrap().remove("tool_input");
                }
                assert_eq!(slim, whole);
            }
            (Incoming::Delta(_), Incoming::Other { kind, .. }) => assert_eq!(kind, "stream_event"),
            (Incoming::Other { kind, .. }, Incoming::Other { kind: slim, data }) => {
                assert_eq!((slim, Value::Object(data)), (kind, json!({"oversized": line.len()})));
            }
            other => panic!("{other:?}"),
        }
    }
}
