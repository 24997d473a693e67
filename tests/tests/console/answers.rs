//! A person answers approvals of a real `claude` in the console, by mouse and by keyboard, and the agent acts on the answers.

use plexus_testkit::model::{Step, tool_results};
use serde_json::{Value, json};

use crate::console::signed_in_page::{ConsolePage, over_clis};

over_clis!(
    new_approvals_appear_and_are_allowed_edited_and_denied_by_mouse,
    new_approvals_appear_and_are_allowed_edited_and_denied_by_keyboard,
);

fn makes(console: &ConsolePage, file: &str) -> String {
    format!("sh -c 'echo made > {}'", console.world.file(file).display())
}

/// A session with three calls that each create a file and need approval.
async fn start_three_calls(console: &ConsolePage) -> anyhow::Result<String> {
    let bash = |file| Step::tool("Bash", json!({"command": makes(console, file), "description": "a step"}));
    let steps = ["allowed", "edited", "denied"].map(bash).into_iter().chain([Step::text("Done.")]);
    console.world.model.script("MAKE-THREE", steps.collect());
    let session = console.world.create("maker", json!({})).await?;
    console.shows_no_approvals().await?;
    console.world.chat(&session, "MAKE-THREE files").await?;
    Ok(session)
}

/// Waits until the page confirms an answer with this text.
async fn confirmed(console: &ConsolePage, words: &str) -> anyhow::Result<()> {
    console.run("await page.getByTestId('confirmed').getByText(args).waitFor()", json!(words)).await.map(drop)
}

/// Checks which files exist, what the model received, and the audit log.
async fn agent_followed_the_answers(console: &ConsolePage, session: &str) -> anyhow::Result<()> {
    let world = &console.world;
    let poll = world.ended(session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    for (file, made) in [("allowed", true), ("edited", false), ("instead", true), ("denied", false)] {
        assert_eq!(world.file(file).exists(), made, "{file}");
    }
    let last = world.model.requests_for("MAKE-THREE").pop().unwrap_or_default();
    let told = tool_results(&last).pop().map(|result| result.text).unwrap_or_default();
    assert!(told.contains("not that one, thanks"), "{told}");
    let record = world.call("audit.list", json!({"kind": "decision"})).await?;
    let by: Vec<&Value> =
        record["rows"].as_array().into_iter().flatten().map(|row| &row["entry"]["by"]).collect();
    assert_eq!(by.len(), 3, "{record:#}");
    assert!(by.iter().all(|by| by["kind"] == "operator"), "{by:#?}");
    console.shows_no_approvals().await
}

async fn new_approvals_appear_and_are_allowed_edited_and_denied_by_mouse(
    console: &mut ConsolePage,
) -> anyhow::Result<()> {
    let session = start_three_calls(console).await?;
    console.shows_approval("allowed").await?;
    assert!(!console.world.file("allowed").exists());
    // The title shows the number of open approvals in other tabs, too.
    assert_eq!(console.run("return page.title()", json!({})).await?, json!("(1) Plexus"));
    console.click("Allow").await?;
    confirmed(console, "Allowed: Run sh -c").await?;

    console.shows_approval("edited").await?;
    console.click("Edit").await?;
    let other = makes(console, "instead");
    console.run("await page.getByRole('dialog').getByLabel('command').fill(args)", json!(other)).await?;
    console.click("Review changes").await?;
    let review = "const review = page.getByTestId('review'); await review.waitFor(); \
        return [await review.locator('.removed .text').innerText(), await review.locator('.added .text').innerText()]";
    assert_eq!(console.run(review, json!({})).await?, json!([makes(console, "edited"), other]));
    console.click("Allow with changes").await?;
    confirmed(console, "Allowed with changes: Run sh -c").await?;

    console.shows_approval("denied").await?;
    console.click("Deny").await?;
    let reason = "const dialog = page.getByRole('dialog'); await dialog.getByLabel('Reason').fill(args); \
                  await dialog.getByRole('button', {name: 'Deny'}).click()";
    console.run(reason, json!("not that one, thanks")).await?;
    confirmed(console, "Reason: not that one, thanks").await?;
    agent_followed_the_answers(console, &session).await
}

async fn new_approvals_appear_and_are_allowed_edited_and_denied_by_keyboard(
    console: &mut ConsolePage,
) -> anyhow::Result<()> {
    // A key that is pressed while an approval appears does not answer it.
    let hammering = "await page.evaluate(() => { let pressed = false; new MutationObserver(() => { \
        if (document.querySelector('.actions')?.textContent.includes('has just appeared')) window.early = true; \
        if (pressed || !document.querySelector('article[data-status=pending]')) return; pressed = true; \
        document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'a', bubbles: true})); \
        }).observe(document.body, {childList: true, subtree: true}); })";
    console.run(hammering, json!({})).await?;
    let session = start_three_calls(console).await?;
    console.shows_approval("allowed").await?;
    assert!(!console.world.file("allowed").exists());
    assert_eq!(console.run("return page.evaluate(() => window.early)", json!({})).await?, json!(true));
    console.press(&["a"]).await?;

    console.shows_approval("edited").await?;
    console.press(&["e"]).await?;
    let typed = "const field = page.getByRole('dialog').getByLabel('command'); await field.waitFor(); \
        for (let at = 0; at < 10 && !await field.evaluate((element) => element === document.activeElement); at++) await page.keyboard.press('Tab'); \
        await page.keyboard.press('Control+A'); await page.keyboard.insertText(args); \
        for (const name of ['Review changes', 'Allow with changes']) { \
            const send = page.getByRole('button', {name}); await send.and(page.locator(':enabled')).waitFor(); \
            for (let at = 0; at < 10 && !await send.evaluate((element) => element === document.activeElement); at++) await page.keyboard.press('Tab'); \
            await page.keyboard.press('Enter'); }";
    console.run(typed, json!(makes(console, "instead"))).await?;

    console.shows_approval("denied").await?;
    console.press(&["d"]).await?;
    let reason = "await page.getByLabel('Reason').waitFor(); await page.keyboard.insertText(args); await page.keyboard.press('Enter')";
    console.run(reason, json!("not that one, thanks")).await?;
    agent_followed_the_answers(console, &session).await
}
