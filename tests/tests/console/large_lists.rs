//! Large lists: five hundred open approvals, a session with fifty thousand events. The page contains only visible rows. The tests
//! print what rendering costs.

use plexus_e2e::browser::Look;
use plexus_e2e::{Setup, script};
use serde_json::{Value, json};

use crate::console::signed_in_page::{ConsolePage, print_figure};

const SESSIONS: usize = 10;
const CALLS: usize = 50;
const EVENTS: usize = 50_000;
/// The largest number of elements in a page, however long its lists are.
const MAX_ELEMENTS: u64 = 3000;

async fn console(test: &str) -> anyhow::Result<Option<ConsolePage>> {
    let Some(world) = Setup::scripted().with_config("durability = \"normal\"").world(test).await? else {
        return Ok(None);
    };
    ConsolePage::open(world, test, Look::WIDE).await
}

/// The number of elements, the first paint in milliseconds, and the long tasks since the page was loaded.
const MEASURED: &str = "return page.evaluate(() => ({ elements: document.getElementsByTagName('*').length, \
    paint: Math.round(performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1), \
    tasks: window.__tasks.length, longest: Math.max(0, ...window.__tasks), \
    blocked: window.__tasks.reduce((sum, task) => sum + task, 0) }))";

async fn measured(console: &ConsolePage, what: &str) -> anyhow::Result<Value> {
    let measured = console.run(MEASURED, json!({})).await?;
    print_figure(&format!("{what}: {measured}"));
    assert!(
        measured["elements"].as_u64().is_some_and(|elements| elements < MAX_ELEMENTS),
        "{what}: {measured}"
    );
    Ok(measured)
}

#[tokio::test]
async fn five_hundred_open_approvals_stay_usable_and_are_answered_together() -> anyhow::Result<()> {
    let Some(console) = console("five_hundred_open_approvals_stay_usable_and_are_answered_together").await?
    else {
        return Ok(());
    };
    let mut sessions = Vec::new();
    for number in 0..SESSIONS {
        let calls: Vec<Value> = (0..CALLS)
            .map(|call| json!({"tool": "Bash", "input": {"command": format!("true {number}-{call}")}}))
            .collect();
        let session = console.world.create(&format!("worker-{number}"), json!({})).await?;
        console.world.chat(&session, &script(&json!([{"tools": calls, "parallel": true}]))).await?;
        sessions.push(session);
    }
    let all = (SESSIONS * CALLS).to_string();
    console
        .run("await page.getByTestId('shown').getByText(args, {exact: true}).waitFor()", json!(all))
        .await?;
    measured(&console, "500 approvals that came one by one").await?;
    console
        .run(
            "await page.reload(); await page.getByTestId('shown').getByText(args, {exact: true}).waitFor()",
            json!(all),
        )
        .await?;
    measured(&console, "500 approvals, the page loaded anew").await?;

    // Scrolls to the last approval: first by keys, then by the wheel.
    console.go("#/inbox").await?;
    console
        .run("await page.locator('[aria-posinset=\"1\"] [aria-current=true]').waitFor()", json!({}))
        .await?;
    console.run("for (let at = 0; at < 60; at++) await page.keyboard.press('j')", json!({})).await?;
    console
        .run("await page.locator('[aria-posinset=\"61\"] [aria-current=true]').waitFor()", json!({}))
        .await?;
    measured(&console, "sixty steps down").await?;
    let wheel = "await page.getByRole('listitem').first().hover(); \
        for (let at = 0; at < 500 && await page.locator('[aria-posinset=\"500\"]').count() === 0; at++) await page.mouse.wheel(0, 5000); \
        await page.locator('[aria-posinset=\"500\"]').waitFor()";
    console.run(wheel, json!({})).await?;
    measured(&console, "at the last of 500").await?;
    console.run("await page.getByLabel('Filter by').fill('true 7-3'); await page.getByTestId('shown').getByText('11 of 500').waitFor(); await page.getByLabel('Filter by').fill('')", json!({})).await?;

    console.click("Select all 500").await?;
    console.click("Allow selected").await?;
    // The button is disabled until the end of the list was visible.
    let end = "const all = page.getByRole('button', {name: 'Allow all 500', exact: true}); await all.and(page.locator(':disabled')).waitFor(); \
        await page.getByTestId('selected').focus(); await page.keyboard.press('End'); await all.and(page.locator(':enabled')).waitFor()";
    console.run(end, json!({})).await?;
    measured(&console, "before 500 are allowed").await?;
    console.click("Allow all 500").await?;
    console
        .run(
            "await page.getByText('Allowed 500 of 500.').waitFor(); await page.keyboard.press('Escape')",
            json!({}),
        )
        .await?;
    console.shows_no_approvals().await?;
    for session in &sessions {
        assert_eq!(console.world.ended(session).await?["status"], "complete");
    }
    assert_eq!(console.world.ran().len(), SESSIONS * CALLS);
    measured(&console, "500 answered").await?;
    console.window.close().await
}

#[tokio::test]
async fn a_session_with_fifty_thousand_events_stays_usable() -> anyhow::Result<()> {
    let Some(console) = console("a_session_with_fifty_thousand_events_stays_usable").await? else {
        return Ok(());
    };
    let session = console.world.create("talker", json!({})).await?;
    let go = console.world.file("go");
    let steps = json!([{"flood": {"events": EVENTS - 100, "bytes": 80}}, {"say": "in the middle"}, {"wait_file": go},
        {"flood": {"events": 100, "bytes": 80}}, {"say": "at the end of it all"}]);
    console.world.chat(&session, &script(&steps)).await?;
    // The page follows the session while it writes faster than anybody can read.
    console.go(&format!("#/session/{session}")).await?;
    let mut heard = 0;
    while heard < EVENTS as u64 - 99 {
        let wait = json!({"session_id": session, "from_seq": EVENTS - 100, "wait_ms": 10_000, "limit": 1});
        let poll = console.world.call("claudecode.poll", wait).await?;
        assert!(poll["total_events"].as_u64() > Some(heard), "no more events arrive: {poll:#}");
        heard = poll["total_events"].as_u64().unwrap_or_default();
    }
    console.run("await page.getByText('in the middle').waitFor()", json!({})).await?;
    measured(&console, "a session that talked").await?;
    console.run("await page.reload(); await page.getByText('in the middle').waitFor()", json!({})).await?;
    measured(&console, "its page loaded anew").await?;
    let earlier = "const list = page.getByRole('list', {name: 'Timeline'}); await list.hover(); \
        for (let at = 0; at < 40; at++) { await page.mouse.wheel(0, -3000); await page.evaluate(() => new Promise(requestAnimationFrame)); }";
    console.run(earlier, json!({})).await?;
    measured(&console, "far up").await?;
    // New events do not scroll a list that is scrolled up.
    std::fs::write(&go, "")?;
    assert_eq!(console.world.ended(&session).await?["status"], "complete");
    console.run("await page.getByRole('button', {name: 'new events'}).click(); await page.getByText('at the end of it all').waitFor()", json!({}))
        .await?;
    measured(&console, "at the end").await?;
    console.window.close().await
}
