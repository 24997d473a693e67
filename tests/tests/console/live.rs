//! What happens elsewhere: another window answers, somebody else does, the hub is killed and comes back. The page shows it
//! by itself, and what one was about to do never hits another question.

use plexus_e2e::text;
use plexus_testkit::model::Step;
use plexus_testkit::rpc::Rpc;
use serde_json::json;

use crate::desk::{Desk, over_clis};

over_clis!(
    an_answer_given_elsewhere_is_seen_at_once_with_its_author,
    the_page_goes_on_after_the_hub_was_killed
);

/// A session that waits to make this file.
async fn waits(desk: &Desk, file: &str) -> anyhow::Result<String> {
    let world = &desk.world;
    let command = format!("sh -c 'echo made > {}'", world.file(file).display());
    let bash = Step::tool("Bash", json!({"command": command, "description": "a step"}));
    world.model.script(&format!("MAKE-{file}"), vec![bash, Step::text("Done.")]);
    let session = world.create(file, json!({})).await?;
    world.chat(&session, &format!("MAKE-{file}")).await?;
    world.asked(&session).await?;
    Ok(session)
}

async fn an_answer_given_elsewhere_is_seen_at_once_with_its_author(desk: &mut Desk) -> anyhow::Result<()> {
    desk.run("await context.newPage()", json!({})).await?;
    desk.sign_in(1).await?;
    let (first, second) = (waits(desk, "first").await?, waits(desk, "second").await?);
    // Both look at the first; the second window answers it.
    desk.look_at("first").await?;
    let allow = "await page.locator('article[data-status=pending][data-ready=true]').filter({hasText: 'first'}).waitFor(); \
        await page.getByRole('button', {name: 'Allow', exact: true}).click()";
    desk.window.run_in(1, allow, json!({})).await?;
    let seen = "await page.locator('article[data-status=allowed]').filter({hasText: 'first'}).getByText('Allowed by you').waitFor(); \
        await page.getByTestId('shown').getByText('1', {exact: true}).waitFor()";
    desk.run(seen, json!({})).await?;
    // A key that was on its way to the first is not for the second.
    desk.press(&["a", "d", "Enter"]).await?;
    assert_eq!(desk.world.ended(&first).await?["status"], "complete");
    assert!(desk.world.file("first").exists());
    let (_, still) = desk.world.asked(&second).await?;
    desk.press(&["j"]).await?;
    desk.look_at("second").await?;

    // Somebody else, whom the operator gave a token, answers it.
    let made = desk.world.call("token.new", json!({"name": "ada", "right": "decide"})).await?;
    let ada = Rpc::new(desk.world.hub.url(), &text(&made["token"]));
    let answer = json!({"approval_id": still["id"], "approve": false, "message": "not today"});
    ada.call("loopback.respond", answer).await?;
    let seen = "const over = page.locator('article[data-status=denied]').filter({hasText: 'second'}); \
        await over.getByText('Denied by token ada').waitFor(); await over.getByText('not today').waitFor(); \
        await page.getByText('No open approvals.').waitFor()";
    for page in [0, 1] {
        desk.window.run_in(page, seen, json!({})).await?;
    }
    assert_eq!(desk.world.ended(&second).await?["status"], "complete");
    assert!(!desk.world.file("second").exists());
    Ok(())
}

async fn the_page_goes_on_after_the_hub_was_killed(desk: &mut Desk) -> anyhow::Result<()> {
    desk.run("await page.evaluate(() => { window.stayed = true; })", json!({})).await?;
    let before = waits(desk, "before").await?;
    desk.look_at("before").await?;
    desk.world.hub.kill9().await?;
    // Meanwhile nothing can be answered, and the page says why.
    let away = "await page.getByText('Disconnected. Reconnecting…').waitFor(); await page.getByRole('alert').getByText('Disconnected').waitFor(); \
        return page.getByRole('button', {name: 'Allow', exact: true}).isDisabled()";
    assert_eq!(desk.run(away, json!({})).await?, json!(true));

    desk.world.hub.restart().await?;
    desk.run("await page.locator('[data-state=live]').waitFor()", json!({})).await?;
    desk.look_at("before").await?;
    assert!(!desk.world.file("before").exists());
    desk.click("Allow").await?;
    assert_eq!(desk.world.ended(&before).await?["status"], "complete");
    assert!(desk.world.file("before").exists());

    let after = waits(desk, "after").await?;
    desk.look_at("after").await?;
    desk.click("Allow").await?;
    assert_eq!(desk.world.ended(&after).await?["status"], "complete");
    assert!(desk.world.file("after").exists());
    assert_eq!(
        desk.run("return page.evaluate(() => window.stayed)", json!({})).await?,
        json!(true),
        "it was not loaded again"
    );
    Ok(())
}
