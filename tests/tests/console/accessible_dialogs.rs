//! axe finds no serious problem in any dialog, menu or state of the page, with the light and the dark scheme, wide and on a phone, and each
//! of them fits on the screen. `accessibility.rs` checks the views themselves.

use plexus_e2e::browser::Look;
use plexus_e2e::{Setup, script};
use serde_json::{Value, json};

use crate::console::accessibility::PROBLEMS;
use crate::console::scene::commit_all;
use crate::console::signed_in_page::{ConsolePage, child_of_an_agent};

/// Each dialog or state: its name, the address of the view below it, and how it is opened.
fn opened(asks: &str, worker: &str) -> Vec<(&'static str, String, &'static str)> {
    let inbox = || "#/inbox".to_owned();
    let approval = || format!("#/inbox/{asks}");
    let session = || format!("#/session/{worker}");
    let changes = || format!("#/session/{worker}/diff");
    vec![
        ("edit", approval(), "await click('Edit'); await dialog.getByLabel('command').waitFor()"),
        (
            "review of an edit",
            approval(),
            "await click('Edit'); await dialog.getByLabel('command').fill('true edited'); await click('Review changes'); await page.getByTestId('review').waitFor()",
        ),
        ("deny", approval(), "await click('Deny')"),
        ("deny and stop", approval(), "await click('Deny and stop')"),
        (
            "answer with a rule",
            approval(),
            "await click('Add rule'); await dialog.getByText('Matches this call.').waitFor()",
        ),
        (
            "answer with a wrong rule",
            approval(),
            "await click('Add rule'); await dialog.getByLabel('Rule', {exact: true}).fill('Bash('); await dialog.locator('[aria-invalid=true]').waitFor(); await dialog.locator('.bad').first().waitFor()",
        ),
        ("extend", approval(), "await click('Extend')"),
        (
            "escalate",
            inbox(),
            "await page.locator('[data-approval] a').filter({hasText: 'true above'}).click(); await page.locator('article[data-ready=true]').filter({hasText: 'true above'}).waitFor(); await click('Escalate')",
        ),
        (
            "several allowed",
            inbox(),
            "await page.getByRole('button', {name: /^Select all/}).click(); await click('Allow selected'); await page.getByTestId('selected').waitFor()",
        ),
        (
            "several denied",
            inbox(),
            "await click('Deny selected'); await page.getByTestId('selected').waitFor()",
        ),
        ("settings", inbox(), "await click('Settings for this browser')"),
        ("keys", inbox(), "await click('Keyboard shortcuts')"),
        (
            "find",
            inbox(),
            "await page.keyboard.press('Control+k'); await dialog.getByRole('combobox').fill('worker'); await dialog.getByRole('option').first().waitFor()",
        ),
        (
            "nothing found",
            inbox(),
            "await page.keyboard.press('Control+k'); await dialog.getByRole('combobox').fill('qqqq'); await dialog.getByText('Nothing found.').waitFor()",
        ),
        (
            "start a session",
            "#/sessions/start".to_owned(),
            "await dialog.getByLabel('Template').waitFor(); await dialog.getByLabel('Start one session for each line of a list').check(); await dialog.getByText('Save as a template').click()",
        ),
        (
            "archived sessions",
            "#/sessions".to_owned(),
            "await page.getByLabel('Archived').check(); await page.getByText('No archived sessions match.').waitFor(); await page.getByLabel('Archived').uncheck()",
        ),
        (
            "menu of a session",
            session(),
            "await click('More actions'); await page.getByRole('menu').waitFor()",
        ),
        ("stop a session", session(), "await click('Stop')"),
        ("rename", session(), "await menu('Rename')"),
        ("change model", session(), "await menu('Change model')"),
        ("fork", session(), "await menu('Fork')"),
        ("delete", session(), "await menu('Delete')"),
        (
            "comment on a line",
            changes(),
            "await page.getByRole('button', {name: 'Comment on line 1'}).last().click(); await page.getByRole('textbox', {name: 'Comment', exact: true}).fill('Use const.'); await click('Add comment')",
        ),
        ("send comments", changes(), "await click('Send 1 comment')"),
        ("commit", changes(), "await click('Commit…')"),
        (
            "push",
            changes(),
            "await click('Push commands…'); await dialog.getByText('The work is on the branch').waitFor()",
        ),
        (
            "activity as a table",
            "#/activity".to_owned(),
            "await click('Table'); await page.getByRole('table').waitFor()",
        ),
        (
            "an entry of the audit log",
            "#/audit".to_owned(),
            "await page.getByRole('listitem').locator('button').first().click(); await page.getByText('Entry', {exact: true}).waitFor()",
        ),
        ("add a rule", "#/audit/rules".to_owned(), "await click('Add a rule')"),
        (
            "revoke a rule",
            "#/audit/rules".to_owned(),
            "await page.getByRole('button', {name: 'Revoke rule'}).first().click()",
        ),
        (
            "test of a call",
            "#/audit/rules".to_owned(),
            "await page.getByLabel('Session', {exact: true}).fill('worker'); await click('Test'); await page.locator('.outcome').waitFor()",
        ),
        (
            "set a budget",
            "#/audit/budgets".to_owned(),
            "await page.getByRole('button', {name: 'Change the budget'}).first().click()",
        ),
        (
            "a session that does not exist",
            "#/session/00000000-0000-4000-8000-000000000000".to_owned(),
            "await page.getByText('There is no session with this id').waitFor()",
        ),
    ]
}

