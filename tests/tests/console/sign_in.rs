//! Signing in: a link works once, there is no cookie, the token is not readable for other pages, and pages of other origins get
//! nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plexus_e2e::Setup;
use plexus_e2e::browser::{Look, Window};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::console::signed_in_page::{ConsolePage, link};

#[tokio::test]
async fn a_link_signs_in_once_and_stores_no_secret() -> anyhow::Result<()> {
    let test = "a_link_signs_in_once_and_stores_no_secret";
    let Some(world) = Setup::scripted().world(test).await? else { return Ok(()) };
    let Some(window) = Window::open(test, &[world.hub.url()], Look::WIDE).await? else { return Ok(()) };
    let link = link(&world).await?;
    window
        .run("await page.goto(args); await page.locator('[data-state=live]').waitFor()", json!(link))
        .await?;
    let kept = "return page.evaluate(async () => ({ href: location.href, local: localStorage.length, cookie: document.cookie, \
        session: Object.keys(sessionStorage), stores: (await indexedDB.databases()).length, caches: (await caches.keys()).length }))";
    let kept = window.run(kept, json!({})).await?;
    let code = link.split_once("#login=").map(|(_, code)| code.to_owned()).unwrap_or_default();
    assert!(code.len() >= 32, "{link} {kept}");
    let href = plexus_e2e::text(&kept["href"]);
    assert!(!href.contains(&code) && !href.contains("login"), "{href}");
    assert_eq!((&kept["local"], &kept["cookie"]), (&json!(0), &json!("")));
    assert_eq!((&kept["stores"], &kept["caches"]), (&json!(0), &json!(0)));
    // The number of the tab is not a credential; see `credential.rs`.
    assert_eq!(kept["session"], json!(["plexus-tab"]));
    assert_eq!(window.run("return context.cookies()", json!({})).await?, json!([]));

    // A reload stays signed in. A second tab is not signed in, and the link is used up.
    window.run("await page.reload(); await page.locator('[data-state=live]').waitFor()", json!({})).await?;
    window.run("await context.newPage()", json!({})).await?;
    for (number, old) in
        [link, format!("{}/#login={}", world.hub.url(), "x".repeat(43))].into_iter().enumerate()
    {
        let refused = "await page.goto(args); const alert = page.getByRole('alert'); \
            await alert.getByText('this link was already used or has expired; plexus console creates a new one').waitFor(); \
            return page.evaluate(() => [sessionStorage.length, location.hash])";
        let left = window.run_in(1, refused, json!(old)).await?;
        assert_eq!(left, json!([0, ""]), "{number}");
        window.run_in(1, "await page.goto('about:blank')", json!({})).await.map(drop)?;
    }

    // Signing out revokes the token. A page whose token the operator revokes is signed out.
    let out = "await page.keyboard.press('?'); await page.getByRole('button', {name: 'Sign out'}).click()";
    window.run(out, json!({})).await?;
    is_out(&window).await?;
    assert_eq!(world.call("token.list", json!({})).await?["tokens"], json!([]));
    let enter = "await page.goto(args); await page.locator('[data-state=live]').waitFor()";
    window.run("await page.goto('about:blank')", json!({})).await?;
    window.run(enter, json!(crate::console::signed_in_page::link(&world).await?)).await?;
    let tokens = world.call("token.list", json!({})).await?;
    world.call("token.revoke", json!({"name": tokens["tokens"][0]["name"]})).await?;
    is_out(&window).await?;
    // It can sign in again with a token.
    let made = world.call("token.new", json!({"name": "again", "right": "read"})).await?;
    let again = "await page.getByLabel('Or sign in with a token').fill(args); await page.getByRole('button', {name: 'Sign in'}).click(); \
        await page.locator('[data-state=live]').waitFor()";
    window.run(again, made["token"].clone()).await?;
    window.close().await
}

/// Checks that the page explains how to sign in and stores nothing.
async fn is_out(window: &Window) -> anyhow::Result<()> {
    let says = "await page.getByText('Run plexus console in a terminal').waitFor(); return page.evaluate(() => sessionStorage.length)";
    assert_eq!(window.run(says, json!({})).await?, json!(0));
    Ok(())
}

/// Counts a connection only when it sends a request. A browser may connect in advance.
async fn visited(mut stream: TcpStream, counted: Arc<AtomicUsize>) {
    let mut asked = [0; 4096];
    if let Ok(1..) = stream.read(&mut asked).await {
        counted.fetch_add(1, Ordering::Relaxed);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 12\r\nconnection: close";
        let _ = stream.write_all(format!("{head}\r\n\r\n<p>neighbour").as_bytes()).await;
    }
}

/// A server that serves the same page to everybody until the test ends. Returns its address and the number of requests.
async fn other_server() -> anyhow::Result<(String, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let visitors = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&visitors);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(visited(stream, Arc::clone(&counted)));
        }
    });
    Ok((format!("http://{address}"), visitors))
}

