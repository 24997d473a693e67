//! Answers to approvals: keys, reasons, rules and questions.

use serde_json::json;

use super::{at_terminal, events, touch};
use crate::support::{TestHub, text};

#[tokio::test]
async fn y_allows_a_call_and_n_with_a_reason_denies_it() {
    let hub = TestHub::start().await;
    let mut run = at_terminal(&hub, &["run", "--name", "a", &touch(&["one", "two"])], "true");
    run.expect("a wants to use Bash").await.unwrap();
    run.expect("touch one").await.unwrap();
    run.expect("Allow it?").await.unwrap();
    assert!(!hub.work().join("one").exists(), "not before it is answered");
    run.press("perhaps\n").unwrap();
    run.expect("Allow it?").await.unwrap();
    run.press("y\n").unwrap();
    run.expect("touch two").await.unwrap();
    run.expect("Allow it?").await.unwrap();
    run.press("n not that one\n").unwrap();
    run.expect("* complete").await.unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    assert!(hub.work().join("one").exists() && !hub.work().join("two").exists());
    assert!(events(&hub, "a").await.contains("not that one"), "the agent reads why");
}

#[tokio::test]
async fn a_adds_a_rule_and_s_leaves_an_approval_open() {
    let hub = TestHub::start().await;
    let mut run = at_terminal(&hub, &["run", "--name", "a", &touch(&["made", "made", "other"])], "true");
    run.expect("Allow it?").await.unwrap();
    run.press("a\n").unwrap();
    run.expect("[Bash(touch made)]").await.unwrap();
    run.press("\n").unwrap();
    // The rule allows the second call.
    run.expect("touch other").await.unwrap();
    run.expect("Allow it?").await.unwrap();
    run.press("s\n").unwrap();
    run.expect("plexus approve ").await.unwrap();
    let open = hub.call("loopback.pending", json!({})).await.unwrap()["approvals"].take();
    hub.call("loopback.respond", json!({"approval_id": open[0]["id"], "approve": true})).await.unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    assert!(hub.work().join("other").exists());
}

#[tokio::test]
async fn an_answer_that_is_not_an_option_needs_confirmation() {
    let hub = TestHub::start().await;
    let options = json!([{"label": "red"}, {"label": "blue"}, {"label": "green"}]);
    let one = json!({"question": "Which colour?", "options": options});
    let several = json!({"question": "Which others?", "options": options, "multiSelect": true});
    let prompt = json!([{"tool": "AskUserQuestion", "input": {"questions": [one, several]}}]).to_string();
    let mut run = at_terminal(&hub, &["run", "--name", "a", &prompt], "true");
    run.expect("Which colour? Answer (a number or words").await.unwrap();
    run.press("4\n").unwrap();
    run.expect("choose 1 to 3").await.unwrap();
    run.expect("Which colour? Answer").await.unwrap();
    run.press("n\n").unwrap();
    run.expect("Send \"n\" as your answer? y or n: ").await.unwrap();
    run.press("n\n").unwrap();
    run.expect("Which colour? Answer").await.unwrap();
    run.press("rather pink\n").unwrap();
    run.expect("Send \"rather pink\" as your answer? y or n: ").await.unwrap();
    run.press("y\n").unwrap();
    run.expect("Which others? Answer (a number, several such as 1,3, or words").await.unwrap();
    run.press("1,3\n").unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    let events = events(&hub, "a").await;
    assert!(events.contains("rather pink") && events.contains("red, green"), "{events}");
}

#[tokio::test]
async fn input_typed_for_one_approval_never_answers_another() {
    let hub = TestHub::start().await;
    let mut run = at_terminal(&hub, &["run", "--name", "a", &touch(&["one", "two"])], "true");
    run.expect("s(kip): ").await.unwrap();
    // Typed but not submitted when another client decides.
    run.press("y").unwrap();
    run.expect("y").await.unwrap();
    let open = hub.call("loopback.pending", json!({})).await.unwrap()["approvals"].take();
    hub.call("loopback.respond", json!({"approval_id": open[0]["id"], "approve": false})).await.unwrap();
    run.expect("touch two").await.unwrap();
    run.expect("Allow it?").await.unwrap();
    run.press("\n").unwrap();
    run.expect("Allow it?").await.unwrap();
    run.press("n\n").unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    assert!(!hub.work().join("one").exists() && !hub.work().join("two").exists());
}

#[tokio::test]
async fn without_a_terminal_an_approval_stays_open_and_is_reported() {
    let hub = TestHub::start().await;
    let prompt = touch(&["made"]);
    let words = ["run", "--name", "a", &prompt];
    let (ran, ()) = tokio::join!(hub.run(&words), async {
        let waited = async {
            loop {
                let wait = hub.call("loopback.wait", json!({"cursor": 0, "timeout_ms": 1000})).await.unwrap();
                if let Some(id) = wait["approvals"][0]["id"].as_str() {
                    return id.to_owned();
                }
            }
        };
        let id = tokio::time::timeout(crate::support::LIMIT, waited).await.expect("it asks");
        let refused = hub.run(&["approve", &id[..8]]).await;
        assert_eq!(refused.status.code(), Some(2), "it needs a digest: {}", text(&refused.stderr));
        assert!(hub.run(&["approve", &id[..8], "--digest", &hub.digest(&id).await]).await.status.success());
    });
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    assert!(
        text(&ran.stderr).contains("plexus: a needs approval: `plexus approve "),
        "{}",
        text(&ran.stderr)
    );
    assert!(text(&ran.stdout).starts_with("> Bash touch made\n"), "{}", text(&ran.stdout));
    assert!(!text(&ran.stdout).contains('\u{1b}'));
}

