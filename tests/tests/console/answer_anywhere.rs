//! Answers on the page of a session, answers that are taken back, and the search over everything.

use plexus_e2e::browser::Look;
use plexus_e2e::{Setup, script};
use serde_json::json;

use crate::console::signed_in_page::ConsolePage;

async fn console(test: &str) -> anyhow::Result<Option<ConsolePage>> {
    let Some(world) = Setup::scripted().world(test).await? else { return Ok(None) };
    ConsolePage::open(world, test, Look::WIDE).await
}

/// A session that waits for approval of this command.
async fn asks(console: &ConsolePage, name: &str, command: &str) -> anyhow::Result<String> {
    let session = console.world.create(name, json!({})).await?;
    let call = json!({"tool": "Bash", "input": {"command": command}});
    console.world.chat(&session, &script(&json!([call, {"say": "done"}]))).await?;
    Ok(session)
}

#[tokio::test]
async fn an_approval_is_answered_on_the_page_of_its_session() -> anyhow::Result<()> {
    let Some(console) = console("an_approval_is_answered_on_the_page_of_its_session").await? else {
        return Ok(());
    };
    let session = asks(&console, "worker", "true here").await?;
    console.go(&format!("#/session/{session}")).await?;
    console.shows_approval("true here").await?;
    console.press(&["a"]).await?;
    let confirmed =
        "await page.getByTestId('confirmed').getByText('Allowed: Run true here (worker)').waitFor()";
    console.run(confirmed, json!({})).await?;
    assert_eq!(console.world.ended(&session).await?["status"], "complete");
    console.window.close().await
}

#[tokio::test]
async fn an_answer_that_is_taken_back_is_never_sent() -> anyhow::Result<()> {
    let Some(console) = console("an_answer_that_is_taken_back_is_never_sent").await? else { return Ok(()) };
    let choose = "await page.getByRole('button', {name: 'Settings for this browser'}).click(); const dialog = page.getByRole('dialog'); \
        await dialog.getByLabel('Undo answers').selectOption('10'); await page.keyboard.press('Escape'); await dialog.waitFor({state: 'detached'})";
    console.run(choose, json!({})).await?;
    let session = asks(&console, "worker", "true held").await?;
    console.shows_approval("true held").await?;
    console.press(&["a"]).await?;
    let undo = "const bar = page.getByTestId('confirmed'); await bar.getByText('Will be sent in').waitFor(); await page.keyboard.press('z'); \
        await bar.getByText('Undone, nothing was sent: Run true held').waitFor()";
    console.run(undo, json!({})).await?;
    let pending = console.world.call("loopback.pending", json!({})).await?;
    assert_eq!(pending["approvals"].as_array().map(Vec::len), Some(1), "{pending:#}");
    assert!(console.world.ran().is_empty());

    // The approval is shown again. An answer that is not taken back is sent.
    let shorter = "await page.evaluate(() => localStorage.setItem('plexus-preferences', JSON.stringify({undoSecs: 3}))); await page.reload(); \
        await page.locator('[data-state=live]').waitFor()";
    console.run(shorter, json!({})).await?;
    console.shows_approval("true held").await?;
    console.press(&["a"]).await?;
    assert_eq!(console.world.ended(&session).await?["status"], "complete");
    assert_eq!(console.world.ran().len(), 1);
    console.window.close().await
}

#[tokio::test]
async fn a_session_is_found_by_a_part_of_its_name() -> anyhow::Result<()> {
    let Some(console) = console("a_session_is_found_by_a_part_of_its_name").await? else { return Ok(()) };
    console.world.create("checkout-fix", json!({})).await?;
    console.world.create("release-notes", json!({})).await?;
    let find = "await page.keyboard.press('Control+k'); const dialog = page.getByRole('dialog', {name: 'Find anything'}); \
        await dialog.getByRole('combobox').fill('notes'); await dialog.getByRole('option', {name: 'release-notes'}).waitFor(); \
        await page.keyboard.press('Enter'); await page.getByRole('heading', {name: 'release-notes', level: 1}).waitFor()";
    console.run(find, json!({})).await?;
    console.window.close().await
}
