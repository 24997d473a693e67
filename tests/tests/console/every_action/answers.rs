//! Every way to answer an approval.

use plexus_e2e::{script, text};
use serde_json::{Value, json};

use super::{Hand, by_each_hand};
use crate::console::signed_in_page::child_of_an_agent;

by_each_hand!(
    one_approval_is_answered_in_every_way,
    several_approvals_are_answered_together,
    an_answer_is_taken_back,
    an_approval_of_an_agent_is_escalated,
);

/// Opens the approval whose row has this text, and waits until it can be answered.
const OPEN: &str = "const open = async (text) => { const back = page.getByRole('button', {name: 'All approvals'}); \
        const row = page.locator('[data-approval] a').filter({hasText: text}); \
        if (await back.isVisible()) await press(back); await row.waitFor(); \
        if (await row.getAttribute('aria-current') !== 'true') await press(row); \
        await page.locator('article[data-status=pending][data-ready=true]').filter({hasText: text}).waitFor(); \
        const more = page.getByRole('group', {name: 'Answer'}).getByRole('button', {name: 'Show more'}); \
        for (let at = 0; at < 20 && await page.locator('article[data-shown=shown]').count() === 0; at++) { if (args.hand === 'keyboard') await page.keyboard.press('m'); else await press(more); \
            await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))); } \
        await page.locator('article[data-shown=shown]').waitFor(); }; \
    const confirmed = (text) => page.getByTestId('confirmed').getByText(text).first().waitFor();";

fn bash(command: &str) -> Value {
    json!({"tool": "Bash", "input": {"command": command}})
}

/// How many options of a question can be selected.
#[derive(PartialEq)]
enum Choice {
    One,
    Several,
}

fn question(text: &str, choice: Choice) -> Value {
    let options = ["Red", "Green", "Blue"].map(|label| json!({"label": label, "description": ""}));
    json!({"question": text, "header": "Paint", "multiSelect": choice == Choice::Several, "options": options})
}

/// The ways: a name, the call, a text of its row, and what the person does.
fn ways() -> Vec<(&'static str, Value, &'static str, &'static str)> {
    let questions = json!([
        question("Which wall?", Choice::One),
        question("Which doors?", Choice::Several),
        question("Which floor?", Choice::One)
    ]);
    vec![
        (
            "allow",
            bash("true allow"),
            "true allow",
            "await press(button('Allow')); await confirmed('Allowed: Run true allow')",
        ),
        (
            "edit",
            bash("true edit"),
            "true edit",
            "await press(button('Edit')); await fill(field('command', dialog), 'true edited'); await press(button('Review changes', dialog)); \
             await press(button('Allow with changes', dialog)); await confirmed('Allowed with changes: Run true edited')",
        ),
        (
            "deny",
            bash("true deny"),
            "true deny",
            "await press(button('Deny')); await fill(dialog.getByLabel('Reason'), 'not now'); await press(button('Deny', dialog)); \
             await confirmed('Reason: not now')",
        ),
        (
            "stop",
            bash("true stop"),
            "true stop",
            "await press(button('Deny and stop')); await fill(dialog.getByLabel('Reason'), 'enough'); await press(button('Deny and stop', dialog)); \
             await confirmed('Reason: enough')",
        ),
        (
            "extend",
            bash("true extend"),
            "true extend",
            "await press(button('Extend')); await press(button('8 hours', dialog)); await confirmed('Extended: Run true extend'); \
             await page.locator('article').getByText('expires in').waitFor(); await press(button('Allow')); await confirmed('Allowed: Run true extend')",
        ),
        (
            "rule",
            bash("npm test one"),
            "npm test one",
            "await press(button('Add rule')); await check(dialog.getByLabel('Deny now and in the future')); await check(dialog.getByLabel('Allow now and in the future')); \
             await fill(field('Rule', dialog), 'Bash(npm test:*)'); await choose(dialog.getByLabel('Expires'), '3600'); \
             await dialog.getByText('Matches this call.').waitFor(); await press(button('Allow and add rule', dialog)); await confirmed('Allowed: Run npm test one')",
        ),
        (
            "plan",
            json!({"tool": "ExitPlanMode", "input": {"plan": "# Paint the house"}}),
            "Paint the house",
            "await choose(page.getByLabel('then'), 'acceptEdits'); await press(button('Approve')); await confirmed('Allowed: plan')",
        ),
        (
            "question",
            json!({"tool": "AskUserQuestion", "input": {"questions": questions}}),
            "Which wall?",
            "const ask = (name) => page.getByRole('group', {name}); await check(ask('Which wall?').getByLabel('Green')); \
             for (const door of ['Red', 'Blue']) await check(ask('Which doors?').getByLabel(door)); \
             await fill(ask('Which floor?').getByLabel('Other answer'), 'Leave it'); await press(button('Answer')); await confirmed('Answered: Question: Which wall?')",
        ),
    ]
}

