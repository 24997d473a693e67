//! Links to places: each leads to the same place in another tab, also after signing in there, and marks it. A link to something that
//! does not exist says so.

use plexus_e2e::browser::Look;
use plexus_e2e::{Setup, script};
use serde_json::json;

use crate::console::signed_in_page::{ConsolePage, link};

/// Records what the page copies: a test has no clipboard.
const COPIED: &str = "await page.evaluate(() => { \
    Object.defineProperty(navigator, 'clipboard', {value: {writeText: (text) => { window.__copied = text; return Promise.resolve(); }}}); })";

#[tokio::test]
async fn a_copied_link_opens_the_same_place_in_another_tab_after_signing_in() -> anyhow::Result<()> {
    let test = "a_copied_link_opens_the_same_place_in_another_tab_after_signing_in";
    let Some(world) = Setup::scripted().world(test).await? else { return Ok(()) };
    let Some(console) = ConsolePage::open(world, test, Look::WIDE).await? else { return Ok(()) };
    let world = &console.world;
    let session = world.create("talker", json!({"policy": "allow_all"})).await?;
    for turn in 1..=60 {
        let call = json!({"tool": "Bash", "input": {"command": format!("true turn {turn}")}});
        let said = format!("Begin {turn}.\n\n{}", "word ".repeat(200));
        world.chat(&session, &script(&json!([{"say": said}, call]))).await?;
        world.ended(&session).await?;
    }

    // The link of a call in an early turn: the page has to load earlier events to reach it.
    console.go(&format!("#/session/{session}/stream/3")).await?;
    console.run(COPIED, json!({})).await?;
    let copy = "await page.locator('.item.linked').getByRole('heading', {name: 'Turn 3', exact: true}).waitFor(); \
        const call = page.locator('[data-kind=call]').filter({hasText: 'true turn 3'}); await call.hover(); \
        await call.getByRole('link', {name: 'Link to this place'}).click(); \
        await page.waitForFunction(() => window.__copied !== undefined); return page.evaluate(() => window.__copied)";
    let copied = console.run(copy, json!({})).await?;
    assert!(
        copied.as_str().is_some_and(|link| link.contains(&format!("#/session/{session}/stream/3-"))),
        "{copied}"
    );

    // Another tab: the page asks to sign in, and then shows the place.
    console.run("await context.newPage()", json!({})).await?;
    let elsewhere = "await page.goto(args.place); await page.getByText('Run plexus console in a terminal').waitFor(); \
        await page.evaluate((link) => { location.href = link; }, args.link); \
        const place = page.locator('.item.linked[data-kind=call]'); await place.getByText('true turn 3').first().waitFor(); \
        await place.getByRole('button', {expanded: true}).waitFor(); \
        await page.reload(); await place.getByText('true turn 3').first().waitFor(); \
        return page.evaluate(() => { const box = document.querySelector('.item.linked').getBoundingClientRect(); \
            return {hash: location.hash, seen: box.top >= 0 && box.top < innerHeight}; })";
    let link = link(world).await?;
    let shown = console.window.run_in(1, elsewhere, json!({"place": copied, "link": link})).await?;
    assert_eq!(shown["seen"], true, "{shown}");
    assert!(
        copied.as_str().is_some_and(|link| link.ends_with(shown["hash"].as_str().unwrap_or("?"))),
        "{shown}"
    );

    // Places that do not exist.
    for (hash, says) in [
        (format!("#/session/{session}/stream/999"), "Turn 999 is not available. It does not exist."),
        (format!("#/session/{session}/stream/x"), "is not a place in a session"),
        ("#/session/00000000-0000-4000-8000-000000000000".to_owned(), "There is no session with this id"),
        ("#/inbox/00000000-0000-4000-8000-000000000000".to_owned(), "There is no such approval"),
        ("#/audit/log/999999".to_owned(), "There is no entry 999999"),
    ] {
        console.go(&hash).await?;
        console.run("await page.getByText(args).first().waitFor()", json!(says)).await?;
    }
    console.window.close().await
}

#[tokio::test]
async fn the_address_keeps_filters_and_leads_to_audit_entries() -> anyhow::Result<()> {
    let test = "the_address_keeps_filters_and_leads_to_audit_entries";
    let Some(world) = Setup::scripted().world(test).await? else { return Ok(()) };
    let Some(console) = ConsolePage::open(world, test, Look::WIDE).await? else { return Ok(()) };
    let world = &console.world;
    for name in ["alpha", "beta"] {
        let session = world.create(name, json!({})).await?;
        let call = json!({"tool": "Bash", "input": {"command": format!("npm run {name}")}});
        world.chat(&session, &script(&json!([{"tools": [call]}]))).await?;
        world.asked(&session).await?;
    }
    // A filter is part of the address, and an address sets the filter.
    console.go("#/inbox").await?;
    let typed = "await page.getByLabel('Filter by session, tool or text').fill('beta'); \
        await page.waitForFunction(() => location.hash.endsWith('?q=beta')); \
        await page.getByTestId('shown').getByText('1 of 2').waitFor()";
    console.run(typed, json!({})).await?;
    console.go("#/sessions?q=alpha").await?;
    let filtered = "await page.getByRole('treeitem').filter({hasText: 'alpha'}).waitFor(); \
        return {rows: await page.getByRole('treeitem').count(), typed: await page.getByLabel('Filter by name, title or project').inputValue()}";
    assert_eq!(console.run(filtered, json!({})).await?, json!({"rows": 1, "typed": "alpha"}));
    console.go("#/audit?kind=session").await?;
    let kinds = "await page.getByRole('listitem').first().waitFor(); \
        await page.waitForFunction(() => [...document.querySelectorAll('[role=listitem] .kind')].every((kind) => kind.textContent === 'session')); \
        return page.getByLabel('Kind').inputValue()";
    assert_eq!(console.run(kinds, json!({})).await?, json!("session"));

    // The second entry after a reload: opened, marked and the first of the list.
    console.go("#/audit/log/2").await?;
    let entry = "await page.reload(); await page.getByText('The entries from number 2 back.').waitFor(); \
        const row = page.locator('.row.selected'); await row.getByRole('button', {expanded: true}).waitFor(); \
        return row.getByRole('link', {name: 'Link to entry 2'}).getAttribute('href')";
    assert_eq!(console.run(entry, json!({})).await?, json!("#/audit/log/2"));
    console.window.close().await
}
