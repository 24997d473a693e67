//! Hostile content in every field that a child controls. The console shows it as text: it runs nothing, links nowhere, sends no request
//! and does not break the layout, on a wide screen and on a phone.

use std::path::Path;

use plexus_e2e::browser::Look;
use plexus_e2e::{Setup, script};
use serde_json::{Value, json};

use crate::console::scene;
use crate::console::signed_in_page::ConsolePage;

const RUNS: &str =
    "<img src=x onerror=window.__pwned=1><script>window.__pwned=1</script><svg onload=window.__pwned=1>";
const ANSI: &str = "\u{1b}[31mred\u{1b}[0m\u{1b}]8;;http://evil.example\u{7}here\u{1b}]8;;\u{7}";
const TURNED: &str = "invoice\u{202e}gnp.exe\u{2066}\u{200b}";
const MEGABYTE: usize = 1 << 20;

/// Markdown with links, images, scripts and other active content.
fn markdown() -> String {
    format!(
        "# {RUNS}\n\n[a link](javascript:window.__pwned=1) [other](http://evil.example/x) <javascript:window.__pwned=1> \
         ![image](http://evil.example/pixel.png) [ref][r]\n\n[r]: data:text/html,<script>alert(1)</script>\n\n\
         <iframe src=\"http://evil.example\"></iframe>\n\n<form action=http://evil.example><button>go</button></form>\n\n\
         | {RUNS} | b |\n|---|---|\n| {TURNED} | {ANSI} |\n\n```html\n{RUNS}\n```\n\n- [ ] {RUNS}\n\n{}\n{}",
        "> ".repeat(200),
        "word".repeat(5_000)
    )
}

/// Tool calls with such content in every field.
fn calls() -> Vec<Value> {
    let long = "x".repeat(MEGABYTE);
    let option = json!({"label": RUNS, "description": TURNED, "preview": ANSI});
    let question = json!({"question": format!("{RUNS} {ANSI}"), "header": TURNED, "multiSelect": true, "options": [option, {"label": long, "description": RUNS}]});
    vec![
        json!({"tool": "Bash", "input": {"command": format!("printf '%s' '{RUNS} {TURNED}'"), "description": RUNS}, "reason": format!("{RUNS}{ANSI}{TURNED}")}),
        json!({"tool": RUNS, "input": {RUNS: RUNS, TURNED: ANSI, "__proto__": {"polluted": RUNS}, "constructor": [RUNS, {RUNS: 1}], "long": long}}),
        json!({"tool": "Write", "input": {"file_path": format!("/tmp/{RUNS}/{TURNED}.html"), "content": format!("<html>{RUNS}\n{ANSI}\n{long}")}}),
        json!({"tool": "Edit", "input": {"file_path": TURNED, "old_string": format!("{RUNS}\na"), "new_string": format!("{ANSI}\n{RUNS}{long}")}}),
        json!({"tool": "ExitPlanMode", "input": {"plan": markdown()}}),
        json!({"tool": "AskUserQuestion", "input": {"questions": [question]}}),
        json!({"tool": "WebFetch", "input": {"url": "javascript:window.__pwned=1", "prompt": markdown()}}),
        json!({"tool": "y".repeat(5_000), "input": {"z".repeat(100_000): "w".repeat(100_000)}}),
    ]
}

/// The state that is checked after each step: nothing ran, everything is text, and nothing is wider than the window.
const STATE: &str = "const found = await page.evaluate(() => ({ pwned: window.__pwned ?? null, polluted: ({}).polluted ?? null, \
        made: document.querySelectorAll('main :is(img, script, iframe, object, embed, base, meta, link, svg[onload]), [onerror], [onload]').length, \
        leads: [...document.querySelectorAll('a')].filter((a) => !a.getAttribute('href')?.startsWith('#')).map((a) => a.outerHTML), \
        wide: document.documentElement.scrollWidth - innerWidth, high: document.documentElement.scrollHeight - innerHeight, \
        elements: document.getElementsByTagName('*').length, origin: location.origin })); \
    const text = await page.locator('body').innerText(); \
    return { ...found, escapes: /[\\u0000-\\u0008\\u000e-\\u001f\\u202a-\\u202e\\u2066-\\u2069]/.test(text), markup: text.includes('<script>window.__pwned=1</script>') }";

async fn check_page(console: &ConsolePage, where_: &str) -> anyhow::Result<Value> {
    let found = console.run(STATE, json!({})).await?;
    let expected = [
        ("pwned", Value::Null),
        ("polluted", Value::Null),
        ("made", json!(0)),
        ("leads", json!([])),
        ("escapes", json!(false)),
        ("origin", json!(console.world.hub.url())),
    ];
    for (field, value) in expected {
        assert_eq!(found[field], value, "{where_}: {field}: {found:#}");
    }
    assert!(found["wide"].as_i64().is_some_and(|wide| wide <= 0), "{where_}: {found:#}");
    assert!(found["high"].as_i64().is_some_and(|high| high <= 0), "{where_}: {found:#}");
    assert!(found["elements"].as_u64().is_some_and(|elements| elements < 3000), "{where_}: {found:#}");
    Ok(found)
}

