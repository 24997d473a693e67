//! The console stores no credential on the disk of the browser. The tests search the whole profile, while the browser runs and after it was
//! closed, and try every string that could be a token at the hub. A reload stays signed in.

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

use crate::console::signed_in_page::link;

/// The number of hexadecimal characters in a token.
const TOKEN: usize = 64;

/// Signs in by a link. Returns the token of the page.
const ENTER: &str = "const first = page.waitForRequest(/\\/events/); await page.goto(args); \
    await page.locator('[data-state=live]').waitFor(); return (await (await first).allHeaders()).authorization.replace('Bearer ', '')";
/// Reloads the page, which stays signed in. Returns its token.
const RELOAD: &str = "const next = page.waitForRequest(/\\/events/); await page.reload(); \
    await page.locator('[data-state=live]').waitFor(); return (await (await next).allHeaders()).authorization.replace('Bearer ', '')";

/// All files in a directory, with their content. It skips files that disappear meanwhile, because browsers rename files.
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

/// The encodings of a text in a file: UTF-8, UTF-16, base64 and hex; for a token also its raw bytes.
fn forms(secret: &str) -> Vec<Vec<u8>> {
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let plain = secret.as_bytes().to_vec();
    let raw: Vec<u8> = (0..secret.len() / 2)
        .filter_map(|at| u8::from_str_radix(secret.get(2 * at..2 * at + 2)?, 16).ok())
        .collect();
    let mut forms = vec![wide(secret), hex(&plain).into_bytes(), hex(&wide(secret)).into_bytes()];
    for bytes in [&plain, &raw] {
        // Base64 depends on the alignment, so there are three forms. The end is omitted because it depends on the next bytes.
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

/// Collects every string with the form of a token, in UTF-8 and UTF-16.
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

/// Searches the profile for these secrets, and tries every candidate at the hub.
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
async fn no_file_of_the_browser_contains_a_valid_credential() -> anyhow::Result<()> {
    let test = "no_file_of_the_browser_contains_a_valid_credential";
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
    // A token of another person, typed into the form.
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
    // The browser decides when it writes. The number of the tab is found, so a token would be found, too.
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

    // The code of the link is in the history, but it is used up.
    let refused = "return page.goto(args).then(() => page.getByRole('alert').getByText('this link was already used').waitFor())";
    let Some(window) = Window::open_with(test, &[world.hub.url()], Look::WIDE, on_disk).await? else {
        return Ok(());
    };
    window.run(refused, json!(format!("{}/#login={code}", world.hub.url()))).await?;
    window.close().await
}

#[tokio::test]
async fn a_reload_stays_signed_in_without_its_worker_and_a_second_tab_does_not() -> anyhow::Result<()> {
    let test = "a_reload_stays_signed_in_without_its_worker_and_a_second_tab_does_not";
    let Some(world) = Setup::scripted().world(test).await? else { return Ok(()) };
    let Some(window) = Window::open(test, &[world.hub.url()], Look::WIDE).await? else { return Ok(()) };
    let token = text(&window.run(ENTER, json!(link(&world).await?)).await?);
    let stop = "const session = await context.newCDPSession(page); await session.send('ServiceWorker.enable'); \
        await session.send('ServiceWorker.stopAllWorkers'); await session.detach()";
    for _ in 0..5 {
        window.run(stop, json!({})).await?;
        assert_eq!(text(&window.run(RELOAD, json!({})).await?), token);
    }
    // Another tab of the same browser is not signed in, even with a copy of this tab's number.
    let copied = "const number = await page.evaluate(() => sessionStorage.getItem('plexus-tab')); const other = await context.newPage(); \
        await other.addInitScript((number) => sessionStorage.setItem('plexus-tab', number), number); await other.goto(args); \
        await other.getByText('Run plexus console in a terminal').waitFor(); await other.close()";
    window.run(copied, json!(world.hub.url())).await?;
    // After a sign-out nothing remains for the next page.
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
async fn without_service_workers_a_reload_explains_how_to_sign_in_again() -> anyhow::Result<()> {
    let test = "without_service_workers_a_reload_explains_how_to_sign_in_again";
    let Some(world) = Setup::scripted().world(test).await? else { return Ok(()) };
    let origins = [world.hub.url()];
    let Some(window) = Window::open_with(test, &origins, Look::WIDE, Profile::WithoutWorkers).await? else {
        return Ok(());
    };
    window.run(ENTER, json!(link(&world).await?)).await?;
    let reload = "await page.reload(); await page.getByRole('alert').getByText('Run plexus console to sign in again').waitFor()";
    window.run(reload, json!({})).await?;
    window.run("await page.goto('about:blank')", json!({})).await?;
    window.run(ENTER, json!(link(&world).await?)).await?;
    window.close().await
}
