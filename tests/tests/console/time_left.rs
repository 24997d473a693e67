//! The time that an approval has left: shown in the list and in the detail once it is short, and updated without requests to the hub.

use plexus_e2e::browser::Look;
use plexus_e2e::{Setup, script, text};
use serde_json::json;

use crate::console::signed_in_page::ConsolePage;

#[tokio::test]
async fn an_approval_that_expires_soon_says_so_in_words_and_counts_down() -> anyhow::Result<()> {
    let test = "an_approval_that_expires_soon_says_so_in_words_and_counts_down";
    let Some(world) = Setup::scripted().world(test).await? else { return Ok(()) };
    let Some(console) = ConsolePage::open(world, test, Look::WIDE).await? else { return Ok(()) };
    let world = &console.world;
    let mut approvals = Vec::new();
    for (name, secs) in [("patient", 7_200), ("urgent", 300)] {
        let session = world.create(name, json!({"approval_timeout_secs": secs})).await?;
        let call = json!({"tool": "Bash", "input": {"command": format!("npm run {name}")}});
        world.chat(&session, &script(&json!([{"tools": [call]}]))).await?;
        approvals.push(text(&world.asked(&session).await?.1["id"]));
    }

    // The urgent approval is the first in the list, although it is newer.
    let list = "const row = page.getByRole('listitem'); await row.nth(1).waitFor(); \
        await row.nth(0).getByText('npm run urgent').waitFor(); \
        await row.nth(0).getByTestId('time-left').filter({hasText: /^Urgent: Expires in \\d min/}).waitFor(); \
        return row.nth(1).getByTestId('time-left').count()";
    assert_eq!(console.run(list, json!({})).await?, json!(0));

    console.go(&format!("#/inbox/{}", approvals[1])).await?;
    console.shows_approval("npm run urgent").await?;
    // A page on a slow machine may still refresh its list of sessions.
    let counts = "const requests = []; page.on('request', (request) => requests.push(request.postData() ?? '')); \
        const left = page.locator('article').getByTestId('time-left'); const before = await left.textContent(); \
        await page.waitForFunction((before) => document.querySelector('article [data-testid=time-left]').textContent !== before, before); \
        return {before, requests: requests.filter((body) => !body.includes('claudecode.list'))}";
    let counted = console.run(counts, json!({})).await?;
    assert!(text(&counted["before"]).starts_with("Urgent: Expires in"), "{counted}");
    assert_eq!(counted["requests"], json!([]));

    console.go(&format!("#/inbox/{}", approvals[0])).await?;
    console.shows_approval("npm run patient").await?;
    let calm = "await page.locator('article').getByText(/expires in 1 h 59 min|expires in 2 h/).waitFor(); \
        return page.locator('article').getByTestId('time-left').count()";
    assert_eq!(console.run(calm, json!({})).await?, json!(0));
    console.window.close().await
}
