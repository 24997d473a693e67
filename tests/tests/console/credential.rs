//! What the console leaves on the disk of the browser: nothing that signs anybody in. The whole profile is searched, while the browser runs and after
//! it was closed, and every string in it that could be a token is tried at the hub. A reload stays signed in all the same.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use plexus_e2e::browser::{Look, Profile, Window};
use plexus_e2e::{Setup, World, text};
use plexus_testkit::rpc::Rpc;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::desk::link;

/// How many characters a token has, all of them hexadecimal.
const TOKEN: usize = 64;

/// Signs in by a link, and gives the token that the page uses from then on.
const ENTER: &str = "const first = page.waitForRequest(/\\/events/); await page.goto(args); \
    await page.locator('[data-state=live]').waitFor(); return (await (await first).allHeaders()).authorization.replace('Bearer ', '')";
/// Loads the page anew: it is still signed in, with the same token.
const RELOAD: &str = "const next = page.waitForRequest(/\\/events/); await page.reload(); \
    await page.locator('[data-state=live]').waitFor(); return (await (await next).allHeaders()).authorization.replace('Bearer ', '')";

/// All files below a folder, as they are now. What goes away meanwhile is passed over: browsers rename files.
fn contents(folder: &Path, into: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => contents(&path, into),
            Ok(kind) if kind.is_file() => {
                into.extend(fs::read(&path).ok().map(|bytes| (path.display().to_string(), bytes)));
            }
            _ => {}
        }
    }
}

/// A text as it may stand in a file: as it is, in UTF-16, and its bytes in base64 and hex; a token also as the bytes it stands for.
fn forms(secret: &str) -> Vec<Vec<u8>> {
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let plain = secret.as_bytes().to_vec();
    let raw: Vec<u8> = (0..secret.len() / 2)
        .filter_map(|at| u8::from_str_radix(secret.get(2 * at..2 * at + 2)?, 16).ok())
        .collect();
    let mut forms = vec![wide(secret), hex(&plain).into_bytes(), hex(&wide(secret)).into_bytes()];
    for bytes in [&plain, &raw] {
        // At each of the three places where base64 may begin; what depends on its neighbours is left out.
        for skip in 0..3 {
            let whole = base64(bytes.get(skip..).unwrap_or_default());
            forms.push(whole.get(..whole.len().saturating_sub(4)).unwrap_or_default().as_bytes().to_vec());
        }
    }
    forms.extend([plain, raw]);
    forms
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let groups = bytes.chunks_exact(3).map(|group| u32::from_be_bytes([0, group[0], group[1], group[2]]));
    groups
        .flat_map(|group| [18, 12, 6, 0].map(|shift| char::from(ALPHABET[(group >> shift & 63) as usize])))
        .collect()
}

