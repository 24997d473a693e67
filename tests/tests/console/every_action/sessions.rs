//! Starting sessions, and everything that a person can do with one.

use plexus_e2e::{script, text};
use serde_json::{Value, json};

use super::{Hand, by_each_hand};

by_each_hand!(
    sessions_are_started_from_a_template_and_a_list,
    a_session_is_prompted_interrupted_and_changed,
    a_session_is_forked_archived_stopped_and_deleted,
);

/// Opens a session from the tree. The tree takes the keys for its rows.
const OPEN: &str = "const openSession = async (name) => { await view('Sessions'); \
        const row = page.getByRole('treeitem').filter({hasText: name}); await row.first().waitFor(); \
        if (args.hand === 'touch') await press(row.first()); else { \
            const tree = page.getByRole('tree'); for (let at = 0; at < 100 && !await tree.evaluate((element) => element.contains(document.activeElement)); at++) await page.keyboard.press('Tab'); \
            await page.keyboard.press('Home'); \
            for (let at = 0; at < 100 && await row.first().getAttribute('aria-selected') !== 'true'; at++) await page.keyboard.press('ArrowDown'); \
            await page.keyboard.press('Enter'); } \
        await page.getByRole('region', {name: 'Session'}).waitFor(); };";

async fn named(hand: &Hand, name: &str) -> anyhow::Result<Value> {
    Ok(hand.console.world.call("claudecode.get", json!({"name": name})).await?["session"].take())
}

async fn sessions_are_started_from_a_template_and_a_list(hand: &Hand) -> anyhow::Result<()> {
    let world = &hand.console.world;
    // A template is saved, then two sessions start from it and a list.
    let start = "await view('Sessions'); await press(button('Start a session')); \
        await fill(field('Directory', dialog), given.dir); await fill(field('Prompt', dialog), given.prompt); await fill(field('Model', dialog), 'a-model'); \
        await choose(field('Permission mode', dialog), 'acceptEdits'); await choose(field('Policy', dialog), 'ask_all'); await fill(field('Budget in US dollars', dialog), '2.5'); \
        await press(dialog.getByText('Save as a template')); await fill(field('Save as', dialog), 'checker'); await press(button('Save', dialog)); \
        await dialog.getByText('Saved as checker.').waitFor(); await press(button('Cancel', dialog)); await closed(); \
        await press(button('Start a session')); await choose(field('Template', dialog), 'checker'); \
        await check(field('Start one session for each line of a list', dialog)); await fill(field('List', dialog), 'apples\\npears'); \
        await press(button('Start 2', dialog)); await closed(); await page.getByRole('treeitem').nth(1).waitFor()";
    let prompt = json!({"steps": [{"say": "checked {}"}]}).to_string();
    hand.does(start, json!({"dir": world.work, "prompt": prompt})).await?;
    let list = world.call("claudecode.list", json!({})).await?;
    let sessions = list["sessions"].as_array().cloned().unwrap_or_default();
    assert_eq!(sessions.len(), 2, "{list:#}");
    for (session, fruit) in sessions.iter().zip(["apples", "pears"]) {
        assert_eq!(
            (
                &session["model"],
                &session["permission_mode"],
                &session["policy"],
                &session["budget"]["cost_usd"]["limit"]
            ),
            (&json!("a-model"), &json!("acceptEdits"), &json!("ask_all"), &json!(2.5)),
            "{session:#}"
        );
        let poll = world.ended(&text(&session["id"])).await?;
        assert!(poll.to_string().contains(&format!("checked {fruit}")), "{poll:#}");
    }
    // One session with a name of its own and a recent directory. The browser shows the recent directories.
    let one = "await press(button('Start a session')); await fill(field('Name', dialog), 'alone'); await fill(field('Prompt', dialog), ''); \
        await check(field('Allow it to start child agents', dialog)); await press(button('Start', dialog)); \
        await page.getByRole('heading', {name: 'alone', level: 1}).waitFor(); return true";
    hand.does(one, json!({})).await?;
    let alone = named(hand, "alone").await?;
    assert_eq!((&alone["hub_tools"], &alone["working_dir"]), (&json!(true), &json!(world.work)));
    Ok(())
}

