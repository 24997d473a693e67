//! Kinds of approvals: an edit is shown as a diff, a plan as formatted text, questions as a form.

use plexus_testkit::model::{Step, tool_results};
use serde_json::{Value, json};

use crate::console::signed_in_page::{ConsolePage, over_clis};

over_clis!(
    an_edit_is_shown_as_a_diff,
    a_plan_is_approved_with_a_chosen_mode,
    questions_are_answered_in_a_form,
);

async fn an_edit_is_shown_as_a_diff(console: &mut ConsolePage) -> anyhow::Result<()> {
    let world = &console.world;
    let file = world.file("colours.txt");
    std::fs::write(&file, "red\ngreen\nblue\n")?;
    let edit =
        json!({"file_path": file, "old_string": "green\nblue", "new_string": "green\nviolet\nblue-ish"});
    let steps =
        [Step::tool("Read", json!({"file_path": file})), Step::tool("Edit", edit), Step::text("Done.")];
    world.model.script("PAINT-IT", steps.into());
    let session = world.create("painter", json!({})).await?;
    world.chat(&session, "PAINT-IT, please").await?;
    console.shows_approval("Edit").await?;
    let shown = console
        .run(
            "const diff = page.getByRole('group', {name: '2 lines added, 1 removed'}); await diff.waitFor(); \
             return { added: await diff.locator('.added .text').allInnerTexts(), \
                      removed: await diff.locator('.removed .text').allInnerTexts() }",
            json!({}),
        )
        .await?;
    assert_eq!(shown, json!({"added": ["violet", "blue-ish"], "removed": ["blue"]}));
    console.click("Allow").await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    assert_eq!(std::fs::read_to_string(file)?, "red\ngreen\nviolet\nblue-ish\n");
    Ok(())
}

/// The plan file that the instructions in a model request name.
pub(crate) fn plan_file(request: &Value) -> String {
    let said = request.to_string();
    let Some(at) = said.find("/.claude/plans/") else { return "/no/plan/file/was/named".to_owned() };
    let from = said[..at].rfind([' ', '"', '`', '\n']).map_or(0, |before| before + 1);
    let to = said[at..].find(".md").map_or(at, |end| at + end + ".md".len());
    said[from..to].to_owned()
}

async fn a_plan_is_approved_with_a_chosen_mode(console: &mut ConsolePage) -> anyhow::Result<()> {
    let world = &console.world;
    let plan = "# The plan\n\n1. Write **it**\n2. See [the page](javascript:alert(1))\n";
    // Newer versions show the file, older ones the text in the call.
    let written = Step::from_fn(move |request| {
        Step::tool("Write", json!({"file_path": plan_file(request), "content": plan}))
    });
    let write = json!({"file_path": world.file("planned.txt"), "content": "as planned\n"});
    let steps = [written, Step::tool("ExitPlanMode", json!({"plan": plan})), Step::tool("Write", write)];
    world.model.script("PLAN-IT", steps.into_iter().chain([Step::text("Done.")]).collect());
    let session = world.create("planner", json!({"permission_mode": "plan"})).await?;
    world.chat(&session, "PLAN-IT").await?;
    console.shows_approval("Plan: The plan").await?;
    let shown = "const detail = page.getByRole('article'); await detail.getByRole('heading', {name: 'The plan', exact: true}).waitFor(); \
        await detail.getByText('javascript:alert(1)').waitFor(); \
        return [await detail.getByRole('link', {name: 'the page'}).count(), await detail.locator('strong', {hasText: 'it'}).count()]";
    assert_eq!(console.run(shown, json!({})).await?, json!([0, 1]));
    console.run("await page.getByLabel('Then').selectOption('acceptEdits')", json!({})).await?;
    console.click("Approve").await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    assert_eq!(
        std::fs::read_to_string(world.file("planned.txt"))?,
        "as planned\n",
        "unasked: edits are accepted"
    );
    Ok(())
}

async fn questions_are_answered_in_a_form(console: &mut ConsolePage) -> anyhow::Result<()> {
    let question = |text: &str, several: bool| {
        let options = ["Red", "Green", "Blue"]
            .map(|label| json!({"label": label, "description": format!("{label} it is")}));
        json!({"question": text, "header": "Paint", "multiSelect": several, "options": options})
    };
    let world = &console.world;
    let questions =
        [question("Which wall?", false), question("Which doors?", true), question("Which floor?", false)];
    let steps = vec![Step::tool("AskUserQuestion", json!({"questions": questions})), Step::text("Painted.")];
    world.model.script("PAINT", steps);
    let session = world.create("painter", json!({})).await?;
    world.chat(&session, "PAINT the house").await?;
    console.shows_approval("Which floor?").await?;
    let answers = "const ask = (name) => page.getByRole('group', {name}); \
        await ask('Which wall?').getByLabel('Green').check(); \
        for (const door of ['Red', 'Blue']) await ask('Which doors?').getByLabel(door).check(); \
        await ask('Which floor?').getByLabel('Other answer').fill('Leave it as it is'); \
        await page.getByRole('button', {name: 'Answer'}).click()";
    console.run(answers, json!({})).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    let last = world.model.requests_for("PAINT").pop().unwrap_or_default();
    let told = tool_results(&last).pop().map(|result| result.text).unwrap_or_default();
    for answer in ["Green", "Red, Blue", "Leave it as it is"] {
        assert!(told.contains(answer), "{answer}: {told}");
    }
    console.shows_no_approvals().await
}
