//! Questions of an agent (`AskUserQuestion`): several at once, single and multiple choice, with an offered option or another
//! answer.

use plexus_e2e::{World, events, over};
use plexus_testkit::model::{Step, tool_results};
use serde_json::{Value, json};

over!(channels:
    each_of_several_questions_gets_its_answer,
    an_invalid_answer_is_refused_and_the_question_stays_open,
);

fn question(text: &str, header: &str, several: Value) -> Value {
    let option = |label: &str| json!({"label": label, "description": format!("{label} it is")});
    let options = ["Red", "Green", "Blue"].map(option);
    json!({"question": text, "header": header, "multiSelect": several, "options": options})
}

/// A session that asks three questions, and the approval.
async fn asks(world: &World) -> anyhow::Result<(String, Value)> {
    let questions = json!({"questions": [
        question("Which wall?", "Wall", json!(false)),
        question("Which doors?", "Doors", json!(true)),
        question("Which floor?", "Floor", json!(false)),
    ]});
    world.model.script("PAINT", vec![Step::tool("AskUserQuestion", questions), Step::text("Painted.")]);
    let session = world.create("painter", json!({})).await?;
    world.chat(&session, "PAINT the house").await?;
    let (_, approval) = world.asked(&session).await?;
    assert_eq!(approval["kind"], "question");
    assert_eq!(approval["input"]["questions"].as_array().map(Vec::len), Some(3));
    Ok((session, approval))
}

/// The last tool result that was sent to the model.
fn last_tool_result(world: &World) -> String {
    let last = world.model.requests_for("PAINT").pop().unwrap_or_default();
    tool_results(&last).pop().map(|result| result.text).unwrap_or_default()
}

async fn each_of_several_questions_gets_its_answer(world: World) -> anyhow::Result<()> {
    let (session, approval) = asks(&world).await?;
    let answers = json!({
        "Which wall?": "Green",
        "Which doors?": ["Red", "Blue"],
        "Which floor?": "Leave the floor as it is, \"please\"",
    });
    world.respond(&approval, json!({"approve": true, "answers": answers})).await?;
    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    assert_eq!(events(&poll, "approval_resolved")[0]["status"], "allowed");
    let result = last_tool_result(&world);
    for answer in ["Green", "Red, Blue", "Leave the floor as it is"] {
        assert!(result.contains(answer), "{answer}: {result}");
    }
    Ok(())
}

async fn an_invalid_answer_is_refused_and_the_question_stays_open(world: World) -> anyhow::Result<()> {
    let (session, approval) = asks(&world).await?;
    let id = &approval["id"];
    for wrong in [json!({"Which roof?": "Red"}), json!({"Which wall?": 7}), json!({})] {
        world
            .refused("loopback.respond", json!({"approval_id": id, "approve": true, "answers": wrong}))
            .await?;
    }
    world.respond(&approval, json!({"approve": true, "answers": {"Which wall?": "Blue"}})).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    assert!(last_tool_result(&world).contains("Blue"));
    Ok(())
}