#[tokio::test]
async fn a_question_is_answered_by_number_or_text() {
    let hub = TestHub::start().await;
    let options = json!([{"label": "red", "description": "like fire"}, {"label": "blue"}]);
    let colour = json!({"question": "Which colour?", "options": options});
    let size = json!({"question": "Which size?", "options": []});
    let prompt = json!([{"tool": "AskUserQuestion", "input": {"questions": [colour, size]}}]).to_string();
    let mut run = at_terminal(&hub, &["run", "--name", "a", &prompt], "true");
    run.expect("1. red").await.unwrap();
    run.expect("like fire").await.unwrap();
    run.expect("2. blue").await.unwrap();
    run.expect("Answer").await.unwrap();
    run.press("2\n").unwrap();
    run.expect("Which size? Answer").await.unwrap();
    run.press("rather large\n").unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    let events = events(&hub, "a").await;
    assert!(events.contains("blue") && events.contains("rather large"), "{events}");
}

#[tokio::test]
async fn no_and_quit_are_not_parsed_as_a_rule() {
    let hub = TestHub::start().await;
    let mut run = at_terminal(&hub, &["run", &touch(&["made"])], "true");
    for no in ["n\n", "q\n"] {
        run.expect("Allow it? y,").await.unwrap();
        run.press("a\n").unwrap();
        run.expect("Rule to remember").await.unwrap();
        run.press(no).unwrap();
        run.expect("$ touch made").await.unwrap();
    }
    run.expect("Allow it? y,").await.unwrap();
    assert!(!hub.work().join("made").exists());
    assert_eq!(hub.call("policy.list", json!({})).await.unwrap()["rules"], json!([]));
    run.press("n\n").unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
}

#[tokio::test]
async fn a_long_call_is_allowed_only_after_its_last_page() {
    let hub = TestHub::start().await;
    let command = format!("true\n{}touch hidden", "# nothing to see\n".repeat(60));
    let prompt = json!([{"tool": "Bash", "input": {"command": command}}]).to_string();
    let mut run = at_terminal(&hub, &["run", "--name", "a", &prompt], "true");
    run.expect("22 of 65 lines shown; Enter shows more").await.unwrap();
    assert!(!run.shown().contains("touch hidden"));
    for line in ["y\n", "a\n"] {
        run.press(line).unwrap();
        run.expect("you can allow it once you have seen all of it").await.unwrap();
        run.expect("22 of 65 lines shown").await.unwrap();
    }
    assert!(!hub.work().join("hidden").exists());
    run.press("\n").unwrap();
    run.expect("44 of 65 lines shown").await.unwrap();
    run.press("\n").unwrap();
    run.expect("touch hidden").await.unwrap();
    run.expect("Allow it? y,").await.unwrap();
    run.press("y\n").unwrap();
    run.expect("Allowed: Bash true").await.unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    assert!(hub.work().join("hidden").exists());
}

#[tokio::test]
async fn a_rule_that_does_not_match_the_call_is_rejected_and_prompted_again() {
    let hub = TestHub::start().await;
    let mut run = at_terminal(&hub, &["run", "--name", "a", &touch(&["made"])], "true");
    run.expect("Allow it?").await.unwrap();
    run.press("a\n").unwrap();
    run.expect("[Bash(touch made)]: ").await.unwrap();
    run.press("Bash(rm:*)\n").unwrap();
    run.expect("`Bash(rm:*)` does not match this call; nothing was answered").await.unwrap();
    run.expect("[Bash(touch made)]: ").await.unwrap();
    assert!(!hub.work().join("made").exists());
    let rules = hub.call("policy.list", json!({"name": "a"})).await.unwrap();
    assert_eq!(rules["rules"], json!([]), "no rule was added");
    run.press("Bash(touch:*)\n").unwrap();
    run.expect("added the rule Bash(touch:*)").await.unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    assert!(hub.work().join("made").exists());
}

#[tokio::test]
async fn an_approval_resolved_elsewhere_while_it_is_read_is_reported() {
    let hub = TestHub::start().await;
    let command = format!("touch made\n{}", "# line\n".repeat(60));
    let prompt = json!([{"tool": "Bash", "input": {"command": command}}]).to_string();
    let mut run = at_terminal(&hub, &["run", "--name", "a", &prompt], "true");
    run.expect("Enter shows more").await.unwrap();
    let open = hub.call("loopback.pending", json!({})).await.unwrap()["approvals"].take();
    hub.call("loopback.respond", json!({"approval_id": open[0]["id"], "approve": false})).await.unwrap();
    run.expect("plexus: Denied by you: Bash touch made").await.unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    assert!(!hub.work().join("made").exists());
}
