//! A list loads its pages when a person scrolls. If the connection fails meanwhile, the list says so and continues by itself: a person
//! at the end of a list cannot scroll on to ask again.

use plexus_e2e::Setup;
use plexus_e2e::browser::Look;
use serde_json::json;

use crate::console::large_data_dir::fill;
use crate::console::signed_in_page::ConsolePage;

/// Fails each request to the hub whose body contains a word, until `page.unroute`.
const FAIL: &str = "await page.route('**/rpc', (route) => route.request().postData().includes(args) ? route.abort() : route.continue())";

#[tokio::test]
async fn a_page_that_could_not_be_loaded_is_loaded_when_the_hub_responds_again() -> anyhow::Result<()> {
    let test = "a_page_that_could_not_be_loaded_is_loaded_when_the_hub_responds_again";
    let dir = tempfile::tempdir()?;
    fill(dir.path()).await?;
    let mut setup = Setup::scripted().with_config("durability = \"normal\"");
    setup.saved = Some(dir.path().to_owned());
    let Some(world) = setup.world(test).await? else { return Ok(()) };
    let listed = world.call("claudecode.list", json!({})).await?;
    let session = listed["sessions"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|session| session["name"] == "agent-0")
        .map(|session| session["id"].clone());
    let Some(console) = ConsolePage::open(world, test, Look::LAPTOP).await? else { return Ok(()) };

    // The second page of the audit log.
    console.go("#/audit").await?;
    let hover =
        "await page.getByRole('list', {name: 'Audit log entries'}).getByRole('listitem').nth(3).hover()";
    console.run(hover, json!({})).await?;
    console.run(FAIL, json!("\"before\"")).await?;
    let scroll = "const list = page.getByRole('list', {name: 'Audit log entries'}); const height = () => list.evaluate((node) => node.scrollHeight); \
        const alert = page.getByRole('alert').filter({hasText: 'the hub is disconnected'}); \
        while (await alert.count() === 0) await page.mouse.wheel(0, 100000); const first = await height(); \
        await page.unroute('**/rpc'); await page.getByRole('alert').waitFor({state: 'hidden'}); \
        await page.waitForFunction(([node, first]) => node.scrollHeight > first * 1.5, [await list.elementHandle(), first])";
    console.run(scroll, json!({})).await?;

    // The timeline of a session.
    console.run(FAIL, json!("\"from_seq\"")).await?;
    console.go(&format!("#/session/{}", session.as_ref().and_then(|id| id.as_str()).unwrap_or("?"))).await?;
    let wait = "await page.getByRole('alert').filter({hasText: 'the hub is disconnected'}).waitFor(); await page.unroute('**/rpc'); \
        await page.getByRole('list', {name: 'Timeline'}).getByRole('listitem').first().waitFor(); await page.getByRole('alert').waitFor({state: 'hidden'})";
    console.run(wait, json!({})).await?;
    console.window.close().await
}
