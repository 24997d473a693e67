//! A session from its start to its stop without leaving the page, and an answer with a rule.

use plexus_e2e::browser::Look;
use plexus_e2e::{Setup, script};
use plexus_testkit::model::Step;
use serde_json::json;

use crate::console::signed_in_page::{ConsolePage, over_clis};

over_clis!(a_session_is_started_prompted_forked_and_stopped_from_the_page);

async fn a_session_is_started_prompted_forked_and_stopped_from_the_page(
    console: &mut ConsolePage,
) -> anyhow::Result<()> {
    let world = &console.world;
    let command = format!("sh -c 'echo made > {}'", world.file("made").display());
    let bash = Step::tool("Bash", json!({"command": command, "description": "a step"}));
    world.model.script("BEGIN-HERE", vec![bash, Step::text("It is *made*.")]);
    let (held, hold) = Step::hold(Step::text("Too late."));
    world.model.script("GO-ON", vec![held]);
    console.go("#/sessions").await?;
    let start = "await page.getByText('No sessions.').waitFor(); \
        await page.getByRole('button', {name: 'Start a session'}).click(); const dialog = page.getByRole('dialog'); \
        await dialog.getByLabel('Name').fill('here'); await dialog.getByLabel('Directory').fill('relative'); \
        await dialog.getByLabel('Prompt').fill('BEGIN-HERE, please'); \
        await dialog.getByRole('button', {name: 'Start', exact: true}).click(); \
        await dialog.getByLabel('Directory').and(page.locator('[aria-invalid=true]')).waitFor(); \
        await dialog.getByLabel('Directory').fill(args); await dialog.getByRole('button', {name: 'Start', exact: true}).click(); \
        await page.getByRole('heading', {name: 'BEGIN-HERE, please', level: 1}).waitFor()";
    console.run(start, json!(world.work)).await?;

    // A link leads to the approval, and the result is shown on the previous page.
    console.run("await page.getByRole('link', {name: '1 open approval'}).click()", json!({})).await?;
    console.shows_approval("a step").await?;
    console.click("Allow").await?;
    console.run(
        // The text arrives before the end of the turn. A message before that end would belong to the same turn.
        "await page.goBack(); await page.getByTestId('stream').getByText('It is made.').waitFor(); \
         await page.locator('[data-kind=end]').waitFor(); \
         await page.getByRole('region', {name: 'Session'}).getByText('running', {exact: true}).waitFor({state: 'hidden'})",
        json!({}),
    )
    .await?;
    assert!(world.file("made").exists());

    let say = "await page.keyboard.press('s'); await page.keyboard.insertText('GO-ON then'); await page.keyboard.press('Control+Enter'); \
        await page.locator('[data-kind=start]').getByText('GO-ON then').waitFor(); \
        await page.getByRole('button', {name: 'Interrupt'}).click(); \
        await page.locator('[data-kind=error]').getByText('Turn 2 interrupted').waitFor()";
    console.run(say, json!({})).await?;
    hold.release();
    let fork = "await page.getByRole('button', {name: 'More actions'}).click(); await page.getByRole('menuitem', {name: 'Fork'}).click(); const dialog = page.getByRole('dialog'); \
        await dialog.getByLabel('Name').fill('there'); await dialog.getByRole('button', {name: 'Fork', exact: true}).click(); \
        await page.getByRole('heading', {name: 'there', level: 1}).waitFor(); \
        await page.getByLabel('Permission mode').selectOption('acceptEdits'); \
        await page.getByRole('button', {name: 'Stop', exact: true}).click(); \
        await dialog.getByRole('button', {name: 'Stop', exact: true}).click(); await dialog.waitFor({state: 'detached'})";
    console.run(fork, json!({})).await?;
    let forked = world.call("claudecode.get", json!({"name": "there"})).await?;
    assert_eq!(forked["session"]["permission_mode"], "acceptEdits");
    Ok(())
}

#[tokio::test]
async fn an_answer_with_a_rule_shows_which_approvals_it_resolves_and_resolves_them() -> anyhow::Result<()> {
    let test = "an_answer_with_a_rule_shows_which_approvals_it_resolves_and_resolves_them";
    let Some(world) = Setup::scripted().world(test).await? else { return Ok(()) };
    let Some(console) = ConsolePage::open(world, test, Look::WIDE).await? else { return Ok(()) };
    let world = &console.world;
    let session = world.create("tester", json!({})).await?;
    let calls = ["npm test one", "npm test two", "rm -r dist"]
        .map(|line| json!({"tool": "Bash", "input": {"command": line}}));
    world.chat(&session, &script(&json!([{"tools": calls, "parallel": true}]))).await?;
    console.run("await page.getByTestId('shown').getByText('3', {exact: true}).waitFor()", json!({})).await?;
    console.run("await page.getByRole('listitem').getByText('npm test one').click()", json!({})).await?;
    console.shows_approval("npm test one").await?;
    console.press(&["r"]).await?;
    let remember = "const dialog = page.getByRole('dialog'); \
        await dialog.getByLabel('Rule', {exact: true}).fill('Bash(npm test'); await dialog.getByText(/bracket|closed|expected|\\)/i).first().waitFor(); \
        await dialog.getByLabel('Rule', {exact: true}).fill('Bash(npm test:*)'); \
        const settles = dialog.getByTestId('preview'); await settles.getByText('Allows 1 other open approval at once').waitFor(); \
        await settles.getByText('npm test two').waitFor(); await dialog.getByRole('button', {name: 'Allow and add rule'}).click(); \
        await page.getByTestId('shown').getByText('1', {exact: true}).waitFor()";
    console.run(remember, json!({})).await?;
    console.shows_approval("rm -r dist").await?;
    console.press(&["D"]).await?;
    let stop = "await page.getByLabel('Reason').fill('leave it'); await page.getByRole('dialog').getByRole('button', {name: 'Deny and stop'}).click()";
    console.run(stop, json!({})).await?;
    assert_eq!(world.ended(&session).await?["status"], "interrupted");
    let rules = world.call("policy.list", json!({})).await?;
    assert_eq!(rules["rules"][0]["rule"], "Bash(npm test:*)", "{rules:#}");
    assert_eq!(world.ran().len(), 2);
    console.window.close().await
}
