//! Answers that a person gives in the console, by mouse and by keyboard, to a real `claude`, which does accordingly.

use plexus_testkit::model::{Step, tool_results};
use serde_json::{Value, json};

use crate::desk::{Desk, over_clis};

over_clis!(
    what_is_asked_appears_by_itself_and_is_allowed_edited_and_denied_by_mouse,
    what_is_asked_appears_by_itself_and_is_allowed_edited_and_denied_by_keyboard,
);

fn makes(desk: &Desk, file: &str) -> String {
    format!("sh -c 'echo made > {}'", desk.world.file(file).display())
}

/// A session that wants to make three files, one after the other.
async fn wants_three(desk: &Desk) -> anyhow::Result<String> {
    let bash = |file| Step::tool("Bash", json!({"command": makes(desk, file), "description": "a step"}));
    let steps = ["allowed", "edited", "denied"].map(bash).into_iter().chain([Step::text("Done.")]);
    desk.world.model.script("MAKE-THREE", steps.collect());
    let session = desk.world.create("maker", json!({})).await?;
    desk.nothing_open().await?;
    desk.world.chat(&session, "MAKE-THREE files").await?;
    Ok(session)
}

/// Waits until the page confirms an answer in these words.
async fn confirmed(desk: &Desk, words: &str) -> anyhow::Result<()> {
    desk.run("await page.getByTestId('confirmed').getByText(args).waitFor()", json!(words)).await.map(drop)
}

/// What was made, and what the model was told.
async fn did_accordingly(desk: &Desk, session: &str) -> anyhow::Result<()> {
    let world = &desk.world;
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
    desk.nothing_open().await
}

async fn what_is_asked_appears_by_itself_and_is_allowed_edited_and_denied_by_mouse(
    desk: &mut Desk,
) -> anyhow::Result<()> {
    let session = wants_three(desk).await?;
    desk.look_at("allowed").await?;
    assert!(!desk.world.file("allowed").exists());
    // Whoever looks at another tab sees how many there are.
    assert_eq!(desk.run("return page.title()", json!({})).await?, json!("(1) Plexus"));
    desk.click("Allow").await?;
    confirmed(desk, "Allowed: Bash sh -c").await?;

    desk.look_at("edited").await?;
    desk.click("Edit").await?;
    let other = makes(desk, "instead");
    desk.run("await page.getByRole('dialog').getByLabel('command').fill(args)", json!(other)).await?;
    desk.click("Review changes").await?;
    let review = "const review = page.getByTestId('review'); await review.waitFor(); \
        return [await review.locator('.removed .text').innerText(), await review.locator('.added .text').innerText()]";
    assert_eq!(desk.run(review, json!({})).await?, json!([makes(desk, "edited"), other]));
    desk.click("Allow edited").await?;
    confirmed(desk, "Allowed with changes: Bash sh -c").await?;

    desk.look_at("denied").await?;
    desk.click("Deny").await?;
    let reason = "const dialog = page.getByRole('dialog'); await dialog.getByLabel('Reason').fill(args); \
                  await dialog.getByRole('button', {name: 'Deny'}).click()";
    desk.run(reason, json!("not that one, thanks")).await?;
    confirmed(desk, "Reason: not that one, thanks").await?;
    did_accordingly(desk, &session).await
}

async fn what_is_asked_appears_by_itself_and_is_allowed_edited_and_denied_by_keyboard(
    desk: &mut Desk,
) -> anyhow::Result<()> {
    // Somebody who hammers on a key answers nothing that has only just appeared.
    let hammering = "await page.evaluate(() => { let pressed = false; new MutationObserver(() => { \
        if (document.querySelector('.actions')?.textContent.includes('has just appeared')) window.early = true; \
        if (pressed || !document.querySelector('article[data-status=pending]')) return; pressed = true; \
        document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'a', bubbles: true})); \
        }).observe(document.body, {childList: true, subtree: true}); })";
    desk.run(hammering, json!({})).await?;
    let session = wants_three(desk).await?;
    desk.look_at("allowed").await?;
    assert!(!desk.world.file("allowed").exists());
    assert_eq!(desk.run("return page.evaluate(() => window.early)", json!({})).await?, json!(true));
    desk.press(&["a"]).await?;

    desk.look_at("edited").await?;
    desk.press(&["e"]).await?;
    let typed = "const field = page.getByRole('dialog').getByLabel('command'); await field.waitFor(); \
        for (let at = 0; at < 10 && !await field.evaluate((element) => element === document.activeElement); at++) await page.keyboard.press('Tab'); \
        await page.keyboard.press('Control+A'); await page.keyboard.insertText(args); \
        for (const name of ['Review changes', 'Allow edited']) { \
            const send = page.getByRole('button', {name}); await send.and(page.locator(':enabled')).waitFor(); \
            for (let at = 0; at < 10 && !await send.evaluate((element) => element === document.activeElement); at++) await page.keyboard.press('Tab'); \
            await page.keyboard.press('Enter'); }";
    desk.run(typed, json!(makes(desk, "instead"))).await?;

    desk.look_at("denied").await?;
    desk.press(&["d"]).await?;
    let reason = "await page.getByLabel('Reason').waitFor(); await page.keyboard.insertText(args); await page.keyboard.press('Enter')";
    desk.run(reason, json!("not that one, thanks")).await?;
    did_accordingly(desk, &session).await
}
