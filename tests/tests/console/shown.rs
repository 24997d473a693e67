//! What was not shown is not allowed: long inputs have to be shown to their end, what a list cuts cannot be allowed from it, and a key answers only what is on
//! the screen.

use plexus_e2e::browser::Look;
use plexus_e2e::{Setup, script};
use serde_json::{Value, json};

use crate::desk::Desk;

async fn desk(test: &str, look: Look) -> anyhow::Result<Option<Desk>> {
    let Some(world) = Setup::scripted().world(test).await? else { return Ok(None) };
    Desk::open(world, test, look).await
}

/// A session that asks for all of these calls at once.
async fn asks(desk: &Desk, name: &str, calls: Vec<Value>) -> anyhow::Result<String> {
    let session = desk.world.create(name, json!({})).await?;
    desk.world.chat(&session, &script(&json!([{"tools": calls, "parallel": true}]))).await?;
    Ok(session)
}

fn bash(command: &str) -> Value {
    json!({"tool": "Bash", "input": {"command": command}})
}

/// Waits until so many approvals are open.
async fn open(desk: &Desk, count: usize) -> anyhow::Result<()> {
    desk.run(
        "await page.getByTestId('shown').getByText(args, {exact: true}).waitFor()",
        json!(count.to_string()),
    )
    .await
    .map(drop)
}

/// Waits until an input, or a question, that says this is shown, and looks at it. What else the page quotes, such as the prompt, does not count.
async fn look_at(desk: &Desk, says: &str) -> anyhow::Result<()> {
    let code = "await page.locator('article[data-status=pending][data-ready=true]') \
        .filter({has: page.locator('.input, fieldset').filter({hasText: args})}).waitFor()";
    desk.run(code, json!(says)).await.map(drop)
}

/// Selects the row of the list that says this.
async fn choose(desk: &Desk, says: &str) -> anyhow::Result<()> {
    // On a phone the list is behind what is looked at.
    let choose = "const back = page.getByRole('button', {name: 'All approvals'}); if (await back.isVisible()) await back.click(); \
        await page.getByRole('listitem').getByText(args).first().click()";
    desk.run(choose, json!(says)).await?;
    look_at(desk, says).await
}

#[tokio::test]
async fn bulk_allow_runs_only_what_it_has_shown_in_full() -> anyhow::Result<()> {
    let test = "bulk_allow_runs_only_what_it_has_shown_in_full";
    let Some(desk) = desk(test, Look::WIDE).await? else { return Ok(()) };
    let made = |name: &str| format!("touch {}", desk.world.file(name).display());
    let padded = |name: &str, by: usize| format!("true {}; {}", "x".repeat(by), made(name));
    let question = json!({"question": "Which?", "header": "H", "multiSelect": false, "options": [{"label": "A", "description": ""}]});
    let calls = vec![
        bash(&made("short")),
        bash(&padded("middle", 200)),
        bash(&padded("hidden", 2_000)),
        bash(&format!("true{}{}", "\n".repeat(50), made("below"))),
        json!({"tool": "Bash", "input": {"command": "true", "y".repeat(900): "z"}}),
        json!({"tool": "ExitPlanMode", "input": {"plan": "# Do it"}}),
        json!({"tool": "AskUserQuestion", "input": {"questions": [question]}}),
    ];
    asks(&desk, "worker", calls).await?;
    open(&desk, 7).await?;
    // Plans and questions cannot be selected, and say why.
    let boxes = "const rows = page.locator('[data-approval] .mark').filter({has: page.locator('input:disabled')}); \
        return (await Promise.all((await rows.all()).map((row) => row.getAttribute('title')))).sort()";
    let titles = desk.run(boxes, json!({})).await?;
    assert_eq!(
        titles,
        json!(["Plans are answered one by one. Open it.", "Questions are answered one by one. Open it."])
    );
    desk.click("Select all 5").await?;
    desk.click("Allow selected").await?;
    let listed = "const all = page.getByRole('button', {name: 'Allow all 2', exact: true}); await all.and(page.locator(':enabled')).waitFor(); \
        return { shown: await page.getByTestId('selected').innerText(), apart: await page.getByTestId('apart').locator('li').allInnerTexts() }";
    let listed = desk.run(listed, json!({})).await?;
    let shown = plexus_e2e::text(&listed["shown"]);
    assert!(shown.contains(&made("short")) && shown.contains(&padded("middle", 200)), "{listed:#}");
    let apart = listed["apart"].as_array().cloned().unwrap_or_default();
    assert_eq!(apart.len(), 3, "{listed:#}");
    assert!(
        apart.iter().all(|line| plexus_e2e::text(line).ends_with("Too long to show here in full. Open it.")),
        "{apart:#?}"
    );
    desk.run("await page.locator('dialog button[aria-disabled=false]').waitFor()", json!({})).await?;
    desk.click("Allow all 2").await?;
    desk.run("await page.getByRole('dialog').getByText('Allowed 2 of 2.').waitFor()", json!({})).await?;
    desk.click("Done").await?;
    desk.run("await page.getByTestId('confirmed').getByText('Allowed 2 of 2').waitFor()", json!({})).await?;
    open(&desk, 5).await?;
    plexus_e2e::until("both to have run", || {
        desk.world.file("short").exists() && desk.world.file("middle").exists()
    })
    .await?;
    assert_eq!(desk.world.ran().len(), 2);

    // Denying needs no reading; who was first is told.
    desk.click("Deny selected").await?;
    let pending = desk.world.call("loopback.pending", json!({})).await?;
    let hidden = pending["approvals"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|one| one["input"].to_string().contains("xxx"))
        .cloned();
    desk.world.respond(&hidden.unwrap_or_default(), json!({"approve": false})).await?;
    let deny = "await page.locator('dialog button[aria-disabled=false]').waitFor(); await page.getByLabel('Reason').fill('no'); \
        await page.getByRole('button', {name: 'Deny all 3'}).click(); await page.getByRole('dialog').getByText(/Denied [23] of [23]\\./).waitFor()";
    desk.run(deny, json!({})).await?;
    desk.click("Done").await?;
    open(&desk, 2).await?;
    assert!(!desk.world.file("hidden").exists() && !desk.world.file("below").exists());
    desk.window.close().await
}