async fn a_session_is_prompted_interrupted_and_changed(hand: &Hand) -> anyhow::Result<()> {
    let world = &hand.console.world;
    world.create("worker", json!({})).await?;
    let prompt = script(&json!([{"say": "in the middle"}, {"wait_file": world.file("never")}]));
    let talk = "await openSession('worker'); await menu('Change model'); await fill(field('Model', dialog), 'another-model'); await press(button('Change', dialog)); await closed(); \
        await fill(page.getByLabel('Message to the session'), given); await press(button('Start turn')); \
        await page.getByText('in the middle').first().waitFor(); await press(button('Interrupt')); await page.locator('[data-kind=error]').getByText('interrupted').first().waitFor()";
    hand.does(&format!("{OPEN} {talk}"), json!(prompt)).await?;
    let change = "await choose(page.getByLabel('Permission mode'), 'acceptEdits'); await page.waitForFunction(() => !document.querySelector('.mode select').disabled); \
        await menu('Rename'); await fill(field('Title', dialog), 'A better title'); await fill(field('Name', dialog), 'renamed'); await press(button('Rename', dialog)); await closed(); \
        await page.getByRole('heading', {name: 'A better title', level: 1}).waitFor()";
    hand.does(change, json!({})).await?;
    let session = named(hand, "renamed").await?;
    assert_eq!(
        (&session["permission_mode"], &session["model"], &session["title"]),
        (&json!("acceptEdits"), &json!("another-model"), &json!("A better title")),
        "{session:#}"
    );
    // A transcript is downloaded, and the other tabs and the details open.
    let read = "const arrives = page.waitForEvent('download'); await menu('Download transcript (Markdown)'); const file = await arrives; \
        await press(link('Conversation')); await page.getByTestId('conversation').waitFor(); await press(link('Timeline')); \
        await page.getByRole('list', {name: 'Timeline'}).waitFor(); await press(page.locator('summary').filter({hasText: 'turn 1'})); await page.getByText('Child agents').first().waitFor(); \
        return file.suggestedFilename()";
    let file = text(&hand.does(read, json!({})).await?);
    assert!(file.starts_with("renamed") && file.ends_with(".md"), "{file}");
    Ok(())
}

async fn a_session_is_forked_archived_stopped_and_deleted(hand: &Hand) -> anyhow::Result<()> {
    let world = &hand.console.world;
    let session = world.create("worker", json!({})).await?;
    world.chat(&session, &script(&json!([{"say": "first"}]))).await?;
    world.ended(&session).await?;
    let fork = "await openSession('worker'); await menu('Fork'); await fill(field('Name of the new session', dialog), 'forked'); await fill(field('Last shared turn', dialog), '1'); \
        await press(button('Fork', dialog)); await page.locator('.head').getByText('forked').first().waitFor()";
    hand.does(&format!("{OPEN} {fork}"), json!({})).await?;
    let stop = "await press(button('Stop')); await press(button('Stop', dialog)); await closed(); \
        await menu('Archive'); await view('Sessions'); \
        await page.getByRole('treeitem').filter({hasText: 'forked'}).waitFor({state: 'detached'}); await check(page.getByLabel('Archived')); \
        await page.getByRole('treeitem').filter({hasText: 'forked'}).waitFor(); await openSession('forked'); await menu('Unarchive'); \
        await view('Sessions'); if (args.hand === 'touch') await press(page.getByLabel('Archived')); else { await page.getByLabel('Archived').focus(); await page.keyboard.press('Space'); } \
        await page.getByRole('treeitem').filter({hasText: 'forked'}).waitFor()";
    hand.does(&format!("{OPEN} {stop}"), json!({})).await?;
    let delete = "await openSession('forked'); await menu('Show activity'); await page.getByRole('heading', {name: 'Activity'}).waitFor(); await page.goBack(); \
        await menu('Delete'); await press(button('Cancel', dialog)); await closed(); await menu('Delete'); await press(button('Delete', dialog)); await closed(); \
        await page.getByRole('heading', {name: 'Sessions', level: 1}).waitFor(); await page.getByRole('treeitem').filter({hasText: 'forked'}).waitFor({state: 'detached'})";
    hand.does(&format!("{OPEN} {delete}"), json!({})).await?;
    let list = world.call("claudecode.list", json!({"archived": true})).await?;
    assert_eq!(list["sessions"].as_array().map(Vec::len), Some(1), "{list:#}");
    Ok(())
}
