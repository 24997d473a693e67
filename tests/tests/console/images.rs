//! Images: in the result of a tool, in a prompt and in a review. They are shown from stored data with a text, and files that only claim
//! to be images are described instead.

use plexus_e2e::text;
use plexus_testkit::model::Step;
use serde_json::json;

use crate::console::scene::commit_all;
use crate::console::signed_in_page::{ConsolePage, over_clis};

over_clis!(images_of_tools_and_prompts_are_shown, a_changed_image_and_a_renamed_file_are_shown_in_a_review);

/// A red image of 64 by 48 pixels.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAEAAAAAwCAIAAAAuKetIAAAAQ0lEQVR42u3PMQ0AAAgDsEma/wtpWOAlaVIDzbSvRUBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEDgagE1Z4DE+4XkBQAAAABJRU5ErkJggg==";

/// The images that the browser has decoded: their texts and widths.
const IMAGES: &str = "await page.waitForFunction((count) => [...document.images].filter((image) => image.complete && image.naturalWidth > 0).length === count, args); \
    return page.evaluate(() => [...document.images].map((image) => ({alt: image.alt, width: image.naturalWidth, type: image.src.slice(0, 15)})))";

fn png() -> anyhow::Result<Vec<u8>> {
    use base64::Engine as _;
    Ok(base64::engine::general_purpose::STANDARD.decode(PNG)?)
}

async fn images_of_tools_and_prompts_are_shown(console: &mut ConsolePage) -> anyhow::Result<()> {
    let world = &console.world;
    std::fs::write(world.file("shot.png"), png()?)?;
    std::fs::write(
        world.file("fake.png"),
        "<svg xmlns='http://www.w3.org/2000/svg' onload='window.__pwned=1'/>",
    )?;
    let read = |name: &str| Step::tool("Read", json!({"file_path": world.file(name)}));
    world.model.script(
        "LOOK-AT-IT",
        vec![read("shot.png"), Step::text("Red."), read("fake.png"), Step::text("Not an image.")],
    );
    let session = world.create("viewer", json!({})).await?;
    let attached = json!([{"name": "<img onerror=alert(1)>.png", "media_type": "image/png", "data": PNG}]);
    let prompt = json!({"session_id": session, "prompt": "LOOK-AT-IT", "attachments": attached});
    world.call("claudecode.chat_async", prompt).await?;
    world.ended(&session).await?;

    console.go(&format!("#/session/{session}")).await?;
    let open = "await page.locator('[data-kind=call]').filter({hasText: 'shot.png'}).getByRole('button').first().click()";
    console.run(open, json!({})).await?;
    let shown = console.run(IMAGES, json!(2)).await?;
    assert_eq!(
        shown[0],
        json!({"alt": "Attached image: <img onerror=alert(1)>.png, 64 × 48 pixels", "width": 64, "type": "data:image/png;"})
    );
    assert!(text(&shown[1]["alt"]).starts_with("Image in the result, "), "{shown}");
    assert_eq!(
        console.run("return page.evaluate(() => window.__pwned ?? null)", json!({})).await?,
        json!(null)
    );
    Ok(())
}

async fn a_changed_image_and_a_renamed_file_are_shown_in_a_review(
    console: &mut ConsolePage,
) -> anyhow::Result<()> {
    let world = &console.world;
    let lines: String = (0..40).map(|n| format!("line {n}\n")).collect();
    std::fs::write(world.file("old-name.txt"), &lines)?;
    std::fs::write(world.file("logo.png"), png()?)?;
    commit_all(&world.work)?;
    let session = world.create("mover", json!({"isolation": "worktree"})).await?;
    let got = world.call("claudecode.get", json!({"session_id": session})).await?;
    let root = std::path::PathBuf::from(text(&got["session"]["worktree"]["path"]));
    std::fs::remove_file(root.join("old-name.txt"))?;
    std::fs::write(root.join("new-name.txt"), lines.replace("line 7\n", "line seven\n"))?;
    let mut changed = png()?;
    changed.extend(b"more");
    std::fs::write(root.join("logo.png"), changed)?;
    std::fs::write(
        root.join("evil.png"),
        b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\x7f\xff\xff\xff\x7f\xff\xff\xff\x08\x06\0\0\0",
    )?;

    console.go(&format!("#/session/{session}/diff/new-name.txt")).await?;
    let renamed = "const file = page.getByRole('region', {name: 'new-name.txt'}); \
        await file.locator('.file.linked').getByText('old-name.txt → new-name.txt').waitFor(); \
        await file.getByText('renamed', {exact: true}).waitFor(); await file.locator('.row.added').getByText('line seven').waitFor(); \
        return {added: await file.locator('.row.added').count(), deletions: await page.getByRole('region', {name: 'old-name.txt', exact: true}).count()}";
    assert_eq!(console.run(renamed, json!({})).await?, json!({"added": 1, "deletions": 0}));
    let shown = console.run(IMAGES, json!(2)).await?;
    assert_eq!(text(&shown[0]["alt"]), "Before the change, 64 × 48 pixels");
    assert_eq!(text(&shown[1]["alt"]), "After the change, 64 × 48 pixels");
    let huge = "await page.getByRole('region', {name: 'evil.png'}).getByTestId('no-picture').getByText('pixels are too many for this page').waitFor()";
    console.run(huge, json!({})).await?;
    Ok(())
}
