//! Every view on a wide screen and on a phone, with the light and the dark scheme. axe finds no serious problem in any view, and the
//! page's files are small. With `PLEXUS_WRITE_DOCS=1` the test takes the pictures for `docs/console/`.

use std::path::Path;

use plexus_e2e::browser::{Look, Window};
use plexus_e2e::{Channel, DoorKind, Setup};
use serde_json::{Value, json};

use crate::console::scene::{self, Scene};
use crate::console::signed_in_page::{link, print_figure};

/// The largest total size of the page's files on the wire.
const MAX_BYTES: u64 = 300 * 1024;

/// The views: name of the picture, address, and an element that exists when the view is shown.
fn views(scene: &Scene) -> Vec<(&'static str, String, &'static str)> {
    let Scene { worker, talker, edit, question, plan } = scene;
    vec![
        ("inbox", format!("#/inbox/{edit}"), "article .diff .added"),
        ("question", format!("#/inbox/{question}"), "article fieldset"),
        ("plan", format!("#/inbox/{plan}"), "article .markdown table"),
        ("sessions", "#/sessions".to_owned(), "[role=treeitem]"),
        ("session", format!("#/session/{worker}"), "[data-kind=call]"),
        ("start", "#/sessions/start".to_owned(), "dialog form"),
        ("conversation", format!("#/session/{talker}/tree"), "[data-testid=conversation] .head"),
        ("changes", format!("#/session/{worker}/diff"), "[data-testid=changes] figure img"),
        ("activity", "#/activity".to_owned(), ".lane .span"),
        ("audit-log", "#/audit".to_owned(), "[role=listitem]"),
        ("figures", "#/audit/figures".to_owned(), "[data-testid=figures] canvas"),
        ("rules", "#/audit/rules".to_owned(), "li .rule"),
        ("budgets", "#/audit/budgets".to_owned(), ".budgets section"),
    ]
}

/// The serious problems that axe finds: the rule and the elements.
pub(crate) const PROBLEMS: &str = "const session = await context.newCDPSession(page); \
    await session.send('Runtime.evaluate', {expression: axe()}); await session.detach(); \
    return page.evaluate(async () => { \
        const { violations } = await window.axe.run(document, {resultTypes: ['violations']}); \
        return violations.filter((one) => ['serious', 'critical'].includes(one.impact)) \
            .map((one) => `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 200)} (${node.any[0]?.message ?? ''})`).join(' | ')}`); })";

/// Opens the palette above the inbox and searches.
const PALETTE: &str = "await page.evaluate(() => { location.hash = '#/inbox'; }); await page.getByRole('region', {name: 'Open approvals'}).waitFor({state: 'attached'}); \
    await page.keyboard.press('Control+k'); await page.getByRole('combobox', {name: 'Find sessions'}).fill('s'); await page.locator('#found-2').waitFor()";

/// Records the size of each file of the page on the wire. A cached file has no size.
const RECORD_SIZES: &str = "context.weight = {}; context.on('requestfinished', async (request) => { \
    if (/\\/(rpc|events|console\\/login)/.test(request.url())) return; \
    const { responseBodySize } = await request.sizes(); \
    context.weight[request.url()] = Math.max(responseBodySize, context.weight[request.url()] ?? 0); })";

/// The problems of the view that is shown. Takes a picture if configured.
async fn problems_in_view(window: &Window, name: &str, look: Look) -> anyhow::Result<Vec<String>> {
    let found = window.run(PROBLEMS, json!({})).await?;
    let wide = window
        .run("return page.evaluate(() => document.documentElement.scrollWidth - innerWidth)", json!({}))
        .await?;
    let picture = format!("{name}-{}-{}", if look.size.0 < 500 { "phone" } else { "wide" }, look.scheme);
    if std::env::var_os("PLEXUS_WRITE_DOCS").is_some() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/console");
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{picture}.png"));
        window.run("await picture(page, args)", json!(path)).await?;
    }
    let faults = found.as_array().into_iter().flatten().map(|fault| format!("{picture}: {fault}"));
    Ok(faults.chain((wide.as_i64() > Some(0)).then(|| format!("{picture}: too wide by {wide}"))).collect())
}

#[tokio::test]
async fn every_view_is_accessible_and_fits_and_the_page_is_small() -> anyhow::Result<()> {
    let test = "every_view_is_accessible_and_fits_and_the_page_is_small";
    let Some(world) = Setup::cli("2.1.325", Channel::Control, DoorKind::Rpc).world(test).await? else {
        return Ok(());
    };
    let mut windows = Vec::new();
    let mut faults = Vec::new();
    // All windows sign in first, so that the audit log contains only the scene.
    for look in [Look::WIDE, Look::WIDE.dark(), Look::PHONE, Look::PHONE.dark()] {
        let Some(window) = Window::open(test, &[world.hub.url()], look).await? else { return Ok(()) };
        window.run(RECORD_SIZES, json!({})).await?;
        let open =
            "await page.goto(args); await page.getByText('Run plexus console in a terminal').waitFor()";
        window.run(open, json!(world.hub.url())).await?;
        faults.extend(problems_in_view(&window, "login", look).await?);
        let enter = "await page.goto('about:blank'); await page.goto(args); await page.locator('[data-state=live]').waitFor()";
        window.run(enter, json!(link(&world).await?)).await?;
        windows.push((window, look));
    }
    let scene = scene::set(&world).await?;
    for (window, look) in windows {
        for (name, hash, there) in views(&scene) {
            let go = "await page.evaluate((hash) => { location.hash = hash; }, args.hash); await page.locator(args.there).first().waitFor()";
            window.run(go, json!({"hash": hash, "there": there})).await?;
            faults.extend(problems_in_view(&window, name, look).await?);
        }
        window.run(PALETTE, json!({})).await?;
        faults.extend(problems_in_view(&window, "palette", look).await?);
        let weight: Value = window.run("return context.weight", json!({})).await?;
        let sum: u64 = weight.as_object().into_iter().flatten().filter_map(|(_, size)| size.as_u64()).sum();
        print_figure(&format!("all files of the page: {sum} bytes"));
        assert!(sum > 50_000 && sum < MAX_BYTES, "{sum} bytes: {weight:#}");
        window.close().await?;
    }
    assert!(faults.is_empty(), "{faults:#?}");
    Ok(())
}