async fn one_approval_is_answered_in_every_way(hand: &Hand) -> anyhow::Result<()> {
    let world = &hand.console.world;
    for (name, call, row, code) in ways() {
        let session = world.create(name, json!({"approval_timeout_secs": 600})).await?;
        world.chat(&session, &script(&json!([call, {"say": "done"}]))).await?;
        hand.does(&format!("{OPEN} await open(given); {code}"), json!(row)).await?;
        world.ended(&session).await?;
    }
    let ran: Vec<String> = world.ran().iter().map(|call| text(&call["input"]["command"])).collect();
    assert_eq!(ran, ["true allow", "true edited", "true extend", "npm test one", "", ""]);

    let spender =
        world.create("spender", json!({"policy": "allow_all", "budget": {"tool_calls": 1}})).await?;
    world.chat(&spender, &script(&json!([bash("true one"), bash("true two"), {"say": "done"}]))).await?;
    let grant = "await open('Grant a larger budget'); await fill(field('Grant'), '3'); await press(button('Grant')); await confirmed('Granted')";
    hand.does(&format!("{OPEN} {grant}"), json!({})).await?;
    assert_eq!(world.ended(&spender).await?["status"], "complete");
    let got = world.call("claudecode.get", json!({"session_id": spender})).await?;
    assert_eq!(got["session"]["budget"]["tool_calls"]["limit"], 4, "{got:#}");
    Ok(())
}

async fn several_approvals_are_answered_together(hand: &Hand) -> anyhow::Result<()> {
    let world = &hand.console.world;
    let session = world.create("worker", json!({})).await?;
    let calls: Vec<Value> = ["one", "two", "three", "four"].map(|word| bash(&format!("true {word}"))).into();
    world.chat(&session, &script(&json!([{"tools": calls, "parallel": true}]))).await?;
    let bulk = "await page.getByTestId('shown').getByText('4', {exact: true}).waitFor(); \
        await choose(page.getByLabel('Group the list'), 'project'); await page.locator('h2.group').waitFor(); await choose(page.getByLabel('Group the list'), 'none'); \
        for (const word of ['one', 'two']) await check(page.getByLabel(`Select Run true ${word} in worker`)); \
        await press(button('Allow selected')); await press(button('Allow all 2', dialog)); await dialog.getByText('Allowed 2 of 2.').waitFor(); await press(button('Done', dialog)); await closed(); \
        await page.getByTestId('shown').getByText('2', {exact: true}).waitFor(); \
        const back = page.getByRole('button', {name: 'All approvals'}); if (await back.isVisible()) await press(back); \
        await fill(page.getByLabel('Filter by session, tool or text'), 'three'); await page.getByTestId('shown').getByText('1 of 2').waitFor(); \
        await fill(page.getByLabel('Filter by session, tool or text'), ''); await page.getByTestId('shown').getByText('2', {exact: true}).waitFor(); \
        await press(button('Select all 2')); await press(button('Clear selection')); await press(button('Select all 2')); await press(button('Deny selected')); \
        await fill(dialog.getByLabel('Reason'), 'no more'); await press(button('Deny all 2', dialog)); await dialog.getByText('Denied 2 of 2.').waitFor(); await press(button('Done', dialog)); await closed()";
    hand.does(bulk, json!({})).await?;
    world.ended(&session).await?;
    assert_eq!(world.ran().len(), 2);
    Ok(())
}

async fn an_answer_is_taken_back(hand: &Hand) -> anyhow::Result<()> {
    let world = &hand.console.world;
    let settings = "if (args.hand === 'touch') { await press(button('Account')); await press(page.getByRole('menuitem', {name: 'Settings for this browser'})); } \
        else await press(button('Settings for this browser')); await choose(dialog.getByLabel('Diffs'), 'split'); \
        await choose(dialog.getByLabel('Open files in'), 'vscode'); await choose(dialog.getByLabel('Undo answers'), given); \
        await press(button('Close', dialog)); await closed();";
    hand.does(settings, json!("10")).await?;
    let session = world.create("worker", json!({})).await?;
    world.chat(&session, &script(&json!([bash("true held"), {"say": "done"}]))).await?;
    let undo = "await open('true held'); await press(button('Allow')); await press(page.getByTestId('confirmed').getByRole('button', {name: 'Undo'})); \
        await confirmed('Undone, nothing was sent: Run true held'); await press(button('Dismiss'))";
    hand.does(&format!("{OPEN} {undo}"), json!({})).await?;
    let pending = world.call("loopback.pending", json!({})).await?;
    assert_eq!(pending["approvals"].as_array().map(Vec::len), Some(1), "{pending:#}");
    assert!(world.ran().is_empty());
    hand.does(settings, json!("0")).await?;
    hand.does(&format!("{OPEN} await open('true held'); await press(button('Allow')); await confirmed('Allowed: Run true held')"), json!({})).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    Ok(())
}

async fn an_approval_of_an_agent_is_escalated(hand: &Hand) -> anyhow::Result<()> {
    let world = &hand.console.world;
    let prompt = script(&json!([bash("true above"), {"say": "done"}]));
    let child = child_of_an_agent(world, &prompt).await?;
    let escalate = "await open('true above'); await press(button('Escalate')); await fill(dialog.getByLabel('Your opinion'), 'looks fine'); \
        await press(button('Escalate', dialog)); await confirmed('Escalated: Run true above'); await closed(); \
        await page.locator('article').getByText('looks fine').waitFor(); await press(button('Allow')); await confirmed('Allowed: Run true above')";
    hand.does(&format!("{OPEN} {escalate}"), json!({})).await?;
    assert_eq!(world.ended(&child).await?["status"], "complete");
    Ok(())
}
