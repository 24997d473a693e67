//! The audit log with its filters, rules, budgets, the activity, finding things, the list of keys, and signing out.

use plexus_e2e::script;
use serde_json::json;

use super::{Hand, by_each_hand};

by_each_hand!(
    rules_are_added_tested_and_revoked_and_budgets_set,
    the_log_is_filtered_and_the_activity_explored,
    everything_is_found_and_a_person_signs_out,
);

async fn rules_are_added_tested_and_revoked_and_budgets_set(hand: &Hand) -> anyhow::Result<()> {
    let world = &hand.console.world;
    world.create("worker", json!({})).await?;
    let rules = "await view('Audit log'); await press(link('Rules')); await press(button('Add a rule')); \
        await fill(field('Rule', dialog), 'Bash(git push:*)'); await choose(field('Effect', dialog), 'deny'); await fill(field('Session (and its descendants)', dialog), 'worker'); \
        await fill(field('Expires after (minutes)', dialog), '60'); await press(button('Add', dialog)); await closed(); \
        await page.getByText('Bash(git push:*)').waitFor(); await fill(page.getByLabel('Filter rules'), 'push'); \
        const test = page.getByRole('region', {name: 'Test a call'}); await fill(field('Session', test), 'worker'); await fill(field('Tool', test), 'Bash'); \
        await fill(field('Input, as JSON', test), '{\"command\": \"git push\"}'); await press(button('Test', test)); await test.getByText('It would not run.').waitFor(); \
        await press(button('Revoke rule 1')); await press(button('Revoke', dialog)); await closed(); await page.getByText('No rules match the filter.').waitFor()";
    hand.does(rules, json!({})).await?;
    assert_eq!(world.call("policy.list", json!({})).await?["rules"], json!([]));
    let budgets = "await press(link('Budgets')); await fill(field('Session'), 'worker'); await press(button('Set budget')); \
        await fill(dialog.getByLabel('US dollars'), '5'); await press(button('Set', dialog)); await closed(); \
        await press(button('Change the budget of worker')); await fill(dialog.getByLabel('US dollars'), '6'); await press(button('Set', dialog)); await closed(); \
        await page.getByText('$6.00 left').waitFor()";
    hand.does(budgets, json!({})).await?;
    let got = world.call("claudecode.get", json!({"name": "worker"})).await?;
    assert_eq!(got["session"]["budget"]["cost_usd"]["limit"], 6.0, "{got:#}");
    Ok(())
}

async fn the_log_is_filtered_and_the_activity_explored(hand: &Hand) -> anyhow::Result<()> {
    let world = &hand.console.world;
    for name in ["first", "second"] {
        let session = world.create(name, json!({})).await?;
        world
            .chat(
                &session,
                &script(&json!([{"tool": "Bash", "input": {"command": "true"}}, {"say": "done"}])),
            )
            .await?;
        let (_, approval) = world.asked(&session).await?;
        world.allow(&approval).await?;
        world.ended(&session).await?;
    }
    let log = "await view('Audit log'); const entries = page.getByRole('listitem'); await entries.first().waitFor(); if (args.hand === 'touch') await press(button('Filters')); \
        await choose(page.getByLabel('Kind'), 'decision'); await fill(page.getByRole('combobox', {name: 'Session'}), 'second'); await fill(page.getByLabel('Tool'), 'Bash'); await fill(page.getByLabel('By', {exact: true}), 'operator'); \
        await page.waitForFunction(() => document.querySelectorAll('[role=listitem]').length === 1); await press(entries.first().locator('button').first()); \
        await press(entries.first().locator('summary').first()); await page.getByText('\"command\": \"true\"').waitFor(); \
        await press(link('Figures')); await page.locator('[data-testid=figures] canvas').first().waitFor(); await page.waitForLoadState()";
    hand.does(log, json!({})).await?;
    let activity = "await view('Activity'); await page.locator('.lane .span').first().waitFor(); \
        for (const name of ['15 min', 'Zoom in', 'Zoom out', 'Earlier', 'Later', '1 h']) await press(button(name)); \
        await press(button('Table')); await page.getByRole('table').waitFor(); await press(button('Chart')); await page.locator('.lane .span').first().waitFor(); \
        await press(link('second')); await page.getByRole('region', {name: 'Session'}).waitFor()";
    hand.does(activity, json!({})).await.map(drop)
}

async fn everything_is_found_and_a_person_signs_out(hand: &Hand) -> anyhow::Result<()> {
    let world = &hand.console.world;
    let session = world.create("checkout-fix", json!({})).await?;
    world.chat(&session, &script(&json!([{"say": "the discount is taken before the tax"}]))).await?;
    world.ended(&session).await?;
    let waits = world.create("waiter", json!({})).await?;
    world.chat(&waits, &script(&json!([{"tool": "Bash", "input": {"command": "true later"}}]))).await?;
    world.asked(&waits).await?;
    let find = "const find = async (words, group, text) => { await press(page.locator('button.find')); await fill(dialog.getByRole('combobox'), words); \
            const option = dialog.getByRole('option').filter({hasText: text}).first(); await option.waitFor(); \
            if (args.hand === 'touch') await press(option); else { \
                for (let at = 0; at < 30 && await option.getAttribute('aria-selected') !== 'true'; at++) await page.keyboard.press('ArrowDown'); await page.keyboard.press('Enter'); } \
            await closed(); }; \
        await find('checkout', 'Sessions', 'checkout-fix'); await page.getByRole('region', {name: 'Session'}).waitFor(); \
        await find('later', 'Open approvals', 'true later'); await page.locator('article[data-status=pending]').waitFor(); \
        await find('discount', 'Conversations', /^\\s*the discount is taken/); await page.getByRole('list', {name: 'Timeline'}).waitFor(); \
        await find('rules', 'Actions', 'Rules'); await page.getByRole('heading', {name: 'Test a call'}).waitFor()";
    hand.does(find, json!({})).await?;
    // A phone has no keys, so it has no list of them: the search signs out.
    let out = "if (args.hand === 'keyboard') { await press(button('Keyboard shortcuts')); await dialog.getByText('show or hide this list').waitFor(); await press(button('Sign out', dialog)); } \
        else { await press(page.locator('button.find')); await fill(dialog.getByRole('combobox'), 'sign out'); await press(dialog.getByRole('option', {name: 'Sign out'})); } \
        await page.getByText('Run plexus console in a terminal').waitFor(); await fill(page.locator('#token'), 'nonsense'); await press(button('Sign in')); \
        await page.getByRole('alert').getByText('The hub does not accept this token').waitFor()";
    hand.does(out, json!({})).await.map(drop)
}
