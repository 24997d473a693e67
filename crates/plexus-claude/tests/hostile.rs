//! Invalid lines: none is parsed as something harmless, and none stops the parser.

use plexus_claude::{Block, Hunk, Incoming, Request, RequestBody, parse, parse_oversized};
use serde_json::{Value, json};

fn body(request: Value) -> RequestBody {
    let line = json!({"type": "control_request", "request_id": "r", "request": request}).to_string();
    match parse(line.as_bytes()) {
        Incoming::Request(Request { request_id, body }) if request_id == "r" => body,
        other => panic!("{other:?}"),
    }
}

fn with(mut value: Value, pointer: &str, field: &str, to: Value) -> Value {
    let Some(object) = value.pointer_mut(pointer) else { panic!("no {pointer} in {value}") };
    object[field] = to;
    value
}

fn ask() -> Value {
    json!({"subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": "t", "input": {"command": "ls"}})
}

fn gate() -> Value {
    json!({"subtype": "hook_callback", "callback_id": "plexus_gate", "input": {
        "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "t", "tool_input": {"command": "ls"}}})
}

#[test]
fn an_invalid_permission_request_is_marked_as_bad() {
    assert!(matches!(body(ask()), RequestBody::Ask(_)));
    for field in ["tool_name", "tool_use_id", "input"] {
        for odd in [json!(null), json!(7), json!([]), json!("")] {
            let body = body(with(ask(), "", field, odd));
            assert!(matches!(body, RequestBody::InvalidPermissionRequest { .. }), "{field}: {body:?}");
        }
    }
}

#[test]
fn an_invalid_optional_field_is_omitted_except_a_matched_ask_rule() {
    let fields =
        ["blocked_path", "decision_reason", "decision_reason_type", "agent_id", "requires_user_interaction"];
    let odd = fields.into_iter().fold(ask(), |ask, field| with(ask, "", field, json!([1])));
    let RequestBody::Ask(read) = body(with(odd, "", "matched_ask_rule", json!("odd"))) else { panic!() };
    assert_eq!((read.blocked_path, read.agent_id, read.requires_user_interaction), (None, None, None));
    assert_eq!(read.matched_ask_rule, Some(json!("odd")));
}

#[test]
fn a_callback_that_is_not_clearly_ours_is_marked_as_bad() {
    assert!(matches!(body(gate()), RequestBody::Gate(_)));
    let inner = ["hook_event_name", "tool_name", "tool_use_id", "tool_input"];
    let fields = inner.map(|field| ("/input", field)).into_iter().chain([("", "callback_id"), ("", "input")]);
    for (pointer, field) in fields {
        for odd in [json!(null), json!(7), json!([]), json!("PostToolUse")] {
            if field.starts_with("tool_") && field != "tool_input" && odd.is_string() {
                continue;
            }
            let body = body(with(gate(), pointer, field, odd));
            assert!(matches!(body, RequestBody::InvalidGateRequest { .. }), "{field}: {body:?}");
        }
    }
}

#[test]
fn the_call_id_may_be_in_either_field_but_must_not_differ() {
    let outer_only = with(with(gate(), "", "tool_use_id", json!("t")), "/input", "tool_use_id", json!(null));
    assert!(matches!(body(outer_only), RequestBody::Gate(gate) if gate.tool_use_id == "t"));
    let both = with(gate(), "", "tool_use_id", json!("t"));
    assert!(matches!(body(both), RequestBody::Gate(_)));
    let differing = with(gate(), "", "tool_use_id", json!("u"));
    assert!(matches!(body(differing), RequestBody::InvalidGateRequest { .. }));
}

#[test]
fn a_request_without_a_subtype_is_treated_as_a_bad_gate_callback() {
    for request in [json!({}), json!(null), json!([]), json!({"subtype": 1})] {
        assert!(matches!(body(request), RequestBody::InvalidGateRequest { .. }));
    }
    assert_eq!(
        body(json!({"subtype": "elicitation"})),
        RequestBody::Unknown { subtype: "elicitation".into() }
    );
}

#[test]
fn messages_that_are_not_understood_are_kept_whole() {
    let lines = [
        r#"{"type":"control_request","request":{"subtype":"can_use_tool"}}"#,
        r#"{"type":"control_response","response":{"subtype":"success"}}"#,
        r#"{"type":"control_cancel_request","request_id":7}"#,
        r#"{"type":"user","message":{"content":7}}"#,
        r#"{"type":"assistant"}"#,
        r#"{"type":"brand_new","x":[1,{"y":null}]}"#,
        r#"{"type":["odd"]}"#,
        r#"{}"#,
    ];
    for line in lines {
        let Incoming::Other { kind, data } = parse(line.as_bytes()) else { panic!("{line}") };
        assert_eq!(Value::Object(data), serde_json::from_str::<Value>(line).unwrap());
        assert!(line.contains(&kind));
    }
}

#[test]
fn a_block_of_an_unknown_kind_is_kept_beside_known_ones() {
    let blocks = json!([{"type":"text","text":"a"},{"type":"new","x":1},"bare",{"type":"tool_use","id":"i"},
        {"type":"tool_result","tool_use_id":"t","is_error":"yes"},{"type":"thinking","thinking":"h"}]);
    let line = json!({"type": "assistant", "message": {"id": "m", "content": blocks}}).to_string();
    let Incoming::Assistant(assistant) = parse(line.as_bytes()) else { panic!() };
    let object = |value: Value| value.as_object().unwrap().clone();
    let expected = [
        Block::Text { text: "a".into() },
        Block::Other { kind: "new".into(), data: object(json!({"type":"new","x":1})) },
        Block::Other { kind: String::new(), data: object(json!({"value":"bare"})) },
        Block::Other { kind: "tool_use".into(), data: object(json!({"type":"tool_use","id":"i"})) },
        // A result without a clear error flag counts as successful.
        Block::ToolResult { tool_use_id: "t".into(), content: Value::Null, is_error: false },
        Block::Thinking { text: "h".into() },
    ];
    assert_eq!(assistant.blocks, expected);
}

#[test]
fn a_line_that_is_not_an_object_is_garbage_and_truncated() {
    for line in ["x", "[1]", "7", "null", "\"text\"", "{\"a\":1} {}", "{\"type\":\"user\""] {
        assert_eq!(parse(line.as_bytes()), Incoming::Rubbish { text: line.into() });
    }
    assert_eq!(parse(b"\xff\xfe"), Incoming::Rubbish { text: "\u{fffd}\u{fffd}".into() });
    let Incoming::Rubbish { text } = parse(&[0xff; 100_000]) else { panic!() };
    assert!(text.len() <= 4096);
    for blank in ["", " ", "\t\r"] {
        assert_eq!(parse(blank.as_bytes()), Incoming::Blank);
    }
}

#[test]
fn text_that_was_cut_inside_an_emoji_is_still_parsed() {
    let line = br#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"x\ud83d"}]}}"#;
    let Incoming::User(user) = parse(line) else { panic!() };
    let content = json!("x\u{fffd}");
    assert_eq!(user.blocks, [Block::ToolResult { tool_use_id: "t".into(), content, is_error: false }]);
}

#[test]
fn a_permission_request_nested_too_deeply_is_marked_as_bad() {
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    for (subtype, input) in [("can_use_tool", deep.as_str()), ("hook_callback", r#"{"n":1e999}"#)] {
        let line = format!(
            r#"{{"type":"control_request","request":{{"subtype":"{subtype}","input":{input}}},"request_id":"r"}}"#
        );
        let Incoming::Request(Request { request_id, body }) = parse(line.as_bytes()) else { panic!() };
        assert_eq!(request_id, "r");
        assert!(
            matches!(
                body,
                RequestBody::InvalidPermissionRequest { .. } | RequestBody::InvalidGateRequest { .. }
            ),
            "{body:?}"
        );
    }
}

#[test]
fn the_last_of_two_equal_keys_counts() {
    let line = br#"{"type":"x","type":"control_cancel_request","request_id":"a","request_id":"b"}"#;
    let cancel = Incoming::Cancel { request_id: "b".into() };
    assert_eq!(parse(line), cancel);
    assert_eq!(parse_oversized(&line[..], line.len() as u64), cancel);
}

/// A line of 64 MB that is generated while it is read.
fn huge(before: &str, after: &str) -> (impl std::io::Read, u64) {
    use std::io::Read;
    let bulk = 64 * 1024 * 1024;
    let reader = std::io::Cursor::new(before.to_owned().into_bytes())
        .chain(std::io::repeat(b'x').take(bulk))
        .chain(std::io::Cursor::new(after.to_owned().into_bytes()));
    (reader, before.len() as u64 + bulk + after.len() as u64)
}

#[test]
fn a_permission_request_of_64_megabytes_is_marked_as_bad_with_its_id() {
    for subtype in ["can_use_tool", "hook_callback"] {
        let before = format!(r#"{{"request":{{"subtype":"{subtype}","input":{{"command":""#);
        let (reader, len) = huge(&before, r#""}},"request_id":"r","type":"control_request"}"#);
        let Incoming::Request(Request { request_id, body }) = parse_oversized(reader, len) else { panic!() };
        assert_eq!(request_id, "r");
        match body {
            RequestBody::InvalidPermissionRequest { why } if subtype == "can_use_tool" => {
                assert!(why.contains(&len.to_string()))
            }
            RequestBody::InvalidGateRequest { why } if subtype == "hook_callback" => {
                assert!(why.contains(&len.to_string()))
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_tool_result_of_64_megabytes_keeps_its_call() {
    let before = r#"{"type":"user","message":{"content":[{"type":"tool_result","content":""#;
    let (reader, len) = huge(before, r#"","tool_use_id":"t","is_error":true}]},"parent_tool_use_id":"p"}"#);
    let Incoming::User(user) = parse_oversized(reader, len) else { panic!() };
    assert_eq!(user.parent_tool_use_id.as_deref(), Some("p"));
    let [Block::ToolResult { tool_use_id, content, is_error: true }] = &user.blocks[..] else { panic!() };
    assert_eq!((tool_use_id.as_str(), content), ("t", &json!("[omitted: too large]")));
}

#[test]
fn garbage_of_64_megabytes_is_garbage() {
    let (reader, len) = huge("not json ", "");
    let Incoming::Rubbish { text } = parse_oversized(reader, len) else { panic!() };
    assert!(text.starts_with("not json xxx") && text.len() == 4096);
}

#[test]
fn an_id_over_a_kilobyte_in_an_oversized_line_is_ignored() {
    let line = format!(r#"{{"type":"control_cancel_request","request_id":"{}"}}"#, "x".repeat(2000));
    let read = parse_oversized(line.as_bytes(), line.len() as u64);
    assert!(matches!(read, Incoming::Other { kind, .. } if kind == "control_cancel_request"));
}

#[test]
fn a_failing_reader_yields_garbage() {
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("gone"))
        }
    }
    assert_eq!(parse_oversized(Broken, 100), Incoming::Rubbish { text: String::new() });
}

#[test]
fn a_change_of_a_file_is_read_whole_or_not_at_all() {
    let patch_of = |patch: Value| {
        let result = json!({"type": "tool_result", "tool_use_id": "t", "content": "ok"});
        let line = json!({"type": "user", "message": {"role": "user", "content": [result]},
            "tool_use_result": {"structuredPatch": patch, "originalFile": "a"}});
        let Incoming::User(user) = parse(line.to_string().as_bytes()) else { panic!() };
        user.patch
    };
    let hunk = json!({"oldStart": 3, "oldLines": 1, "newStart": 4, "newLines": 1, "lines": ["-a", "+b"]});
    let read = Hunk { old_start: 3, new_start: 4, lines: vec!["-a".to_owned(), "+b".to_owned()] };
    assert_eq!(patch_of(json!([hunk])), [read]);
    for (field, odd) in [("oldStart", json!(-1)), ("newStart", json!("4")), ("lines", json!(["-a", 7]))] {
        let mut odd_hunk = hunk.clone();
        odd_hunk[field] = odd;
        assert_eq!(patch_of(json!([hunk, odd_hunk])), [], "{field}");
    }
    assert_eq!(patch_of(json!("none")), []);
}
