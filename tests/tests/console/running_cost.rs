//! The cost of a turn that still runs: it grows on the page of the session and in the list as the agent works.

use plexus_testkit::model::Step;
use serde_json::json;

use crate::console::signed_in_page::{ConsolePage, over_clis};

over_clis!(the_cost_of_a_running_turn_grows_on_the_page);

async fn the_cost_of_a_running_turn_grows_on_the_page(console: &mut ConsolePage) -> anyhow::Result<()> {
    let world = &console.world;
    std::fs::write(world.file("a.txt"), "content\n")?;
    let read = || Step::tool("Read", json!({"file_path": world.file("a.txt")}));
    let (first, first_hold) = Step::hold(read());
    let (last, last_hold) = Step::hold(Step::text("Done."));
    world.model.script("SPEND-MONEY", vec![read(), first, last]);
    let session = world.create("spender", json!({})).await?;
    world.chat(&session, "SPEND-MONEY").await?;

    console.go(&format!("#/session/{session}")).await?;
    let cost = "const shown = page.getByLabel('About this session').locator('dt', {hasText: 'This turn, so far'}).locator('+ dd'); \
        await shown.waitFor(); \
        await page.waitForFunction((least) => [...document.querySelectorAll('aside dt')].some((dt) => \
            dt.textContent === 'This turn, so far' && Number(dt.nextElementSibling.textContent.slice(1)) > least), args); \
        return Number((await shown.textContent()).slice(1))";
    let after_one = console.run(cost, json!(0)).await?;
    first_hold.release();
    console.run(cost, after_one).await?;
    let listed = "await page.evaluate(() => { location.hash = '#/sessions'; }); \
        await page.getByRole('treeitem').filter({hasText: 'spender'}).getByText(/^<?\\$0\\.0*[1-9]/).first().waitFor()";
    console.run(listed, json!({})).await?;
    last_hold.release();
    world.ended(&session).await?;
    Ok(())
}
