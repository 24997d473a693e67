//! The scripted model with the real, pinned Claude Code CLIs, in a cleared environment.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

#[expect(dead_code, reason = "the scripted agent's tests use the rest")]
mod support;

use std::path::{Path, PathBuf};

use plexus_testkit::model::{ScriptedModel, Step, Tool, tool_results};
use plexus_testkit::{PINNED, require_claude};
use serde_json::{Value, json};
use support::{Dirs, Driver, ONE_ALLOWED_CALL, Reply, approve, outline};

const FIRST: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const SECOND: &str = "aaaaaaaa-0000-4000-8000-000000000002";

/// The installed pinned CLIs. For the others the test is reported as skipped.
fn clis(test: &str) -> impl Iterator<Item = PathBuf> {
    PINNED.into_iter().filter_map(move |version| require_claude(version, &format!("{test} {version}")))
}

/// An initialized CLI in its own directory, and its model.
async fn start(program: &Path) -> (ScriptedModel, Dirs, Driver) {
    let model = ScriptedModel::start().await.unwrap();
    let dirs = Dirs::new();
    let mut claude = Driver::start(program, &dirs.work, &dirs.env(&model.url()), "stdio");
    claude.initialize().await;
    (model, dirs, claude)
}

fn bash(command: &str) -> Tool {
    Tool::new("Bash", json!({"command":command,"description":"a command of the test"}))
}

#[tokio::test]
async fn an_approved_call_runs_and_its_result_reaches_the_model() {
    for program in clis("an_approved_call_runs_and_its_result_reaches_the_model") {
        let (model, dirs, mut claude) = start(&program).await;
        model.script("MARK", vec![Step::tools(vec![bash("touch made; echo ran")]), Step::text("done")]);
        claude.prompt(FIRST, "MARK please").await;
        let result = claude.turn(approve).await;
        assert_eq!((&result["result"], &result["is_error"]), (&json!("done"), &json!(false)));
        assert_eq!(result["usage"]["input_tokens"], 20);
        assert!(dirs.work.join("made").exists());
        assert_eq!(claude.tool_results(), [("toolu_MARK_0_0".into(), "ran".into(), false)]);

        let requests = model.requests();
        let steps: Vec<_> = requests.iter().map(|r| (r.marker.as_deref(), r.step)).collect();
        assert_eq!(steps, [(Some("MARK"), 0), (Some("MARK"), 1)]);
        assert_eq!(requests[0].headers["x-api-key"], "made-up");
        assert_eq!(tool_results(&model.requests_for("MARK")[1])[0].text, "ran");

        // The scripted agent must have the same outline. The two CLIs differ in whether the echo of the last answer precedes `running`, and only
        // one of them reports the queue.
        let mut told = outline(&claude.seen);
        told.retain(|line| ONE_ALLOWED_CALL.contains(&line.as_str()));
        told.remove(0); // the answer to `initialize`
        let (mut told, mut wanted) = (told, ONE_ALLOWED_CALL.map(str::to_owned));
        told[8..10].sort();
        wanted[8..10].sort();
        assert_eq!(told, wanted);
        assert_eq!(claude.finish().await, Some(0));
    }
}

#[tokio::test]
async fn a_denied_call_does_not_run_and_the_model_gets_the_reason() {
    for program in clis("a_denied_call_does_not_run_and_the_model_gets_the_reason") {
        let (model, dirs, mut claude) = start(&program).await;
        model.script(
            "MARK",
            vec![Step::text_and_tools("I will", vec![bash("touch made")]), Step::text("done")],
        );
        claude.prompt(FIRST, "MARK please").await;
        let deny = json!({"behavior":"deny","message":"not on a Sunday"});
        let question = |request: &Value| request["subtype"] == "can_use_tool";
        claude.turn(|r| Reply::Success(if question(r) { deny.clone() } else { json!({}) })).await;
        assert!(!dirs.work.join("made").exists());
        let told = model
            .seen(|r| tool_results(&r.body).iter().any(|r| r.is_error && r.text.contains("not on a Sunday")))
            .await
            .unwrap();
        assert_eq!((told.marker.as_deref(), told.step), (Some("MARK"), 1));
    }
}

