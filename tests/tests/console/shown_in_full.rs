//! Only a call that was shown in full can be allowed: a long input must be shown to its end, a truncated row cannot be allowed from the list, and a key
//! answers only the approval on the screen.

use plexus_e2e::browser::Look;
use plexus_e2e::{Setup, script};
use serde_json::{Value, json};

use crate::console::signed_in_page::ConsolePage;

async fn console(test: &str, look: Look) -> anyhow::Result<Option<ConsolePage>> {
    let Some(world) = Setup::scripted().world(test).await? else { return Ok(None) };
    ConsolePage::open(world, test, look).await
}

/// A session with all these calls at once.
async fn asks(console: &ConsolePage, name: &str, calls: Vec<Value>) -> anyhow::Result<String> {
    let session = console.world.create(name, json!({})).await?;
    console.world.chat(&session, &script(&json!([{"tools": calls, "parallel": true}]))).await?;
    Ok(session)
}

fn bash(command: &str) -> Value {
    json!({"tool": "Bash", "input": {"command": command}})
}

/// Waits until this many approvals are open.
async fn open(console: &ConsolePage, count: usize) -> anyhow::Result<()> {
    console
        .run(
            "await page.getByTestId('shown').getByText(args, {exact: true}).waitFor()",
            json!(count.to_string()),
        )
        .await
        .map(drop)
}

/// Waits until an approval whose input or question contains this text is shown. Other text on the page, such as the prompt, is ignored.
async fn shows_approval(console: &ConsolePage, says: &str) -> anyhow::Result<()> {
    let code = "await page.locator('article[data-status=pending][data-ready=true]') \
        .filter({has: page.locator('.input, fieldset').filter({hasText: args})}).waitFor()";
    console.run(code, json!(says)).await.map(drop)
}

/// Selects the row of the list with this text.
async fn select_row(console: &ConsolePage, says: &str) -> anyhow::Result<()> {
    // On a phone the approval covers the list.
    let select_row = "const back = page.getByRole('button', {name: 'All approvals'}); if (await back.isVisible()) await back.click(); \
        await page.getByRole('listitem').getByText(args).first().click()";
    console.run(select_row, json!(says)).await?;
    shows_approval(console, says).await
}

#[tokio::test]
async fn bulk_allow_runs_only_calls_that_it_showed_in_full() -> anyhow::Result<()> {
    let test = "bulk_allow_runs_only_calls_that_it_showed_in_full";
    let Some(console) = console(test, Look::WIDE).await? else { return Ok(()) };
    let made = |name: &str| format!("touch {}", console.world.file(name).display());
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
    asks(&console, "worker", calls).await?;
    open(&console, 7).await?;
    // Plans and questions cannot be selected, and give the reason.
    let boxes = "const rows = page.locator('[data-approval] .mark').filter({has: page.locator('input:disabled')}); \
        return (await Promise.all((await rows.all()).map((row) => row.getAttribute('title')))).sort()";
    let titles = console.run(boxes, json!({})).await?;
    assert_eq!(
        titles,
        json!(["Plans are answered one by one. Open it.", "Questions are answered one by one. Open it."])
    );
    console.click("Select all 5").await?;
    console.click("Allow selected").await?;
    let listed = "const all = page.getByRole('button', {name: 'Allow all 2', exact: true}); await all.and(page.locator(':enabled')).waitFor(); \
        return { shown: await page.getByTestId('selected').innerText(), apart: await page.getByTestId('apart').locator('li').allInnerTexts() }";
    let listed = console.run(listed, json!({})).await?;
    let shown = plexus_e2e::text(&listed["shown"]);
    assert!(shown.contains(&made("short")) && shown.contains(&padded("middle", 200)), "{listed:#}");
    let apart = listed["apart"].as_array().cloned().unwrap_or_default();
    assert_eq!(apart.len(), 3, "{listed:#}");
    assert!(
        apart.iter().all(|line| plexus_e2e::text(line).ends_with("Too long to show here in full. Open it.")),
        "{apart:#?}"
    );
    console.run("await page.locator('dialog button[aria-disabled=false]').waitFor()", json!({})).await?;
    console.click("Allow all 2").await?;
    console.run("await page.getByRole('dialog').getByText('Allowed 2 of 2.').waitFor()", json!({})).await?;
    console.click("Done").await?;
    console
        .run("await page.getByTestId('confirmed').getByText('Allowed 2 of 2').waitFor()", json!({}))
        .await?;
    open(&console, 5).await?;
    plexus_e2e::until("both to have run", || {
        console.world.file("short").exists() && console.world.file("middle").exists()
    })
    .await?;
    assert_eq!(console.world.ran().len(), 2);

    // Denying does not require reading. The result shows how many answers were first.
    console.click("Deny selected").await?;
    let pending = console.world.call("loopback.pending", json!({})).await?;
    let hidden = pending["approvals"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|one| one["input"].to_string().contains("xxx"))
        .cloned();
    console.world.respond(&hidden.unwrap_or_default(), json!({"approve": false})).await?;
    let deny = "await page.locator('dialog button[aria-disabled=false]').waitFor(); await page.getByLabel('Reason').fill('no'); \
        await page.getByRole('button', {name: 'Deny all 3'}).click(); await page.getByRole('dialog').getByText(/Denied [23] of [23]\\./).waitFor()";
    console.run(deny, json!({})).await?;
    console.click("Done").await?;
    open(&console, 2).await?;
    assert!(!console.world.file("hidden").exists() && !console.world.file("below").exists());
    console.window.close().await
}