#[tokio::test]
async fn a_long_input_is_allowed_once_its_end_was_shown() -> anyhow::Result<()> {
    let test = "a_long_input_is_allowed_once_its_end_was_shown";
    for look in [Look::WIDE, Look::PHONE] {
        let Some(desk) = desk(test, look).await? else { return Ok(()) };
        let lines: String = (0..400).map(|line| format!("true {line}\n")).collect();
        let last = desk.world.file("last");
        let same: String = (0..60).map(|line| format!("line {line}\n")).collect();
        let edit = json!({"file_path": "/tmp/x", "old_string": format!("{same}a\n"), "new_string": format!("{same}b\n")});
        let calls = vec![
            bash(&format!("{lines}touch {}", last.display())),
            json!({"tool": "Edit", "input": edit}),
            json!({"tool": "Other", "input": {"x".repeat(2_000): "short"}}),
        ];
        asks(&desk, "worker", calls).await?;
        open(&desk, 3).await?;
        for (says, words) in [
            ("true 0", "Allowed: Bash true 0"),
            ("/tmp/x", "Allowed: Edit /tmp/x"),
            ("xxx", "Allowed: Other"),
        ] {
            choose(&desk, says).await?;
            let cut = "await page.locator('article[data-shown=cut]').waitFor(); await page.getByText('Not shown in full').waitFor(); \
                const allow = page.getByRole('button', {name: 'Allow', exact: true}); \
                for (const key of ['a', 'e', 'r']) await page.keyboard.press(key); \
                return [await allow.isDisabled(), await page.getByRole('dialog').count()]";
            assert_eq!(desk.run(cut, json!({})).await?, json!([true, 0]), "{says}");
            // By keys alone: all of it, then a screen at a time.
            let down = "await page.keyboard.press('m'); await page.locator('article:not([data-shown=cut])').waitFor(); let steps = 0; \
                for (; steps < 200 && await page.locator('article[data-shown=shown]').count() === 0; steps++) { \
                    await page.keyboard.press('a'); await page.keyboard.press('m'); \
                    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))); } \
                await page.locator('article[data-shown=shown]').waitFor(); return steps";
            let steps = desk.run(down, json!({})).await?;
            assert!(says != "true 0" || steps.as_u64() > Some(3), "{steps}");
            look_at(&desk, says).await?;
            desk.press(&["a"]).await?;
            desk.run("await page.getByTestId('confirmed').getByText(args).waitFor()", json!(words)).await?;
        }
        desk.nothing_open().await?;
        plexus_e2e::until("the last line to have run", || last.exists()).await?;
        desk.window.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn with_a_filter_keys_reach_only_what_the_list_shows() -> anyhow::Result<()> {
    let test = "with_a_filter_keys_reach_only_what_the_list_shows";
    let Some(desk) = desk(test, Look::WIDE).await? else { return Ok(()) };
    let made = |name: &str| format!("touch {}", desk.world.file(name).display());
    asks(&desk, "worker", vec![bash(&made("first")), bash(&made("second"))]).await?;
    open(&desk, 2).await?;
    choose(&desk, "first").await?;
    desk.press(&["x"]).await?;
    // The filter leaves the other one: that is what is looked at, and what is selected is out of reach.
    let filter = "await page.keyboard.press('/'); await page.keyboard.insertText(args.words); \
        await page.getByTestId('shown').getByText(args.left).waitFor(); await page.keyboard.press('Enter')";
    desk.run(filter, json!({"words": "second", "left": "1 of 2"})).await?;
    look_at(&desk, "second").await?;
    let reach = "return [await page.getByRole('button', {name: 'Allow selected'}).count(), await page.locator('article .input').filter({hasText: 'first'}).count()]";
    assert_eq!(desk.run(reach, json!({})).await?, json!([0, 0]));
    desk.press(&["A", "X"]).await?;
    assert_eq!(desk.run("return page.getByRole('dialog').count()", json!({})).await?, json!(0));
    // One that leaves nothing leaves nothing to answer.
    desk.run("await page.getByLabel('Filter by').fill('')", json!({})).await?;
    desk.run(filter, json!({"words": "nowhere", "left": "0 of 2"})).await?;
    desk.run("await page.locator('article').waitFor({state: 'detached'})", json!({})).await?;
    desk.press(&["a", "e", "d", "D", "r", "A", "X"]).await?;
    assert_eq!(desk.run("return page.getByRole('dialog').count()", json!({})).await?, json!(0));
    assert!(desk.world.ran().is_empty());
    // Without it, all is as it was.
    desk.run("await page.getByLabel('Filter by').fill('second'); await page.getByLabel('Filter by').press('Enter')", json!({})).await?;
    look_at(&desk, "second").await?;
    desk.press(&["a"]).await?;
    plexus_e2e::until("the second to have run", || desk.world.file("second").exists()).await?;
    assert!(!desk.world.file("first").exists());
    desk.window.close().await
}

#[tokio::test]
async fn a_change_of_a_file_has_the_numbers_of_the_file_and_a_write_is_a_diff() -> anyhow::Result<()> {
    let test = "a_change_of_a_file_has_the_numbers_of_the_file_and_a_write_is_a_diff";
    let Some(desk) = desk(test, Look::WIDE).await? else { return Ok(()) };
    let file = desk.world.file("long.txt");
    let text: String = (1..=50).map(|line| format!("line {line}\n")).collect();
    std::fs::write(&file, &text)?;
    // Words that occur nowhere else: the filter also finds them in paths, which are random here.
    let edit = |old: &str, new: &str| json!({"tool": "Edit", "input": {"file_path": file, "old_string": old, "new_string": new}});
    let write = json!({"tool": "Write", "input": {"file_path": file, "content": text.replace("line 7\n", "seven\n")}});
    asks(
        &desk,
        "worker",
        vec![edit("line 40", "fortieth"), edit("line 60", "sixtieth"), edit("line 1", "firstling"), write],
    )
    .await?;
    open(&desk, 4).await?;
    let row = |kind: &str| {
        format!(
            "(await page.locator('article .diff .{kind}').allInnerTexts()).map((row) => row.replace(/\\s+/g, ' ').trim())"
        )
    };
    // The file comes a moment after the call.
    let rows = format!(
        "let found; for (const until = Date.now() + 20000; Date.now() < until; ) {{ \
            found = {{added: {}, notes: await page.locator('article .note').allInnerTexts(), removed: {}}}; \
            if (['added', 'notes', 'removed'].every((name) => JSON.stringify(found[name]) === JSON.stringify(args[name]))) break; await page.evaluate(() => new Promise(requestAnimationFrame)); }} return found",
        row("added"),
        row("removed")
    );
    let expected = [
        ("fortieth", json!({"removed": ["40 − line 40"], "added": ["40 + fortieth"], "notes": []})),
        (
            "sixtieth",
            json!({"removed": ["− line 60"], "added": ["+ sixtieth"], "notes": ["the text to replace is not in the current file"]}),
        ),
        (
            "firstling",
            json!({"removed": ["− line 1"], "added": ["+ firstling"], "notes": ["the text to replace occurs 11 times in the current file"]}),
        ),
        (
            "seven",
            json!({"removed": ["7 − line 7"], "added": ["7 + seven"], "notes": ["replaces the whole file"]}),
        ),
    ];
    for (says, expected) in expected {
        let choose = "await page.getByLabel('Filter by').fill(args); await page.getByTestId('shown').getByText('1 of 4').waitFor()";
        desk.run(choose, json!(says)).await?;
        look_at(&desk, says).await?;
        assert_eq!(desk.run(&rows, expected.clone()).await?, expected, "{says}");
    }
    desk.run("await page.getByLabel('Filter by').press('Enter')", json!({})).await?;
    // What the diff folds is part of what is written: it is shown before it can be allowed.
    desk.run("await page.locator('article[data-shown=cut]').waitFor()", json!({})).await?;
    desk.press(&["m"]).await?;
    desk.run("await page.locator('article:not([data-shown=cut])').waitFor(); await page.locator('article .end').scrollIntoViewIfNeeded(); \
        await page.locator('article[data-shown=shown]').waitFor()", json!({})).await?;
    desk.click("Allow").await?;
    plexus_e2e::until("the file to be written", || {
        std::fs::read_to_string(&file).is_ok_and(|now| now.contains("seven"))
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn keys_work_after_check_boxes_and_lists_and_stay_letters_in_text_fields() -> anyhow::Result<()> {
    let test = "keys_work_after_check_boxes_and_lists_and_stay_letters_in_text_fields";
    let Some(desk) = desk(test, Look::WIDE).await? else { return Ok(()) };
    // One after the other, so that the list has them in this order.
    let plan = json!({"tool": "ExitPlanMode", "input": {"plan": "# Do it"}});
    for (count, (name, call)) in
        (1..).zip([("worker", bash("true one")), ("second", bash("true two")), ("planner", plan)])
    {
        asks(&desk, name, vec![call]).await?;
        open(&desk, count).await?;
    }
    choose(&desk, "true one").await?;
    desk.run("await page.getByRole('checkbox').first().check()", json!({})).await?;
    desk.press(&["j"]).await?;
    look_at(&desk, "true two").await?;
    desk.run("await page.getByRole('checkbox').first().uncheck()", json!({})).await?;
    desk.press(&["d"]).await?;
    // In a text field they are letters.
    let typed = "const reason = page.getByLabel('Reason'); await reason.waitFor(); await page.keyboard.type('adj'); return reason.inputValue()";
    assert_eq!(desk.run(typed, json!({})).await?, json!("adj"));
    desk.press(&["Enter"]).await?;
    desk.run("await page.getByTestId('confirmed').getByText('Denied: Bash true two (second). Reason: adj').waitFor()", json!({})).await?;
    choose(&desk, "Do it").await?;
    let select = "const then = page.getByLabel('then'); await then.click(); await then.selectOption('acceptEdits'); \
        return then.evaluate((element) => element === document.activeElement)";
    assert_eq!(desk.run(select, json!({})).await?, json!(false));
    desk.press(&["a"]).await?;
    desk.run("await page.getByTestId('confirmed').getByText('Allowed: plan').waitFor()", json!({})).await?;
    open(&desk, 1).await?;
    desk.window.close().await
}

#[tokio::test]
async fn a_frozen_hub_is_noticed_and_nothing_is_answered_meanwhile() -> anyhow::Result<()> {
    let test = "a_frozen_hub_is_noticed_and_nothing_is_answered_meanwhile";
    let Some(desk) = desk(test, Look::WIDE).await? else { return Ok(()) };
    let session = asks(&desk, "worker", vec![bash("true")]).await?;
    look_at(&desk, "true").await?;
    let hub = rustix::process::Pid::from_raw(i32::try_from(desk.world.hub.pid())?);
    let hub = hub.ok_or_else(|| anyhow::anyhow!("no pid"))?;
    rustix::process::kill_process(hub, rustix::process::Signal::STOP)?;
    let frozen = "await page.getByText('Disconnected. Reconnecting…').waitFor(); await page.keyboard.press('a'); \
        const buttons = await page.getByRole('group', {name: 'Answer'}).getByRole('button').all(); \
        return Promise.all(buttons.map((button) => button.isDisabled()))";
    let disabled = desk.run(frozen, json!({})).await;
    rustix::process::kill_process(hub, rustix::process::Signal::CONT)?;
    let disabled = disabled?;
    assert!(
        disabled.as_array().is_some_and(|all| all.len() > 4 && all.iter().all(|one| one == true)),
        "{disabled}"
    );
    desk.run("await page.locator('[data-state=live]').waitFor()", json!({})).await?;
    look_at(&desk, "true").await?;
    // Waits until the page takes answers again.
    desk.click("Allow").await?;
    assert_eq!(desk.world.ended(&session).await?["status"], "complete");
    desk.window.close().await
}

#[tokio::test]
async fn an_edited_call_shows_what_ran_everywhere() -> anyhow::Result<()> {
    let test = "an_edited_call_shows_what_ran_everywhere";
    let Some(desk) = desk(test, Look::WIDE).await? else { return Ok(()) };
    let question = json!({"question": "Which colour?", "header": "H", "multiSelect": false, "options": [{"label": "Red", "description": ""}]});
    let session = asks(&desk, "worker", vec![bash("true requested")]).await?;
    look_at(&desk, "true requested").await?;
    // Unchanged, nothing is sent.
    desk.press(&["e"]).await?;
    desk.click("Review changes").await?;
    desk.run(
        "await page.getByTestId('confirmed').getByText('Nothing was changed. No answer was sent.').waitFor()",
        json!({}),
    )
    .await?;
    assert!(desk.world.ran().is_empty());
    desk.press(&["e"]).await?;
    desk.run("await page.getByRole('dialog').getByLabel('command').fill('true edited')", json!({})).await?;
    desk.click("Review changes").await?;
    // One can go back, and confirms what was shown.
    desk.click("Back").await?;
    desk.click("Review changes").await?;
    desk.click("Allow edited").await?;
    desk.run(
        "await page.getByTestId('confirmed').getByText('Allowed with changes: Bash true edited').waitFor()",
        json!({}),
    )
    .await?;
    assert_eq!(desk.world.ended(&session).await?["status"], "complete");
    let ran = "const shown = async (where) => { const ran = where.getByTestId('ran'); await ran.waitFor(); \
        return [await ran.locator('.removed .text').innerText(), await ran.locator('.added .text').innerText()]; };";
    let expected = json!(["true requested", "true edited"]);
    desk.go(&format!("#/session/{session}")).await?;
    let stream = format!(
        "{ran} const call = page.locator('[data-kind=call]'); await call.getByText('true edited').first().waitFor(); \
        await call.getByText('allowed, edited by').waitFor(); await call.getByRole('button').first().click(); return shown(call)"
    );
    assert_eq!(desk.run(&stream, json!({})).await?, expected);
    desk.go("#/audit").await?;
    let record = format!(
        "{ran} const row = page.getByRole('listitem').filter({{hasText: 'allowed, edited'}}); await row.getByText('true edited').waitFor(); \
        await row.getByRole('button').first().click(); return shown(row)"
    );
    assert_eq!(desk.run(&record, json!({})).await?, expected);

    // Answers to a question are shown as answers.
    let asker =
        asks(&desk, "asker", vec![json!({"tool": "AskUserQuestion", "input": {"questions": [question]}})])
            .await?;
    desk.go("#/inbox").await?;
    look_at(&desk, "Which colour?").await?;
    desk.run(
        "await page.getByLabel('Red').check(); await page.getByRole('button', {name: 'Answer'}).click(); \
        await page.getByTestId('confirmed').getByText('Answered: AskUserQuestion Which colour?').waitFor()",
        json!({}),
    )
    .await?;
    assert_eq!(desk.world.ended(&asker).await?["status"], "complete");
    desk.go(&format!("#/session/{asker}")).await?;
    let answers = "const call = page.locator('[data-kind=call]'); await call.getByText('allowed, answered by').waitFor(); \
        await call.getByRole('button').first().click(); const ran = page.getByTestId('ran'); await ran.getByRole('heading', {name: 'Answers'}).waitFor(); \
        return ran.locator('dd').allInnerTexts()";
    assert_eq!(desk.run(answers, json!({})).await?, json!(["Red"]));
    desk.window.close().await
}