#[tokio::test]
async fn every_prompt_and_every_sub_agent_has_its_own_script() {
    for program in clis("every_prompt_and_every_sub_agent_has_its_own_script") {
        let (model, dirs, mut claude) = start(&program).await;
        let agent = json!({"description":"a helper","prompt":"HELPER, go","subagent_type":"general-purpose",
                           "run_in_background":false});
        model.script("PARENT", vec![Step::tool("Agent", agent), Step::text("all done")]);
        model.script("HELPER", vec![Step::tools(vec![bash("touch by-helper")]), Step::text("helped")]);
        model.script(
            "NEXT",
            vec![
                Step::tools(vec![bash("echo number 42")]),
                Step::from_fn(|request| {
                    let last = tool_results(request).pop().unwrap();
                    Step::text(format!("it said {}", last.text))
                }),
            ],
        );
        claude.prompt(FIRST, "PARENT, go").await;
        assert_eq!(claude.turn(approve).await["result"], "all done");
        assert!(dirs.work.join("by-helper").exists());
        assert_eq!(model.requests_for("HELPER").len(), 2);
        assert!(claude.tool_results().iter().any(|(_, text, _)| text.contains("helped")));

        claude.prompt(SECOND, "NEXT, go").await;
        assert_eq!(claude.turn(approve).await["result"], "it said number 42");
    }
}

#[tokio::test]
async fn the_end_of_a_background_sub_agent_starts_the_next_step_of_its_parent() {
    for program in clis("the_end_of_a_background_sub_agent_starts_the_next_step_of_its_parent") {
        let (model, _place, mut claude) = start(&program).await;
        let agent = json!({"description":"a helper","prompt":"HELPER, go","subagent_type":"general-purpose",
                           "run_in_background":true});
        let (held, hold) = Step::hold(Step::text("helped"));
        model
            .script("PARENT", vec![Step::tool("Agent", agent), Step::text("started"), Step::text("noticed")]);
        model.script("HELPER", vec![held]);
        claude.prompt(FIRST, "PARENT, go").await;
        let result =
            |text: &'static str| move |line: &Value| line["type"] == "result" && line["result"] == text;
        claude.answering(approve, result("started")).await;
        hold.release();
        claude.answering(approve, result("noticed")).await;
    }
}

#[tokio::test]
async fn an_error_of_the_api_ends_the_turn_at_once() {
    for program in clis("an_error_of_the_api_ends_the_turn_at_once") {
        let (model, _place, mut claude) = start(&program).await;
        model.script("MARK", vec![Step::error(500, "api_error", "the model is asleep")]);
        claude.prompt(FIRST, "MARK please").await;
        let result = claude.turn(approve).await;
        assert_eq!((&result["is_error"], &result["api_error_status"]), (&json!(true), &json!(500)));
        assert!(result["result"].as_str().unwrap().contains("the model is asleep"));
        assert_eq!(model.requests().len(), 1, "it does not try again");
    }
}

#[tokio::test]
async fn a_held_model_call_stays_open_until_it_is_released() {
    for program in clis("a_held_model_call_stays_open_until_it_is_released") {
        let (model, _place, mut claude) = start(&program).await;
        let (held, hold) = Step::hold(Step::text("at last"));
        let (forgotten, _kept) = Step::hold(Step::text("never"));
        model.script("MARK", vec![held]);
        model.script("STUCK", vec![forgotten]);
        claude.prompt(FIRST, "MARK please").await;
        model.seen(|request| request.marker.as_deref() == Some("MARK")).await.unwrap();
        assert!(!claude.seen.iter().any(|line| line["type"] == "assistant"));
        hold.release();
        assert_eq!(claude.turn(approve).await["result"], "at last");

        claude.prompt(SECOND, "STUCK now").await;
        model.seen(|request| request.marker.as_deref() == Some("STUCK")).await.unwrap();
        claude.request("stop", json!({"subtype":"interrupt"})).await;
        assert_eq!(claude.turn(approve).await["subtype"], "error_during_execution");
    }
}