#[tokio::test]
async fn a_long_input_is_allowed_only_after_its_end_was_shown() -> anyhow::Result<()> {
    let test = "a_long_input_is_allowed_only_after_its_end_was_shown";
    for look in [Look::WIDE, Look::PHONE] {
        let Some(console) = console(test, look).await? else { return Ok(()) };
        let lines: String = (0..400).map(|line| format!("true {line}\n")).collect();
        let last = console.world.file("last");
        let same: String = (0..60).map(|line| format!("line {line}\n")).collect();
        let edit = json!({"file_path": "/tmp/x", "old_string": format!("{same}a\n"), "new_string": format!("{same}b\n")});
        let calls = vec![
            bash(&format!("{lines}touch {}", last.display())),
            json!({"tool": "Edit", "input": edit}),
            json!({"tool": "Other", "input": {"x".repeat(2_000): "short"}}),
        ];
        asks(&console, "worker", calls).await?;
        open(&console, 3).await?;
        for (says, words) in
            [("true 0", "Allowed: Run true 0"), ("/tmp/x", "Allowed: Edit /tmp/x"), ("xxx", "Allowed: Other")]
        {
            select_row(&console, says).await?;
            let cut = "await page.locator('article[data-shown=cut]').waitFor(); await page.getByText('Not shown in full').waitFor(); \
                const allow = page.getByRole('button', {name: 'Allow', exact: true}); \
                for (const key of ['a', 'e', 'r']) await page.keyboard.press(key); \
                return [await allow.isDisabled(), await page.getByRole('dialog').count()]";
            assert_eq!(console.run(cut, json!({})).await?, json!([true, 0]), "{says}");
            // With keys only: expands the input, then scrolls one screen at a time.
            let down = "await page.keyboard.press('m'); await page.locator('article:not([data-shown=cut])').waitFor(); let steps = 0; \
                for (; steps < 200 && await page.locator('article[data-shown=shown]').count() === 0; steps++) { \
                    await page.keyboard.press('a'); await page.keyboard.press('m'); \
                    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))); } \
                await page.locator('article[data-shown=shown]').waitFor(); return steps";
            let steps = console.run(down, json!({})).await?;
            assert!(says != "true 0" || steps.as_u64() > Some(3), "{steps}");
            shows_approval(&console, says).await?;
            console.press(&["a"]).await?;
            console
                .run("await page.getByTestId('confirmed').getByText(args).waitFor()", json!(words))
                .await?;
        }
        console.shows_no_approvals().await?;
        plexus_e2e::until("the last line to have run", || last.exists()).await?;
        console.window.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn with_a_filter_keys_act_only_on_listed_approvals() -> anyhow::Result<()> {
    let test = "with_a_filter_keys_act_only_on_listed_approvals";
    let Some(console) = console(test, Look::WIDE).await? else { return Ok(()) };
    let made = |name: &str| format!("touch {}", console.world.file(name).display());
    asks(&console, "worker", vec![bash(&made("first")), bash(&made("second"))]).await?;
    open(&console, 2).await?;
    select_row(&console, "first").await?;
    console.press(&["x"]).await?;
    // The filter shows only the other approval. The selected one cannot be answered.
    let filter = "await page.keyboard.press('/'); await page.keyboard.insertText(args.words); \
        await page.getByTestId('shown').getByText(args.left).waitFor(); await page.keyboard.press('Enter')";
    console.run(filter, json!({"words": "second", "left": "1 of 2"})).await?;
    shows_approval(&console, "second").await?;
    let reach = "return [await page.getByRole('button', {name: 'Allow selected'}).count(), await page.locator('article .input').filter({hasText: 'first'}).count()]";
    assert_eq!(console.run(reach, json!({})).await?, json!([0, 0]));
    console.press(&["A", "X"]).await?;
    assert_eq!(console.run("return page.getByRole('dialog').count()", json!({})).await?, json!(0));
    // With a filter that matches nothing, no approval can be answered.
    console.run("await page.getByLabel('Filter by').fill('')", json!({})).await?;
    console.run(filter, json!({"words": "nowhere", "left": "0 of 2"})).await?;
    console.run("await page.locator('article').waitFor({state: 'detached'})", json!({})).await?;
    console.press(&["a", "e", "d", "D", "r", "A", "X"]).await?;
    assert_eq!(console.run("return page.getByRole('dialog').count()", json!({})).await?, json!(0));
    assert!(console.world.ran().is_empty());
    // The other filter works again.
    console.run("await page.getByLabel('Filter by').fill('second'); await page.getByLabel('Filter by').press('Enter')", json!({})).await?;
    shows_approval(&console, "second").await?;
    console.press(&["a"]).await?;
    plexus_e2e::until("the second to have run", || console.world.file("second").exists()).await?;
    assert!(!console.world.file("first").exists());
    console.window.close().await
}

#[tokio::test]
async fn an_edit_has_the_line_numbers_of_the_file_and_a_write_is_a_diff() -> anyhow::Result<()> {
    let test = "an_edit_has_the_line_numbers_of_the_file_and_a_write_is_a_diff";
    let Some(console) = console(test, Look::WIDE).await? else { return Ok(()) };
    let file = console.world.file("long.txt");
    let text: String = (1..=50).map(|line| format!("line {line}\n")).collect();
    std::fs::write(&file, &text)?;
    // Unique words, because the filter also matches paths, which are random here.
    let edit = |old: &str, new: &str| json!({"tool": "Edit", "input": {"file_path": file, "old_string": old, "new_string": new}});
    let write = json!({"tool": "Write", "input": {"file_path": file, "content": text.replace("line 7\n", "seven\n")}});
    asks(
        &console,
        "worker",
        vec![edit("line 40", "fortieth"), edit("line 60", "sixtieth"), edit("line 1", "firstling"), write],
    )
    .await?;
    open(&console, 4).await?;
    let row = |kind: &str| {
        format!(
            "(await page.locator('article .diff .{kind}').allInnerTexts()).map((row) => row.replace(/\\s+/g, ' ').trim())"
        )
    };
    // The file arrives a moment after the call.
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
        let select_row = "await page.getByLabel('Filter by').fill(args); await page.getByTestId('shown').getByText('1 of 4').waitFor()";
        console.run(select_row, json!(says)).await?;
        shows_approval(&console, says).await?;
        assert_eq!(console.run(&rows, expected.clone()).await?, expected, "{says}");
    }
    console.run("await page.getByLabel('Filter by').press('Enter')", json!({})).await?;
    // The folded lines of the diff are written, too, so they must be shown before the call can be allowed.
    console.run("await page.locator('article[data-shown=cut]').waitFor()", json!({})).await?;
    console.press(&["m"]).await?;
    console.run("await page.locator('article:not([data-shown=cut])').waitFor(); await page.locator('article .end').scrollIntoViewIfNeeded(); \
        await page.locator('article[data-shown=shown]').waitFor()", json!({})).await?;
    console.click("Allow").await?;
    plexus_e2e::until("the file to be written", || {
        std::fs::read_to_string(&file).is_ok_and(|now| now.contains("seven"))
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn keys_work_after_check_boxes_and_lists_and_are_letters_in_text_fields() -> anyhow::Result<()> {
    let test = "keys_work_after_check_boxes_and_lists_and_are_letters_in_text_fields";
    let Some(console) = console(test, Look::WIDE).await? else { return Ok(()) };
    // One after the other, so that the order of the list is known.
    let plan = json!({"tool": "ExitPlanMode", "input": {"plan": "# Do it"}});
    for (count, (name, call)) in
        (1..).zip([("worker", bash("true one")), ("second", bash("true two")), ("planner", plan)])
    {
        asks(&console, name, vec![call]).await?;
        open(&console, count).await?;
    }
    select_row(&console, "true one").await?;
    console.run("await page.getByRole('checkbox').first().check()", json!({})).await?;
    console.press(&["j"]).await?;
    shows_approval(&console, "true two").await?;
    console.run("await page.getByRole('checkbox').first().uncheck()", json!({})).await?;
    console.press(&["d"]).await?;
    // In a text field, keys are letters.
    let typed = "const reason = page.getByLabel('Reason'); await reason.waitFor(); await page.keyboard.type('adj'); return reason.inputValue()";
    assert_eq!(console.run(typed, json!({})).await?, json!("adj"));
    console.press(&["Enter"]).await?;
    console.run("await page.getByTestId('confirmed').getByText('Denied: Run true two (second). Reason: adj').waitFor()", json!({})).await?;
    select_row(&console, "Do it").await?;
    let select = "const then = page.getByLabel('then'); await then.click(); await then.selectOption('acceptEdits'); \
        return then.evaluate((element) => element === document.activeElement)";
    assert_eq!(console.run(select, json!({})).await?, json!(false));
    console.press(&["a"]).await?;
    console
        .run("await page.getByTestId('confirmed').getByText('Allowed: plan').waitFor()", json!({}))
        .await?;
    open(&console, 1).await?;
    console.window.close().await
}

#[tokio::test]
async fn a_frozen_hub_is_shown_as_disconnected_and_takes_no_answers() -> anyhow::Result<()> {
    let test = "a_frozen_hub_is_shown_as_disconnected_and_takes_no_answers";
    let Some(console) = console(test, Look::WIDE).await? else { return Ok(()) };
    let session = asks(&console, "worker", vec![bash("true")]).await?;
    shows_approval(&console, "true").await?;
    let hub = rustix::process::Pid::from_raw(i32::try_from(console.world.hub.pid())?);
    let hub = hub.ok_or_else(|| anyhow::anyhow!("no pid"))?;
    rustix::process::kill_process(hub, rustix::process::Signal::STOP)?;
    let frozen = "await page.getByText('Disconnected. Reconnecting…').waitFor(); await page.keyboard.press('a'); \
        const buttons = await page.getByRole('group', {name: 'Answer'}).getByRole('button').all(); \
        return Promise.all(buttons.map((button) => button.isDisabled()))";
    let disabled = console.run(frozen, json!({})).await;
    rustix::process::kill_process(hub, rustix::process::Signal::CONT)?;
    let disabled = disabled?;
    assert!(
        disabled.as_array().is_some_and(|all| all.len() > 4 && all.iter().all(|one| one == true)),
        "{disabled}"
    );
    console.run("await page.locator('[data-state=live]').waitFor()", json!({})).await?;
    shows_approval(&console, "true").await?;
    // Waits until the page accepts answers again.
    console.click("Allow").await?;
    assert_eq!(console.world.ended(&session).await?["status"], "complete");
    console.window.close().await
}

#[tokio::test]
async fn an_edited_call_shows_what_ran_everywhere() -> anyhow::Result<()> {
    let test = "an_edited_call_shows_what_ran_everywhere";
    let Some(console) = console(test, Look::WIDE).await? else { return Ok(()) };
    let question = json!({"question": "Which colour?", "header": "H", "multiSelect": false, "options": [{"label": "Red", "description": ""}]});
    let session = asks(&console, "worker", vec![bash("true requested")]).await?;
    shows_approval(&console, "true requested").await?;
    // Without a change, no answer is sent.
    console.press(&["e"]).await?;
    let unchanged = "const first = await page.getByRole('dialog').elementHandle(); \
        await page.getByRole('button', {name: 'Review changes', exact: true}).click(); \
        await page.getByTestId('confirmed').getByText('Nothing was changed. No answer was sent.').waitFor(); \
        await page.getByRole('dialog').waitFor({state: 'detached'});";
    // The browser may report that the first dialog was closed when the second one is already open.
    let again = "await page.locator('article[data-status=pending][data-ready=true]').waitFor(); await page.keyboard.press('e'); \
        await page.getByRole('dialog').waitFor(); await first.evaluate((dialog) => dialog.dispatchEvent(new Event('close'))); \
        await page.getByRole('dialog').getByLabel('command').fill('true edited')";
    console.run(&format!("{unchanged} {again}"), json!({})).await?;
    assert!(console.world.ran().is_empty());
    console.click("Review changes").await?;
    // Going back and reviewing again is possible.
    console.click("Back").await?;
    console.click("Review changes").await?;
    console.click("Allow with changes").await?;
    console.run(
        "await page.getByTestId('confirmed').getByText('Allowed with changes: Run true edited').waitFor()",
        json!({}),
    )
    .await?;
    assert_eq!(console.world.ended(&session).await?["status"], "complete");
    let ran = "const shown = async (where) => { const ran = where.getByTestId('ran'); await ran.waitFor(); \
        return [await ran.locator('.removed .text').innerText(), await ran.locator('.added .text').innerText()]; };";
    let expected = json!(["true requested", "true edited"]);
    console.go(&format!("#/session/{session}")).await?;
    let stream = format!(
        "{ran} const call = page.locator('[data-kind=call]'); await call.getByText('true edited').first().waitFor(); \
        await call.getByText('allowed, edited by').waitFor(); await call.getByRole('button').first().click(); return shown(call)"
    );
    assert_eq!(console.run(&stream, json!({})).await?, expected);
    console.go("#/audit").await?;
    let record = format!(
        "{ran} const row = page.getByRole('listitem').filter({{hasText: 'allowed, edited'}}); await row.getByText('true edited').waitFor(); \
        await row.getByRole('button').first().click(); return shown(row)"
    );
    assert_eq!(console.run(&record, json!({})).await?, expected);

    // The answers to a question are shown as answers.
    let asker =
        asks(&console, "asker", vec![json!({"tool": "AskUserQuestion", "input": {"questions": [question]}})])
            .await?;
    console.go("#/inbox").await?;
    shows_approval(&console, "Which colour?").await?;
    console
        .run(
            "await page.getByLabel('Red').check(); await page.getByRole('button', {name: 'Answer'}).click(); \
        await page.getByTestId('confirmed').getByText('Answered: Question: Which colour?').waitFor()",
            json!({}),
        )
        .await?;
    assert_eq!(console.world.ended(&asker).await?["status"], "complete");
    console.go(&format!("#/session/{asker}")).await?;
    let answers = "const call = page.locator('[data-kind=call]'); await call.getByText('allowed, answered by').waitFor(); \
        await call.getByRole('button').first().click(); const ran = page.getByTestId('ran'); await ran.getByRole('heading', {name: 'Answers'}).waitFor(); \
        return ran.locator('dd').allInnerTexts()";
    assert_eq!(console.run(answers, json!({})).await?, json!(["Red"]));
    console.window.close().await
}
