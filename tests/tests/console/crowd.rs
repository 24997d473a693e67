//! Much at once: five hundred open approvals, a session of fifty thousand events. The page holds only what is in sight, and what
//! it takes to show it is printed.

use plexus_e2e::browser::Look;
use plexus_e2e::{Setup, script};
use serde_json::{Value, json};

use crate::desk::{Desk, tell};

const SESSIONS: usize = 10;
const CALLS: usize = 50;
const EVENTS: usize = 50_000;
/// So many elements may be in a page, whatever there is to show.
const MOST: u64 = 3000;

async fn desk(test: &str) -> anyhow::Result<Option<Desk>> {
    let Some(world) = Setup::scripted().with_config("durability = \"normal\"").world(test).await? else {
        return Ok(None);
    };
    Desk::open(world, test, Look::WIDE).await
}

/// The number of elements, the first paint and the long tasks since the page was loaded, all in milliseconds.
const MEASURED: &str = "return page.evaluate(() => ({ elements: document.getElementsByTagName('*').length, \
    paint: Math.round(performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1), \
    tasks: window.__tasks.length, longest: Math.max(0, ...window.__tasks), \
    blocked: window.__tasks.reduce((sum, task) => sum + task, 0) }))";

async fn measured(desk: &Desk, what: &str) -> anyhow::Result<Value> {
    let measured = desk.run(MEASURED, json!({})).await?;
    tell(&format!("{what}: {measured}"));
    assert!(measured["elements"].as_u64().is_some_and(|elements| elements < MOST), "{what}: {measured}");
    Ok(measured)
}

#[tokio::test]
async fn five_hundred_open_approvals_stay_smooth_and_are_answered_at_once() -> anyhow::Result<()> {
    let Some(desk) = desk("five_hundred_open_approvals_stay_smooth_and_are_answered_at_once").await? else {
        return Ok(());
    };
    let mut sessions = Vec::new();
    for number in 0..SESSIONS {
        let calls: Vec<Value> = (0..CALLS)
            .map(|call| json!({"tool": "Bash", "input": {"command": format!("true {number}-{call}")}}))
            .collect();
        let session = desk.world.create(&format!("worker-{number}"), json!({})).await?;
        desk.world.chat(&session, &script(&json!([{"tools": calls, "parallel": true}]))).await?;
        sessions.push(session);
    }
    let all = (SESSIONS * CALLS).to_string();
    desk.run("await page.getByTestId('shown').getByText(args, {exact: true}).waitFor()", json!(all)).await?;
    measured(&desk, "500 approvals that came one by one").await?;
    desk.run(
        "await page.reload(); await page.getByTestId('shown').getByText(args, {exact: true}).waitFor()",
        json!(all),
    )
    .await?;
    measured(&desk, "500 approvals, the page loaded anew").await?;

    // Down to the last one: by keys, a step at a time, and then by the wheel.
    desk.go("#/inbox").await?;
    desk.run("await page.locator('[aria-posinset=\"1\"] [aria-current=true]').waitFor()", json!({})).await?;
    desk.run("for (let at = 0; at < 60; at++) await page.keyboard.press('j')", json!({})).await?;
    desk.run("await page.locator('[aria-posinset=\"61\"] [aria-current=true]').waitFor()", json!({})).await?;
    measured(&desk, "sixty steps down").await?;
    let wheel = "await page.getByRole('listitem').first().hover(); \
        for (let at = 0; at < 500 && await page.locator('[aria-posinset=\"500\"]').count() === 0; at++) await page.mouse.wheel(0, 5000); \
        await page.locator('[aria-posinset=\"500\"]').waitFor()";
    desk.run(wheel, json!({})).await?;
    measured(&desk, "at the last of 500").await?;
    desk.run("await page.getByLabel('Filter by').fill('true 7-3'); await page.getByTestId('shown').getByText('11 of 500').waitFor(); await page.getByLabel('Filter by').fill('')", json!({})).await?;

    desk.click("Select all 500").await?;
    desk.click("Allow selected").await?;
    // Not before the end of the list was in sight.
    let end = "const all = page.getByRole('button', {name: 'Allow all 500', exact: true}); await all.and(page.locator(':disabled')).waitFor(); \
        await page.getByTestId('selected').focus(); await page.keyboard.press('End'); await all.and(page.locator(':enabled')).waitFor()";
    desk.run(end, json!({})).await?;
    measured(&desk, "before 500 are allowed").await?;
    desk.click("Allow all 500").await?;
    desk.run(
        "await page.getByText('Allowed 500 of 500.').waitFor(); await page.keyboard.press('Escape')",
        json!({}),
    )
    .await?;
    desk.nothing_open().await?;
    for session in &sessions {
        assert_eq!(desk.world.ended(session).await?["status"], "complete");
    }
    assert_eq!(desk.world.ran().len(), SESSIONS * CALLS);
    measured(&desk, "500 answered").await?;
    desk.window.close().await
}

#[tokio::test]
async fn a_session_of_fifty_thousand_events_stays_smooth() -> anyhow::Result<()> {
    let Some(desk) = desk("a_session_of_fifty_thousand_events_stays_smooth").await? else { return Ok(()) };
    let session = desk.world.create("talker", json!({})).await?;
    let go = desk.world.file("go");
    let steps = json!([{"flood": {"events": EVENTS - 100, "bytes": 80}}, {"say": "in the middle"}, {"wait_file": go},
        {"flood": {"events": 100, "bytes": 80}}, {"say": "at the end of it all"}]);
    desk.world.chat(&session, &script(&steps)).await?;
    // It is watched while it talks, and it talks faster than anybody reads.
    desk.go(&format!("#/session/{session}")).await?;
    let mut heard = 0;
    while heard < EVENTS as u64 - 99 {
        let wait = json!({"session_id": session, "from_seq": EVENTS - 100, "wait_ms": 10_000, "limit": 1});
        let poll = desk.world.call("claudecode.poll", wait).await?;
        assert!(poll["total_events"].as_u64() > Some(heard), "it has fallen silent: {poll:#}");
        heard = poll["total_events"].as_u64().unwrap_or_default();
    }
    desk.run("await page.getByText('in the middle').waitFor()", json!({})).await?;
    measured(&desk, "a session that talked").await?;
    desk.run("await page.reload(); await page.getByText('in the middle').waitFor()", json!({})).await?;
    measured(&desk, "its page loaded anew").await?;
    let earlier = "const list = page.getByRole('list', {name: 'Timeline'}); await list.hover(); \
        for (let at = 0; at < 40; at++) { await page.mouse.wheel(0, -3000); await page.evaluate(() => new Promise(requestAnimationFrame)); }";
    desk.run(earlier, json!({})).await?;
    measured(&desk, "far up").await?;
    // Whoever reads further up is not torn away by what comes.
    std::fs::write(&go, "")?;
    assert_eq!(desk.world.ended(&session).await?["status"], "complete");
    desk.run("await page.getByRole('button', {name: 'new events'}).click(); await page.getByText('at the end of it all').waitFor()", json!({}))
        .await?;
    measured(&desk, "at the end").await?;
    desk.window.close().await
}
