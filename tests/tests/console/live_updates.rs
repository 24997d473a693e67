//! Live updates: another window or person answers, the hub is killed and restarts. The page shows it without a reload, and a key
//! for one approval never answers another.

use plexus_e2e::text;
use plexus_testkit::model::Step;
use plexus_testkit::rpc::Rpc;
use serde_json::json;

use crate::console::signed_in_page::{ConsolePage, over_clis};

over_clis!(an_answer_of_another_client_is_shown_with_its_author, the_page_reconnects_after_a_kill_of_the_hub);

/// A session with a call that creates this file and waiting_session for approval.
async fn waiting_session(console: &ConsolePage, file: &str) -> anyhow::Result<String> {
    let world = &console.world;
    let command = format!("sh -c 'echo made > {}'", world.file(file).display());
    let bash = Step::tool("Bash", json!({"command": command, "description": "a step"}));
    world.model.script(&format!("MAKE-{file}"), vec![bash, Step::text("Done.")]);
    let session = world.create(file, json!({})).await?;
    world.chat(&session, &format!("MAKE-{file}")).await?;
    world.asked(&session).await?;
    Ok(session)
}

async fn an_answer_of_another_client_is_shown_with_its_author(
    console: &mut ConsolePage,
) -> anyhow::Result<()> {
    console.run("await context.newPage()", json!({})).await?;
    console.sign_in(1).await?;
    let (first, second) =
        (waiting_session(console, "first").await?, waiting_session(console, "second").await?);
    // Both windows show the first approval, and the second window answers it.
    console.shows_approval("first").await?;
    let allow = "await page.locator('article[data-status=pending][data-ready=true]').filter({hasText: 'first'}).waitFor(); \
        await page.getByRole('button', {name: 'Allow', exact: true}).click()";
    console.window.run_in(1, allow, json!({})).await?;
    let seen = "await page.locator('article[data-status=allowed]').filter({hasText: 'first'}).getByText('Allowed by you').waitFor(); \
        await page.getByTestId('shown').getByText('1', {exact: true}).waitFor()";
    console.run(seen, json!({})).await?;
    // A key that was pressed for the first approval does not answer the second.
    console.press(&["a", "d", "Enter"]).await?;
    assert_eq!(console.world.ended(&first).await?["status"], "complete");
    assert!(console.world.file("first").exists());
    let (_, still) = console.world.asked(&second).await?;
    console.press(&["j"]).await?;
    console.shows_approval("second").await?;

    // Another person with a token answers it.
    let made = console.world.call("token.new", json!({"name": "ada", "right": "decide"})).await?;
    let ada = Rpc::new(console.world.hub.url(), &text(&made["token"]));
    let answer = json!({"approval_id": still["id"], "approve": false, "message": "not today"});
    ada.call("loopback.respond", answer).await?;
    let seen = "const over = page.locator('article[data-status=denied]').filter({hasText: 'second'}); \
        await over.getByText('Denied by token ada').waitFor(); await over.getByText('not today').waitFor(); \
        await page.getByText('No open approvals.').waitFor()";
    for page in [0, 1] {
        console.window.run_in(page, seen, json!({})).await?;
    }
    assert_eq!(console.world.ended(&second).await?["status"], "complete");
    assert!(!console.world.file("second").exists());
    Ok(())
}

async fn the_page_reconnects_after_a_kill_of_the_hub(console: &mut ConsolePage) -> anyhow::Result<()> {
    console.run("await page.evaluate(() => { window.stayed = true; })", json!({})).await?;
    let before = waiting_session(console, "before").await?;
    console.shows_approval("before").await?;
    console.world.hub.kill9().await?;
    // Meanwhile no approval can be answered, and the page shows the reason.
    let away = "await page.getByText('Disconnected. Reconnecting…').waitFor(); await page.getByRole('alert').getByText('Disconnected').waitFor(); \
        return page.getByRole('button', {name: 'Allow', exact: true}).isDisabled()";
    assert_eq!(console.run(away, json!({})).await?, json!(true));

    console.world.hub.restart().await?;
    console.run("await page.locator('[data-state=live]').waitFor()", json!({})).await?;
    console.shows_approval("before").await?;
    assert!(!console.world.file("before").exists());
    console.click("Allow").await?;
    assert_eq!(console.world.ended(&before).await?["status"], "complete");
    assert!(console.world.file("before").exists());

    let after = waiting_session(console, "after").await?;
    console.shows_approval("after").await?;
    console.click("Allow").await?;
    assert_eq!(console.world.ended(&after).await?["status"], "complete");
    assert!(console.world.file("after").exists());
    assert_eq!(
        console.run("return page.evaluate(() => window.stayed)", json!({})).await?,
        json!(true),
        "it was not loaded again"
    );
    Ok(())
}