fn holds(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// Every string that has the form of a token, in UTF-8 and in UTF-16.
fn token_like(bytes: &[u8], into: &mut BTreeSet<String>) {
    for step in [1, 2] {
        for from in 0..step {
            let characters: Vec<u8> = bytes.iter().skip(from).step_by(step).copied().collect();
            for run in characters.split(|byte| !byte.is_ascii_hexdigit()).filter(|run| run.len() >= TOKEN) {
                into.extend(run.windows(TOKEN).map(|window| String::from_utf8_lossy(window).into_owned()));
            }
        }
    }
}

/// Searches the profile for these secrets, and tries all that looks like one.
async fn searched(world: &World, profile: &Path, secrets: &[&str]) -> anyhow::Result<()> {
    let mut files = Vec::new();
    contents(profile, &mut files);
    ensure!(files.len() > 10, "a browser keeps more than {} files", files.len());
    let mut candidates = BTreeSet::new();
    let mut found = Vec::new();
    for (name, bytes) in &files {
        for secret in secrets {
            found.extend(
                forms(secret)
                    .iter()
                    .filter(|form| holds(bytes, form))
                    .map(|form| format!("{} bytes in {name}", form.len())),
            );
        }
        token_like(bytes, &mut candidates);
    }
    let mut good = Vec::new();
    for candidate in &candidates {
        if Rpc::new(world.hub.url(), candidate).call("loopback.pending", json!({})).await.is_ok() {
            good.push(candidate);
        }
    }
    ensure!(
        found.is_empty() && good.is_empty(),
        "on disk: {found:#?}; tried {}, let in by {good:?}",
        candidates.len()
    );
    Ok(())
}

#[tokio::test]
async fn nothing_that_the_browser_writes_to_disk_signs_in() -> anyhow::Result<()> {
    let test = "nothing_that_the_browser_writes_to_disk_signs_in";
    let Some(world) = Setup::scripted().world(test).await? else { return Ok(()) };
    let profile = tempfile::tempdir()?;
    let on_disk = Profile::OnDisk(profile.path());
    let Some(window) = Window::open_with(test, &[world.hub.url()], Look::WIDE, on_disk).await? else {
        return Ok(());
    };
    let link = link(&world).await?;
    let code = link.split_once("#login=").map(|(_, code)| code.to_owned()).unwrap_or_default();
    let token = text(&window.run(ENTER, json!(link)).await?);
    assert_eq!(token.len(), TOKEN);
    Rpc::new(world.hub.url(), &token).call("loopback.pending", json!({})).await?;
    // A token that somebody was given, typed into the form.
    let made = world.call("token.new", json!({"name": "ann", "right": "decide"})).await?;
    let form = "const other = await context.newPage(); await other.goto(args.url); await other.getByLabel('sign in with a token').fill(args.token); \
        await other.getByRole('button', {name: 'Sign in'}).click(); await other.locator('[data-state=live]').waitFor(); \
        await other.reload(); await other.locator('[data-state=live]').waitFor()";
    window.run(form, json!({"url": world.hub.url(), "token": made["token"]})).await?;
    let given = text(&made["token"]);
    let secrets = [token.as_str(), given.as_str()];

    for _ in 0..3 {
        assert_eq!(text(&window.run(RELOAD, json!({})).await?), token);
    }
    // The browser writes when it likes. That the number of the tab is found shows that a token would be, too.
    let number = text(
        &window
            .run(
                "return page.evaluate(() => sessionStorage.getItem('plexus-tab') ?? 'no number at all')",
                json!({}),
            )
            .await?,
    );
    let number: Vec<u8> = number.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let until = Instant::now() + plexus_e2e::LIMIT;
    loop {
        searched(&world, profile.path(), &secrets).await?;
        let mut files = Vec::new();
        contents(profile.path(), &mut files);
        if files.iter().any(|(_, bytes)| holds(bytes, &number)) {
            break;
        }
        ensure!(Instant::now() < until, "the browser has written nothing");
        sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(text(&window.run(RELOAD, json!({})).await?), token, "and it still works");
    window.close().await?;
    searched(&world, profile.path(), &secrets).await?;

    // The code of the link stands in the history; it was used.
    let refused = "return page.goto(args).then(() => page.getByRole('alert').getByText('this link was used').waitFor())";
    let Some(window) = Window::open_with(test, &[world.hub.url()], Look::WIDE, on_disk).await? else {
        return Ok(());
    };
    window.run(refused, json!(format!("{}/#login={code}", world.hub.url()))).await?;
    window.close().await
}

#[tokio::test]
async fn a_reload_stays_signed_in_after_the_browser_stopped_the_worker_and_a_second_tab_is_nobody()
-> anyhow::Result<()> {
    let test = "a_reload_stays_signed_in_after_the_browser_stopped_the_worker_and_a_second_tab_is_nobody";
    let Some(world) = Setup::scripted().world(test).await? else { return Ok(()) };
    let Some(window) = Window::open(test, &[world.hub.url()], Look::WIDE).await? else { return Ok(()) };
    let token = text(&window.run(ENTER, json!(link(&world).await?)).await?);
    let stop = "const session = await context.newCDPSession(page); await session.send('ServiceWorker.enable'); \
        await session.send('ServiceWorker.stopAllWorkers'); await session.detach()";
    for _ in 0..5 {
        window.run(stop, json!({})).await?;
        assert_eq!(text(&window.run(RELOAD, json!({})).await?), token);
    }
    // Another tab of the same browser, even one that has copied the number of this tab, is not signed in.
    let copied = "const number = await page.evaluate(() => sessionStorage.getItem('plexus-tab')); const other = await context.newPage(); \
        await other.addInitScript((number) => sessionStorage.setItem('plexus-tab', number), number); await other.goto(args); \
        await other.getByText('Run plexus console in a terminal').waitFor(); await other.close()";
    window.run(copied, json!(world.hub.url())).await?;
    // Who signed out leaves nothing for the page that comes next.
    window
        .run(
            "await page.keyboard.press('?'); await page.getByRole('button', {name: 'Sign out'}).click(); \
        await page.getByText('Run plexus console in a terminal').waitFor(); await page.reload(); \
        await page.getByText('Run plexus console in a terminal').waitFor()",
            json!({}),
        )
        .await?;
    assert!(Rpc::new(world.hub.url(), &token).call("loopback.pending", json!({})).await.is_err());
    window.close().await
}

#[tokio::test]
async fn without_service_workers_a_reload_says_how_to_sign_in_again() -> anyhow::Result<()> {
    let test = "without_service_workers_a_reload_says_how_to_sign_in_again";
    let Some(world) = Setup::scripted().world(test).await? else { return Ok(()) };
    let origins = [world.hub.url()];
    let Some(window) = Window::open_with(test, &origins, Look::WIDE, Profile::WithoutWorkers).await? else {
        return Ok(());
    };
    window.run(ENTER, json!(link(&world).await?)).await?;
    let reload = "await page.reload(); await page.getByRole('alert').getByText('Run `plexus console` to sign in again').waitFor()";
    window.run(reload, json!({})).await?;
    window.run("await page.goto('about:blank')", json!({})).await?;
    window.run(ENTER, json!(link(&world).await?)).await?;
    window.close().await
}
