//! A review of a worktree: viewed marks, comments, commit, conflicts, merge, and the commands that push.

use plexus_e2e::{World, script};
use serde_json::json;

use super::{Hand, by_each_hand};
use crate::console::scene::commit_all;

by_each_hand!(a_worktree_is_reviewed_to_the_end);

async fn a_worktree_is_reviewed_to_the_end(hand: &Hand) -> anyhow::Result<()> {
    let world = &hand.console.world;
    for (file, content) in [("total.js", "let total = 1;\n"), ("other.js", "let other = 1;\n")] {
        std::fs::write(world.file(file), content)?;
    }
    commit_all(&world.work)?;
    let session = world.create("fixer", json!({"isolation": "worktree", "policy": "allow_all"})).await?;
    let edit = |file: &str| json!({"tool": "Edit", "input": {"file_path": file, "old_string": "= 1", "new_string": "= 2"}});
    world.chat(&session, &script(&json!([edit("total.js"), edit("other.js"), {"say": "Fixed."}]))).await?;
    world.ended(&session).await?;
    hand.console.go(&format!("#/session/{session}")).await?;
    let comment = "await press(link('Changes')); const file = page.getByRole('region', {name: 'total.js'}); \
        await file.locator('.diff .row.added').waitFor(); await press(file.locator('.diff .row.added').getByRole('button', {name: 'Comment on line 1'})); \
        await fill(field('Comment', file), 'Not this.'); await press(button('Add comment', file)); await press(button('Delete comment', file)); \
        await press(file.locator('.diff .row.added').getByRole('button', {name: 'Comment on line 1'})); await fill(field('Comment', file), 'Use const.'); await press(button('Add comment', file)); \
        await press(button('Send 1 comment')); await fill(dialog.getByLabel('Summary'), given); await press(button('Send', dialog)); await closed(); \
        await page.getByTestId('finished').getByText('Sent to the agent').waitFor()";
    // The scripted agent acts only on a script; the comments of a review are plain text, to which it answers with two calls.
    hand.does(comment, json!("Please.")).await?;
    for _ in 0..2 {
        let poll = world.poll_until(&session, |poll| poll["status"] != "running").await?;
        assert_ne!(poll["status"], "failed", "{poll:#}");
    }
    world.ended(&session).await?;

    let commit = "await page.getByRole('region', {name: 'total.js'}).waitFor(); await press(button('Refresh')); \
        for (const name of ['total.js', 'other.js']) { await check(page.getByRole('region', {name}).getByLabel('Viewed')); } \
        await page.getByText('2 of 3 viewed').waitFor(); await press(page.getByRole('region', {name: 'total.js'}).locator('button[aria-expanded]').first()); \
        await press(button('Commit…')); await fill(field('Message', dialog), 'Fix the totals'); await fill(field('Author', dialog), 'Ada'); await fill(field('Email', dialog), 'ada@example.com'); \
        await press(button('Commit', dialog)); await page.getByTestId('finished').getByText('Committed 3 files').waitFor()";
    hand.does(commit, json!({})).await?;
    // The base branch changes in the meantime: the merge shows the conflict, and changes nothing.
    std::fs::write(world.file("total.js"), "let total = 3;\n")?;
    commit_again(world)?;
    let conflict = "await press(button('Merge…')); await press(button('Merge', dialog)); const conflicts = dialog.getByTestId('conflicts'); await conflicts.waitFor(); \
        await press(conflicts.locator('summary').first()); await press(button('Cancel', dialog)); await closed()";
    hand.does(conflict, json!({})).await?;
    assert_eq!(std::fs::read_to_string(world.file("total.js"))?, "let total = 3;\n");
    let push = "await press(button('Push commands…')); await dialog.getByText('The work is on the branch').waitFor(); await press(button('Close', dialog)); await closed()";
    hand.does(push, json!({})).await?;
    // Now both branches make the same change.
    std::fs::write(world.file("total.js"), "let total = 2;\n")?;
    commit_again(world)?;
    let merge = "await press(button('Merge…')); await choose(field('Method', dialog), 'squash'); await press(button('Merge', dialog)); \
        await page.getByTestId('finished').getByText('Merged into').waitFor()";
    hand.does(merge, json!({})).await?;
    assert_eq!(std::fs::read_to_string(world.file("total.js"))?, "let total = 2;\n");
    Ok(())
}

/// Commits all files on top of the current branch.
fn commit_again(world: &World) -> anyhow::Result<()> {
    let repo = git2::Repository::open(&world.work)?;
    let mut index = repo.index()?;
    index.add_all(["*"], git2::IndexAddOption::DEFAULT, None)?;
    let tree = repo.find_tree(index.write_tree()?)?;
    index.write()?;
    let me = git2::Signature::now("Ada", "ada@example.com")?;
    let head = repo.head()?.peel_to_commit()?;
    repo.commit(Some("HEAD"), &me, &me, "Change the total", &tree, &[&head])?;
    Ok(())
}