#[tokio::test]
async fn a_page_of_another_origin_gets_nothing_and_cannot_frame_ours() -> anyhow::Result<()> {
    let test = "a_page_of_another_origin_gets_nothing_and_cannot_frame_ours";
    let Some(world) = Setup::scripted().world(test).await? else { return Ok(()) };
    let hub = world.hub.url().to_owned();
    // A server of a child may also run on this machine, at another port.
    let (other_server, _) = other_server().await?;
    let Some(window) = Window::open(test, &[&hub, &other_server], Look::WIDE).await? else { return Ok(()) };
    window.run("await page.goto(args)", json!(other_server)).await?;
    let token = world.hub.token()?;
    let tries = "const seen = []; page.on('response', (response) => { if (response.url().startsWith(args.hub)) seen.push(response.status()); }); \
        const read = await page.evaluate(async ({hub, token}) => { \
            const body = JSON.stringify({jsonrpc: '2.0', id: 1, method: 'claudecode.list', params: {}}); \
            const tries = [ \
                () => fetch(hub + '/rpc', {method: 'POST', body, headers: {authorization: 'Bearer ' + token, 'content-type': 'application/json'}}), \
                () => fetch(hub + '/rpc', {method: 'POST', body, mode: 'no-cors'}), \
                () => fetch(hub + '/console/login', {method: 'POST', body: '{\"code\":\"x\"}', mode: 'no-cors'}), \
                () => fetch(hub + '/events', {headers: {authorization: 'Bearer ' + token}}), \
                () => fetch(hub + '/', {}), \
            ]; \
            const read = []; \
            for (const attempt of tries) read.push(await attempt().then((answer) => answer.text(), () => '')); \
            return read; }, args); \
        return { seen, read }";
    let met = window.run(tries, json!({"hub": hub, "token": token})).await?;
    assert_eq!(met["read"], json!(["", "", "", "", ""]), "{met}");
    assert!(
        met["seen"]
            .as_array()
            .is_some_and(|seen| !seen.is_empty() && seen.iter().all(|status| status == 403)),
        "{met}"
    );
    let framed = "await page.evaluate((hub) => { const frame = document.createElement('iframe'); frame.src = hub; document.body.append(frame); \
            return new Promise((loaded) => { frame.onload = loaded; }); }, args); \
        return page.frames()[1].url()";
    assert_eq!(window.run(framed, json!(hub)).await?, json!("chrome-error://chromewebdata/"));
    Ok(())
}

#[tokio::test]
async fn a_read_token_shows_approvals_and_cannot_answer_them() -> anyhow::Result<()> {
    let test = "a_read_token_shows_approvals_and_cannot_answer_them";
    let Some(world) = Setup::scripted().world(test).await? else { return Ok(()) };
    let Some(console) = ConsolePage::open(world, test, Look::PHONE).await? else { return Ok(()) };
    let world = &console.world;
    let made = world.call("token.new", json!({"name": "looker", "right": "read"})).await?;
    let session = world.create("asker", json!({})).await?;
    let asks = plexus_e2e::script(&json!([{"tool": "Bash", "input": {"command": "true"}}]));
    world.chat(&session, &asks).await?;
    let (_, approval) = world.asked(&session).await?;
    console.run("await context.newPage()", json!({})).await?;
    let enter = "await page.goto(args.url); await page.getByLabel('Or sign in with a token').fill(args.token); \
        await page.getByRole('button', {name: 'Sign in'}).click(); await page.locator('[data-state=live]').waitFor()";
    console.window.run_in(1, enter, json!({"url": world.hub.url(), "token": made["token"]})).await?;
    let looks = "await page.getByRole('listitem').getByText('asker').click(); \
        await page.locator('article[data-status=pending]').waitFor(); \
        return page.getByRole('group', {name: 'Answer'}).count()";
    assert_eq!(console.window.run_in(1, looks, json!({})).await?, json!(0));
    world.allow(&approval).await?;
    console
        .window
        .run_in(1, "await page.locator('article[data-status=allowed]').waitFor()", json!({}))
        .await?;
    console.window.close().await
}

#[tokio::test]
async fn injected_content_neither_runs_nor_sends_requests() -> anyhow::Result<()> {
    let test = "injected_content_neither_runs_nor_sends_requests";
    let Some(world) = Setup::scripted().world(test).await? else { return Ok(()) };
    let (other_server, visitors) = other_server().await?;
    let Some(console) = ConsolePage::open(world, test, Look::WIDE).await? else { return Ok(()) };
    // Code of the driver may call `eval`; a timer of the page may not.
    let tries = "return page.evaluate(async (elsewhere) => { \
        const refused = []; const broken = new Set(); \
        const all = new Promise((done) => addEventListener('securitypolicyviolation', (event) => broken.add(event.violatedDirective).size === 6 && done())); \
        const attempt = async (act) => { try { await act(); } catch { refused.push(String(act)); } }; \
        const add = (name, fields) => document.body.append(Object.assign(document.createElement(name), fields)); \
        const tries = [ \
            () => { document.body.innerHTML = '<img src=x onerror=window.__pwned=1>'; }, \
            () => add('script', {textContent: 'window.__pwned = 1'}), \
            () => add('script', {src: elsewhere}), \
            () => new Promise((done, fail) => setTimeout(() => { try { done(window.eval('window.__pwned = 1')); } catch (error) { fail(error); } })), \
            () => document.createElement('b').setAttribute('onclick', 'window.__pwned = 1'), \
            () => fetch(elsewhere, {mode: 'no-cors'}), \
        ]; \
        for (const act of tries) await attempt(act); \
        add('img', {src: elsewhere}); add('iframe', {src: elsewhere}); add('base', {href: elsewhere}); \
        const form = document.createElement('form'); form.action = elsewhere; document.body.append(form); form.submit(); \
        await all; \
        return {refused: refused.length, pwned: window.__pwned ?? null, base: document.baseURI.startsWith(location.origin), broken: [...broken].sort()}; }, args)";
    let broken =
        ["base-uri", "connect-src", "form-action", "frame-src", "img-src", "require-trusted-types-for"];
    let expected = json!({"refused": 6, "pwned": null, "base": true, "broken": broken});
    assert_eq!(console.run(tries, json!(other_server)).await?, expected);
    let faults = console.window.close().await.err().map(|faults| faults.to_string()).unwrap_or_default();
    assert!(faults.contains("against the policy: connect-src"), "the violations are reported: {faults}");
    assert_eq!(visitors.load(Ordering::Relaxed), 0, "nothing left the page: {faults}");
    Ok(())
}
