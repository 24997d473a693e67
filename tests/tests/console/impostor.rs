//! Another program listens on the hub's port while no hub runs. A signed-in page sends it nothing that the hub would accept, and reconnects
//! when the hub has restarted.

use plexus_e2e::browser::Look;
use plexus_e2e::{Setup, until};
use plexus_testkit::impostor::Impostor;
use serde_json::json;

use crate::console::signed_in_page::ConsolePage;

/// A signed-in page whose first requests have been answered: a request that is under way when the hub is killed is not the subject of
/// these tests. `None` if there is no browser.
async fn signed_in(test: &str) -> anyhow::Result<Option<ConsolePage>> {
    let Some(world) = Setup::scripted().world(test).await? else { return Ok(None) };
    let Some(console) = ConsolePage::open(world, test, Look::WIDE).await? else { return Ok(None) };
    let answered = "await page.waitForFunction(() => \
        performance.getEntriesByType('resource').filter((one) => one.name.endsWith('/rpc')).length >= 2)";
    console.run(answered, json!({})).await?;
    Ok(Some(console))
}

#[tokio::test]
async fn an_open_page_sends_no_token_to_an_impostor_on_the_hubs_port() -> anyhow::Result<()> {
    let test = "an_open_page_sends_no_token_to_an_impostor_on_the_hubs_port";
    let Some(ConsolePage { mut world, window }) = signed_in(test).await? else { return Ok(()) };

    let url = world.hub.url().to_owned();
    world.hub.kill9().await?;
    let impostor = Impostor::listen(&url).await?;
    window.run("await page.locator('[data-state=disconnected]').waitFor()", json!({})).await?;
    until("the page to reconnect", || impostor.heard().len() >= 3).await?;
    // A page of the impostor asks the service worker for the credential of the previous page.
    window.run("await page.reload()", json!({})).await?;
    let stolen = "return page.evaluate(async () => { \
        const worker = (await navigator.serviceWorker.getRegistration('/'))?.active; \
        if (!worker) return 'no worker'; \
        const { port1, port2 } = new MessageChannel(); \
        const answer = new Promise((resolve) => { port1.onmessage = ({ data }) => resolve(data); }); \
        worker.postMessage({ take: true, tab: sessionStorage.getItem('plexus-tab') }, [port2]); \
        return answer; })";
    assert_eq!(window.run(stolen, json!({})).await?, json!(null));
    for heard in impostor.heard() {
        assert!(!heard.to_lowercase().contains("authorization"), "{heard}");
    }
    impostor.stop().await;

    world.hub.restart().await?;
    assert_eq!(world.hub.url(), url, "the port is free again");
    // Otherwise only the part after the `#` changes, and the page is not loaded.
    window.run("await page.goto('about:blank')", json!({})).await?;
    let console = ConsolePage { world, window };
    console.sign_in(0).await?;
    console.window.close().await
}

#[tokio::test]
async fn a_page_reconnects_when_the_hub_is_back_on_its_port() -> anyhow::Result<()> {
    let test = "a_page_reconnects_when_the_hub_is_back_on_its_port";
    let Some(ConsolePage { mut world, window }) = signed_in(test).await? else { return Ok(()) };
    let url = world.hub.url().to_owned();
    world.hub.kill9().await?;
    let impostor = Impostor::listen(&url).await?;
    until("the page to reconnect", || impostor.heard().len() >= 3).await?;
    impostor.stop().await;
    world.hub.restart().await?;
    assert_eq!(world.hub.url(), url, "the port is free again");
    window.run("await page.locator('[data-state=live]').waitFor()", json!({})).await?;
    window.close().await
}
