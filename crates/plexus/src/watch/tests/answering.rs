//! What keys and typed lines send to the hub, and the effect of an answer of another client.

use super::*;

#[test]
fn a_question_is_answered_by_numbers_or_text() {
    let input = json!({"questions": [
        {"question": "Which colour?", "options": [{"label": "red", "description": "as fire"}, {"label": "blue"}]},
        {"question": "Why?", "options": []},
    ]});
    let mut screen = Screen::asking("AskUserQuestion", input);
    screen.is_drawn_as("question", 80, 24);
    assert_eq!(screen.types("a2\n"), []);
    let answered = respond(&screen.types("it is calm\n"));
    assert_eq!(answered["answers"], json!({"Which colour?": "blue", "Why?": "it is calm"}));
}

#[test]
fn digits_select_options_and_enter_sends_them() {
    let options =
        json!([{"label": "red", "description": "like fire"}, {"label": "blue"}, {"label": "green"}]);
    let several = json!({"question": "Which colours?", "options": options, "multiSelect": true});
    let mut screen = Screen::asking("AskUserQuestion", json!({"questions": [several]}));
    assert!(screen.text(80, 24).contains("like fire"), "{}", screen.text(80, 24));
    assert_eq!(screen.types("3212"), [], "a digit alone sends nothing");
    assert!(screen.text(80, 24).contains("1,3 = red, green"), "{}", screen.text(80, 24));
    assert_eq!(respond(&screen.press('\n'))["answers"], json!({"Which colours?": "red, green"}));
    let one = json!({"question": "Which colour?", "options": options});
    let mut screen = Screen::asking("AskUserQuestion", json!({"questions": [one]}));
    screen.types("12");
    assert_eq!(respond(&screen.press('\n'))["answers"], json!({"Which colour?": "blue"}));
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    assert_eq!(screen.types("1\n"), [], "a digit answers questions only");
    assert_eq!(screen.model.mode, Mode::Moving);
}

#[test]
fn an_answer_that_is_not_an_option_needs_confirmation() {
    let input =
        json!({"questions": [{"question": "Which?", "options": [{"label": "red"}, {"label": "blue"}]}]});
    let mut screen = Screen::asking("AskUserQuestion", input);
    screen.text(80, 24);
    assert_eq!(screen.types("a3\n"), []);
    assert!(screen.text(80, 24).contains("choose 1 to 2"), "{}", screen.text(80, 24));
    assert_eq!(screen.types("n\n"), []);
    assert!(
        screen.text(80, 24).contains("Send this as your answer? y / n: \"n\""),
        "{}",
        screen.text(80, 24)
    );
    assert_eq!(screen.types("n"), []);
    assert!(screen.text(80, 24).contains("Which? (a number or words): _"), "{}", screen.text(80, 24));
    assert_eq!(screen.types("pink\n"), []);
    screen.text(80, 24);
    assert_eq!(respond(&screen.types("y"))["answers"], json!({"Which?": "pink"}));
}

#[test]
fn a_denial_may_have_a_reason() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    let denied = respond(&screen.types("dnot now\n"));
    assert_eq!((&denied["approve"], &denied["message"]), (&json!(false), &json!("not now")));
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    assert_eq!(respond(&screen.types("d\n"))["message"], Value::Null);
}

#[test]
fn an_approval_of_an_agent_is_escalated_with_or_without_a_note() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    assert_eq!(screen.press('p'), []);
    assert!(screen.text(80, 24).contains("this approval is already yours"));
    let agent = json!({"kind": "session", "id": id(1)});
    screen.model.approvals[0].asked_of = serde_json::from_value(agent.clone()).unwrap();
    for (typed, opinion) in [("p\n", Value::Null), ("prather not\n", json!("rather not"))] {
        let effects = screen.types(typed);
        let [Effect::Call { method: "loopback.escalate", params, .. }] = &effects[..] else {
            panic!("{effects:?}")
        };
        assert_eq!(*params, json!({"approval_id": id(101), "opinion": opinion}));
    }
    let mut passed = screen.model.approvals[0].clone();
    let went = json!({"from": agent, "why": "escalated", "by": {"kind": "operator"}, "at": NOW});
    passed.passed = vec![serde_json::from_value(went).unwrap()];
    screen.apply(Event::Asked(Box::new(passed)));
    let drawn = screen.text(80, 24);
    assert!(drawn.contains(&format!("operator escalated it past session:{}", id(1))), "{drawn}");
}

#[test]
fn a_rule_is_suggested_and_can_be_changed() {
    let mut screen = Screen::asking("Bash", json!({"command": "npm test"}));
    screen.model.approvals[0].suggestions = Some(json!([{"type": "addRules", "behavior": "allow",
        "rules": [{"toolName": "Bash", "ruleContent": "npm test:*"}], "destination": "session"}]));
    assert_eq!(screen.press('r'), []);
    assert!(screen.text(80, 24).contains("add this rule (Esc: back): Bash(npm test:*)_"));
    assert_eq!(respond(&screen.press('\n'))["remember"]["rule"], "Bash(npm test:*)");
}

#[test]
fn an_answer_of_another_client_removes_the_approval_and_names_the_decider() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    screen.types("dbecause");
    let mut ended = screen.model.approvals[0].clone();
    ended.status = plexus_protocol::ApprovalStatus::Denied;
    let decision = json!({"approve": false, "by": {"kind": "parent", "id": "boss"}, "right": "ancestor"});
    ended.decision = Some(serde_json::from_value(decision).unwrap());
    screen.apply(Event::Resolved(Box::new(ended)));
    assert!(screen.model.approvals.is_empty() && screen.model.mode == Mode::Moving);
    let drawn = screen.text(80, 24);
    assert!(drawn.contains("Denied by parent:boss: Bash ls (lead/parser)"), "{drawn}");
}
