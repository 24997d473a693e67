//! What the page says in each state: a first visit, nothing to show, a wrong or revoked token, a missing right, a link that is pasted into
//! an open tab, and an unknown address. Each says what happened and what to do. The states of a hub that is disconnected or frozen are in
//! `live_updates.rs` and `shown_in_full.rs`.

use plexus_e2e::browser::{Look, Window};
use plexus_e2e::{Setup, script, text};
use serde_json::json;

use crate::console::signed_in_page::{ConsolePage, link};

async fn console(test: &str) -> anyhow::Result<Option<ConsolePage>> {
    let Some(world) = Setup::scripted().world(test).await? else { return Ok(None) };
    ConsolePage::open(world, test, Look::WIDE).await
}

/// Opens a view by its address and checks that the page shows all these texts.
const SHOWS: &str = "await page.evaluate((hash) => { location.hash = hash; }, args.hash); \
    for (const text of args.texts) await page.getByText(text).first().waitFor()";

#[tokio::test]
async fn a_first_visit_and_every_empty_view_explain_themselves() -> anyhow::Result<()> {
    let Some(console) = console("a_first_visit_and_every_empty_view_explain_themselves").await? else {
        return Ok(());
    };
    let unknown = "00000000-0000-4000-8000-000000000000";
    for (hash, texts) in [
        (
            "#/inbox".to_owned(),
            vec!["No open approvals.", "Start your first agent", "appears here, and you allow", "plexus run"],
        ),
        ("#/sessions".to_owned(), vec!["No sessions.", "Start one here, or with"]),
        ("#/activity".to_owned(), vec!["No session was active in this period."]),
        ("#/audit/rules".to_owned(), vec!["No rules.", "The policy of each session decides"]),
        ("#/audit/budgets".to_owned(), vec!["No session has a budget of its own."]),
        (format!("#/session/{unknown}"), vec!["There is no session with this id"]),
        (format!("#/inbox/{unknown}"), vec!["This approval cannot be shown"]),
    ] {
        console.run(SHOWS, json!({"hash": hash, "texts": texts})).await?;
    }
    // A filter that matches nothing says so, and a hub with sessions no longer explains how to begin.
    console.world.create("worker", json!({})).await?;
    console.run(SHOWS, json!({"hash": "#/inbox", "texts": ["Nothing to decide"]})).await?;
    console.run(SHOWS, json!({"hash": "#/sessions", "texts": ["worker"]})).await?;
    let filter = "await page.getByLabel('Filter by name').fill('nowhere'); await page.getByText('No sessions match the filter.').waitFor()";
    console.run(filter, json!({})).await?;
    let log = "await page.evaluate(() => { location.hash = '#/audit'; }); await page.getByRole('listitem').first().waitFor(); await page.getByLabel('Tool').fill('Nothing'); \
        await page.getByText('No entries match the filters.').waitFor()";
    console.run(log, json!({})).await?;
    console.window.close().await
}

