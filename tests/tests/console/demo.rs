//! `plexus demo --console` as a newcomer uses it: without Claude Code, without an account. The test starts it at a terminal, signs in
//! with the printed link, answers every kind of approval in Chromium, and ends it with Ctrl-C.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use plexus_e2e::browser::{Look, Window};
use plexus_testkit::binaries;
use plexus_testkit::pty::{CTRL_C, Pty};
use serde_json::json;

/// Opens the approval of a session, by what its row in the list says, and waits until it can be answered.
const OPEN: &str = "await page.locator('[data-approval] a').filter({has: page.locator('.session').getByText(new RegExp(`(^|/)${args.session}$`))}).filter({hasText: args.says}).click(); \
    await page.locator('article[data-status=pending][data-ready=true]').filter({hasText: args.session}).waitFor()";

const CLICK: &str = "await page.getByRole('button', {name: args, exact: true}).click()";

const ANSWER_QUESTIONS: &str = "const ask = (name) => page.getByRole('group', {name}); \
    await ask('Which format should the reference have?').getByLabel('Markdown').check(); \
    for (const part of ['Orders', 'Payments']) await ask('Which parts come first?').getByLabel(part).check(); \
    await page.getByRole('button', {name: 'Answer', exact: true}).click()";

/// A person's answers, in order: the session, what the row of its approval says, the button.
const ALLOWED: [(&str, &str, &str); 6] = [
    ("fix-discount", "price.py", "Allow"),
    ("migrate-orders", "Plan", "Approve"),
    ("release", "run-tests.sh", "Allow"),
    ("fix-discount", "run-tests.sh", "Allow"),
    ("migrate-orders", "orders-v2.sql", "Allow"),
    ("api-docs", "API.md", "Allow"),
];

/// The last link on the terminal.
fn link(demo: &Pty) -> anyhow::Result<String> {
    let shown = demo.shown();
    let mut links = shown.split_whitespace().filter(|word| word.contains("/#login="));
    Ok(links.next_back().context("no link")?.to_owned())
}

/// The processes that belong to the demo: its temporary directory is in their command line.
fn processes(folder: &Path) -> Vec<String> {
    let folder = folder.to_string_lossy();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).into_owned())
        .filter(|line| line.contains(&*folder))
        .collect()
}

#[tokio::test]
async fn a_newcomer_answers_the_agents_of_the_demo_and_ctrl_c_removes_everything() -> anyhow::Result<()> {
    let test = "a_newcomer_answers_the_agents_of_the_demo_and_ctrl_c_removes_everything";
    let home = tempfile::tempdir()?;
    let folder = home.path().to_string_lossy().into_owned();
    let path = std::env::var("PATH")?;
    let env = [("HOME", &folder), ("TMPDIR", &folder), ("PATH", &path)];
    let env: Vec<_> = env.into_iter().map(|(name, value)| (name.to_owned(), value.clone())).collect();
    let args = ["demo", "--console", "--no-open"];
    let mut demo = Pty::start(&binaries::plexus()?, &args, home.path(), &env)?;
    demo.expect("Ctrl-C to end the demo").await?;
    let first = link(&demo)?;
    let (url, _) = first.split_once("/#").context("a link")?;
    let Some(window) = Window::open(test, &[url], Look::WIDE).await? else { return Ok(()) };

    // The first link may have expired by now, as for a newcomer who reads first.
    demo.press("\n")?;
    demo.expect("It works once").await?;
    let second = link(&demo)?;
    assert_ne!(first, second);
    window
        .run("await page.goto(args); await page.locator('[data-state=live]').waitFor()", json!(second))
        .await?;

    // Four kinds of approval are open; the fifth agent only reads and has finished.
    for (session, says) in
        [("fix-discount", "price.py"), ("migrate-orders", ""), ("release", ""), ("api-docs", "")]
    {
        window.run(OPEN, json!({"session": session, "says": says})).await?;
    }
    window.run(OPEN, json!({"session": "fix-discount", "says": "price.py"})).await?;
    window.run("await page.locator('article .diff .added').first().waitFor()", json!({})).await?;
    picture(&window).await?;

    window.run(OPEN, json!({"session": "api-docs", "says": "Which format"})).await?;
    window.run(ANSWER_QUESTIONS, json!({})).await?;
    for (session, says, button) in ALLOWED {
        window.run(OPEN, json!({"session": session, "says": says})).await?;
        window.run(CLICK, json!(button)).await?;
    }
    window
        .run("await page.waitForFunction(() => !document.querySelector('[data-approval] a'))", json!({}))
        .await?;

    window.close().await?;

    let demo_dir = fs::read_dir(home.path())?.next().context("the demo's directory")??.path();
    let work = demo_dir.join("work");
    assert!(fs::read_to_string(work.join("price.py"))?.contains("max(0, subtotal - discount)"));
    assert!(fs::read_to_string(work.join("orders-v2.sql"))?.contains("currency"));
    assert_eq!(fs::read_to_string(work.join("API.md"))?, "# Shop API\n");

    assert!(!processes(&demo_dir).is_empty(), "the agents are alive");
    demo.press(CTRL_C)?;
    assert_eq!(demo.end().await?, 0, "{}", demo.shown());
    assert!(demo.shown().contains("plexus run"), "{}", demo.shown());
    assert_eq!(processes(&demo_dir), Vec::<String>::new());
    assert_eq!(fs::read_dir(home.path())?.count(), 0, "the directory is gone");
    Ok(())
}

/// Takes the picture for `README.md`, when asked to.
async fn picture(window: &Window) -> anyhow::Result<()> {
    if std::env::var_os("PLEXUS_WRITE_DOCS").is_none() {
        return Ok(());
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/console/demo.png");
    window.run("await picture(page, args)", json!(path)).await.map(drop)
}
