//! A person reviews the worktree of a session in the browser: comments that go to the agent, then commit and merge.

use plexus_e2e::text;
use plexus_testkit::model::Step;
use serde_json::json;

use crate::console::scene::commit_all;
use crate::console::signed_in_page::{ConsolePage, over_clis};

over_clis!(a_worktree_is_reviewed_committed_and_merged_in_the_browser_alone);

async fn a_worktree_is_reviewed_committed_and_merged_in_the_browser_alone(
    console: &mut ConsolePage,
) -> anyhow::Result<()> {
    let world = &console.world;
    std::fs::write(world.file("total.js"), "let total = 1;\n")?;
    commit_all(&world.work)?;
    let created = json!({"isolation": "worktree", "permission_mode": "acceptEdits"});
    let session = world.create("fixer", created).await?;
    let got = world.call("claudecode.get", json!({"session_id": session})).await?;
    let file = format!("{}/total.js", text(&got["session"]["worktree"]["path"]));
    let edit = |old: &str, new: &str| {
        Step::tool("Edit", json!({"file_path": file, "old_string": old, "new_string": new}))
    };
    let read = Step::tool("Read", json!({"file_path": file}));
    world.model.script("FIX-IT", vec![read, edit("total = 1", "total = 2"), Step::text("Fixed.")]);
    world.model.script(
        "I reviewed your changes",
        vec![edit("let total", "const total"), Step::text("Now constant.")],
    );
    world.chat(&session, "FIX-IT, please").await?;
    world.ended(&session).await?;

    console.go(&format!("#/session/{session}/diff")).await?;
    let comment = "await page.getByTestId('changes').locator('.diff .added').first().waitFor(); \
        await page.locator('.diff .row.added').getByRole('button', {name: 'Comment on line 1'}).click(); \
        await page.getByRole('textbox', {name: 'Comment', exact: true}).fill('Use const here.'); \
        await page.getByRole('button', {name: 'Add comment'}).click(); \
        await page.getByRole('button', {name: 'Send 1 comment'}).click(); const dialog = page.getByRole('dialog'); \
        await dialog.getByRole('button', {name: 'Send', exact: true}).click(); await dialog.waitFor({state: 'detached'})";
    console.run(comment, json!({})).await?;
    world.ended(&session).await?;
    let asked = world.model.requests_for("I reviewed your changes").pop().unwrap_or_default().to_string();
    assert!(asked.contains("total.js, line 1") && asked.contains("Use const here."), "{asked}");

    let commit = "await page.locator('.diff .row.added').getByText('const total = 2;').waitFor(); \
        await page.getByRole('button', {name: 'Commit…'}).click(); const dialog = page.getByRole('dialog'); \
        await dialog.getByLabel('Message').fill('Fix the total'); await dialog.getByRole('button', {name: 'Commit', exact: true}).click(); \
        await page.getByTestId('finished').getByText('Committed 1 file').waitFor()";
    console.run(commit, json!({})).await?;
    let merge = "await page.getByRole('button', {name: 'Merge…'}).and(page.locator(':enabled')).click(); const dialog = page.getByRole('dialog'); \
        await dialog.getByRole('button', {name: 'Merge', exact: true}).click(); \
        await page.getByTestId('finished').getByText('Merged into').waitFor()";
    console.run(merge, json!({})).await?;
    assert_eq!(std::fs::read_to_string(world.file("total.js"))?, "const total = 2;\n");
    let kinds = world.call("audit.list", json!({"kind": "session"})).await?.to_string();
    assert!(kinds.contains("\"commit\"") && kinds.contains("\"merge\""), "{kinds}");
    Ok(())
}