/// Opens one of them, and collects the problems in each scheme and width.
const CHECK: &str = "const dialog = page.getByRole('dialog'); const click = (name) => page.getByRole('button', {name, exact: true}).locator('visible=true').last().click(); \
    const menu = async (name) => { await click('More actions'); await page.getByRole('menuitem', {name, exact: true}).click(); }; \
    await page.evaluate((hash) => { location.hash = hash; }, args.hash); \
    if (/^#.inbox.+/.test(args.hash)) await page.locator('article[data-ready=true][data-shown=shown]').waitFor(); \
    await open(); const found = []; \
    for (const [width, height] of [[1280, 800], [390, 844]]) for (const colorScheme of ['light', 'dark']) { \
        await page.setViewportSize({width, height}); await page.emulateMedia({colorScheme}); \
        const where = `${args.name}, ${width} pixels, ${colorScheme}`; \
        found.push(...(await problems()).map((one) => `${where}: ${one}`)); \
        const wide = await page.evaluate(() => Math.max(...[document.documentElement, ...document.querySelectorAll('dialog')].map((one) => one.scrollWidth - one.clientWidth))); \
        if (wide > 0) found.push(`${where}: too wide by ${wide}`); } \
    await page.setViewportSize({width: 1280, height: 800}); await page.emulateMedia({colorScheme: 'light'}); await page.keyboard.press('Escape'); \
    const discard = dialog.getByRole('button', {name: 'Discard', exact: true}); if (await discard.isVisible()) await discard.click(); \
    await dialog.waitFor({state: 'detached'}); return found";

/// A session in a worktree with a change, a budget, a rule and a template.
async fn working(console: &ConsolePage) -> anyhow::Result<String> {
    let world = &console.world;
    std::fs::write(world.file("total.js"), "let total = 1;\n")?;
    commit_all(&world.work)?;
    let given = json!({"isolation": "worktree", "policy": "allow_all", "budget": {"cost_usd": 5.0}});
    let session = world.create("worker", given).await?;
    let edit =
        json!({"tool": "Edit", "input": {"file_path": "total.js", "old_string": "= 1", "new_string": "= 2"}});
    world.chat(&session, &script(&json!([edit, {"say": "Fixed."}]))).await?;
    world.ended(&session).await?;
    world.call("policy.add", json!({"rules": [{"effect": "deny", "rule": "Bash(git push:*)"}]})).await?;
    world.call("template.save", json!({"name": "checker", "prompt": "Check {}"})).await?;
    Ok(session)
}

#[tokio::test]
async fn every_dialog_is_accessible_and_fits() -> anyhow::Result<()> {
    let test = "every_dialog_is_accessible_and_fits";
    let Some(world) = Setup::scripted().world(test).await? else { return Ok(()) };
    let Some(console) = ConsolePage::open(world, test, Look::WIDE).await? else { return Ok(()) };
    let world = &console.world;
    let worker = working(&console).await?;
    let bash = |command: &str| json!({"tool": "Bash", "input": {"command": command}});
    let session = world.create("asker", json!({"approval_timeout_secs": 3600})).await?;
    world
        .chat(
            &session,
            &script(&json!([{"tools": [bash("rm -rf build"), bash("true two")], "parallel": true}])),
        )
        .await?;
    let (_, approval) = world.asked(&session).await?;
    child_of_an_agent(world, &script(&json!([bash("true above")]))).await?;

    let mut faults: Vec<Value> = Vec::new();
    for (name, hash, open) in opened(&plexus_e2e::text(&approval["id"]), &worker) {
        let code = format!(
            "const problems = async () => {{ {PROBLEMS} }}; const open = async () => {{ {open} }}; {CHECK}"
        );
        let found = console.run(&code, json!({"name": name, "hash": hash})).await?;
        faults.extend(found.as_array().cloned().unwrap_or_default());
    }
    assert!(faults.is_empty(), "{faults:#?}");
    console.window.close().await
}