#[tokio::test]
async fn a_tab_without_access_says_what_happened_and_what_to_do() -> anyhow::Result<()> {
    let test = "a_tab_without_access_says_what_happened_and_what_to_do";
    let Some(world) = Setup::scripted().world(test).await? else { return Ok(()) };
    let Some(window) = Window::open(test, &[world.hub.url()], Look::WIDE).await? else { return Ok(()) };
    let says = "const alert = page.getByRole('alert'); for (const text of args) await alert.getByText(text).waitFor()";
    let enter = "await page.getByLabel('Or sign in with a token').fill(args); await page.getByRole('button', {name: 'Sign in'}).click()";
    let first = "await page.goto(args); await page.getByText('Supervise your coding agents').waitFor(); await page.getByText('Run plexus console in a terminal').waitFor()";
    window.run(first, json!(world.hub.url())).await?;

    // A token that the hub does not know.
    window.run(enter, json!("nonsense")).await?;
    window.run(says, json!(["The hub does not accept this token", "plexus tokens"])).await?;

    // A token that may only answer: the inbox works, the other views say which right is missing.
    let made = world.call("token.new", json!({"name": "ann", "right": "decide"})).await?;
    window.run(enter, made["token"].clone()).await?;
    window.run("await page.locator('[data-state=live]').waitFor()", json!({})).await?;
    let session = world.create("asker", json!({})).await?;
    world.chat(&session, &script(&json!([{"tool": "Bash", "input": {"command": "true"}}]))).await?;
    let answer = "await page.locator('article[data-ready=true][data-shown=shown]').waitFor(); await page.getByRole('button', {name: 'Allow', exact: true}).click(); \
        await page.getByTestId('confirmed').getByText('Allowed: Run true').waitFor(); return page.getByRole('navigation', {name: 'Views'}).getByRole('link').allInnerTexts()";
    assert_eq!(window.run(answer, json!({})).await?, json!(["Inbox"]));
    world.ended(&session).await?;
    for hash in ["#/sessions", "#/activity", "#/audit"] {
        let texts = ["Your token does not give access to this view", "plexus tokens new NAME --right read"];
        window.run(SHOWS, json!({"hash": hash, "texts": texts})).await?;
    }

    // The operator revokes it: the tab is signed out and says so.
    world.call("token.revoke", json!({"name": "ann"})).await?;
    window.run(says, json!(["This tab was signed out", "was revoked", "plexus console"])).await?;

    // A link that is pasted into the open tab signs it in, without loading the page again.
    window.run("await page.evaluate(() => { window.stayed = true; })", json!({})).await?;
    let sign_in = link(&world).await?;
    let (_, code) = sign_in.split_once('#').unwrap_or_default();
    let paste = "await page.evaluate((code) => { location.hash = code; }, args); await page.locator('[data-state=live]').waitFor(); \
        return page.evaluate(() => [window.stayed, location.hash.includes('login')])";
    assert_eq!(window.run(paste, json!(code)).await?, json!([true, false]));
    // A link that is pasted into a tab that is signed in already replaces its token.
    let tokens = world.call("token.list", json!({})).await?;
    let before = text(&tokens["tokens"][0]["name"]);
    let again = link(&world).await?;
    let (_, code) = again.split_once('#').unwrap_or_default();
    assert_eq!(window.run(paste, json!(code)).await?, json!([true, false]));
    world.call("token.revoke", json!({"name": before})).await?;
    let works = "await page.evaluate(() => { location.hash = '#/sessions'; }); await page.getByText('asker').first().waitFor(); await page.locator('[data-state=live]').waitFor()";
    window.run(works, json!({})).await?;
    // The tab stays signed in when it is reloaded.
    window.run("await page.reload(); await page.locator('[data-state=live]').waitFor()", json!({})).await?;
    window.close().await
}

#[tokio::test]
async fn nothing_moves_when_the_system_asks_for_less_motion() -> anyhow::Result<()> {
    let test = "nothing_moves_when_the_system_asks_for_less_motion";
    let Some(console) = console(test).await? else { return Ok(()) };
    let session = console.world.create("worker", json!({})).await?;
    console.world.chat(&session, &script(&json!([{"tool": "Bash", "input": {"command": "true"}}]))).await?;
    console.shows_approval("true").await?;
    let moving = "await page.emulateMedia({reducedMotion: args}); const moves = () => page.evaluate(() => { \
            const styles = [...document.querySelectorAll('*')].map((element) => getComputedStyle(element)); \
            const secs = (text) => text.split(',').some((one) => parseFloat(one) > 0); \
            return styles.filter((style) => (secs(style.transitionDuration) && style.transitionProperty !== 'none') || style.animationName !== 'none').length; }); \
        return [await moves(), (await page.getByRole('button', {name: 'Deny', exact: true}).click(), await page.getByRole('dialog').waitFor(), await moves()), await page.keyboard.press('Escape') ?? null].slice(0, 2)";
    let motion = console.run(moving, json!("no-preference")).await?;
    assert!(motion[0].as_u64() > Some(0), "motion explains changes: {motion}");
    assert_eq!(console.run(moving, json!("reduce")).await?, json!([0, 0]));
    console.window.close().await
}