async fn text_of_a_child_stays_text(test: &str, look: Look) -> anyhow::Result<()> {
    let Some(world) = Setup::scripted().world(test).await? else { return Ok(()) };
    let Some(console) = ConsolePage::open(world, test, look).await? else { return Ok(()) };
    let world = &console.world;
    std::fs::write(world.file("kept.txt"), "kept\n")?;
    scene::commit_all(&world.work)?;
    let session = world.create("mallory", json!({"isolation": "worktree"})).await?;
    let got = world.call("claudecode.get", json!({"session_id": session})).await?;
    let worktree = plexus_e2e::text(&got["session"]["worktree"]["path"]);
    let names = ["<img src=x onerror=window.__pwned=1>.html", TURNED, "\u{1b}[31mred"];
    for (name, long) in names.into_iter().zip([1_000, 20_000, MEGABYTE]) {
        let content = format!("{RUNS}\n{ANSI}{TURNED}\n{}\n", "u".repeat(long));
        std::fs::write(Path::new(&worktree).join(name), content)?;
    }
    let calls = calls();
    let steps = json!([
        {"say": markdown()}, {"say": format!("{ANSI}{TURNED}{}", "v".repeat(MEGABYTE))}, {"stderr": format!("{RUNS}{ANSI}\n")},
        {"tools": calls, "parallel": true}, {"result_error": format!("{RUNS}{ANSI}{TURNED}")},
    ]);
    world.chat(&session, &script(&steps)).await?;
    console
        .run(
            "await page.locator('[aria-label=\"Views\"] .count').getByText(args, {exact: true}).waitFor()",
            json!(calls.len().to_string()),
        )
        .await?;
    check_page(&console, "the list").await?;

    let pending = world.call("loopback.pending", json!({})).await?;
    let mut pending = pending["approvals"].as_array().cloned().unwrap_or_default();
    // The first call is allowed at the end, and its output is checked, too.
    pending.sort_by_key(|approval| approval["tool_name"] != "Bash");
    assert_eq!(pending.len(), calls.len());
    for approval in &pending {
        let (id, tool) = (&approval["id"], approval["tool_name"].to_string());
        let tool = tool.chars().take(30).collect::<String>();
        console.go(&format!("#/inbox/{}", plexus_e2e::text(id))).await?;
        let whole = "await page.locator(`article[data-approval=\"${args}\"][data-ready=true]`).waitFor(); \
            await page.getByText('Loading all of it').waitFor({state: 'detached'})";
        console.run(whole, id.clone()).await?;
        let found = check_page(&console, &tool).await?;
        // Shown in full it is still text, and can then be answered.
        let all = "if (await page.locator('article[data-shown=cut]').count() > 0) await page.keyboard.press('m'); \
            await page.locator('article .end').scrollIntoViewIfNeeded(); await page.locator('article[data-shown=shown]').waitFor()";
        console.run(all, json!({})).await?;
        check_page(&console, &format!("{tool}, all of it")).await?;
        assert!(found["markup"] == true || tool.contains("yyy"), "{tool}: it must be visible: {found:#}");
        // The editor and the dialogs for a reason and a rule show it, too.
        for key in ["e", "d", "r"] {
            console.run("await page.keyboard.press(args)", json!(key)).await?;
            check_page(&console, &format!("{key} at {tool}")).await?;
            // Closed with the pointer: after a key closed a dialog, the next key is ignored for a moment.
            let close = "const dialog = page.getByRole('dialog'); \
                if (await dialog.count() > 0) await dialog.getByRole('button', {name: 'Close', exact: true}).click(); \
                await dialog.waitFor({state: 'detached'})";
            console.run(close, json!({})).await?;
        }
    }

    let message = format!("{RUNS}{ANSI}{TURNED}");
    for (number, approval) in pending.iter().enumerate() {
        let answer = if number == 0 {
            json!({"approve": true})
        } else {
            json!({"approve": false, "message": message})
        };
        world.respond(approval, answer).await?;
    }
    assert_eq!(world.ended(&session).await?["status"], "failed");
    check_page(&console, "answered elsewhere").await?;
    let views = [
        (format!("session/{session}"), "[data-kind=error]"),
        (format!("session/{session}/tree"), "[data-testid=conversation] .row"),
        (format!("session/{session}/diff"), "[data-testid=changes] .diff .added"),
        ("sessions".to_owned(), "[role=treeitem]"),
        ("audit".to_owned(), "[role=listitem]"),
    ];
    for (view, there) in views {
        console.go(&format!("#/{view}")).await?;
        console.run("await page.locator('main').locator(args).first().waitFor()", json!(there)).await?;
        check_page(&console, &view).await?;
        // Everything that can be expanded is expanded.
        let opened = "for (const fold of await page.locator('main [aria-expanded=false]').all()) await fold.click({timeout: 2000}).catch(() => {}); \
            for (const more of await page.locator('main').getByRole('button', {name: /show|read/i}).all()) await more.click({timeout: 2000}).catch(() => {})";
        console.run(opened, json!({})).await?;
        check_page(&console, &format!("{view}, opened")).await?;
    }
    world.call("policy.add", json!({"rules": [{"effect": "deny", "rule": format!("Bash({RUNS})")}]})).await?;
    console.go("#/audit/rules").await?;
    console.run("await page.getByRole('list', {name: 'Rules in force'}).waitFor()", json!({})).await?;
    check_page(&console, "rules").await?;
    console.window.close().await
}

#[tokio::test]
async fn text_of_a_child_stays_text_on_a_wide_screen() -> anyhow::Result<()> {
    text_of_a_child_stays_text("text_of_a_child_stays_text_on_a_wide_screen", Look::WIDE).await
}

#[tokio::test]
async fn text_of_a_child_stays_text_on_a_phone() -> anyhow::Result<()> {
    text_of_a_child_stays_text("text_of_a_child_stays_text_on_a_phone", Look::PHONE).await
}
