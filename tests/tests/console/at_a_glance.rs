//! Twenty approvals of different kinds. For each kind, everything that a person needs to decide is on the screen of a usual laptop as soon
//! as the approval is selected: nothing has to be opened, expanded or scrolled. `readable` returns only text that is visible.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use plexus_e2e::browser::Look;
use plexus_e2e::{Channel, DoorKind, Setup, script, text};
use plexus_testkit::binaries;
use plexus_testkit::model::{Step, Tool};
use plexus_testkit::rpc::Door as _;
use serde_json::{Value, json};

use crate::console::approval_kinds::plan_file;
use crate::console::signed_in_page::ConsolePage;

/// The buttons of an approval for a tool call.
const CALL: &[&str] = &["Allow a", "Edit e", "Deny d", "Deny and stop D", "Add rule r"];
const PLAN: &[&str] = &["Approve a", "then", "Edit e", "Deny d", "Deny and stop D"];
const QUESTION: &[&str] = &["Answer", "Deny d", "Deny and stop D"];
const BUDGET: &[&str] = &["Grant", "more tool calls", "Deny d"];

/// What the screen shows for one kind of approval.
struct Shown {
    kind: &'static str,
    /// The action, in words and code.
    action: String,
    /// Risk marks, each with its reason.
    risks: Vec<&'static str>,
    /// The input, or the diff with its line numbers.
    input: Vec<String>,
    buttons: &'static [&'static str],
}

/// A call of the agent, and what the screen shows for it.
struct Kind {
    says: &'static str,
    tool: &'static str,
    input: Value,
    shown: Shown,
}

fn shown(kind: &'static str, action: impl Into<String>, risks: &[&'static str], input: &[&str]) -> Shown {
    let input = input.iter().map(|&part| part.to_owned()).collect();
    Shown { kind, action: action.into(), risks: risks.to_vec(), input, buttons: CALL }
}

fn bash(
    kind: &'static str,
    says: &'static str,
    command: &'static str,
    does: &'static str,
    risks: &[&'static str],
) -> Kind {
    let shown = shown(kind, format!("Run {command}"), risks, &[does, command]);
    Kind { says, tool: "Bash", input: json!({"command": command, "description": does}), shown }
}

/// Opens an approval from the list and returns the text that is visible in it.
async fn selected(console: &ConsolePage, approval: &Value) -> anyhow::Result<String> {
    let open = "await page.locator(`.row[data-approval='${args}'] a`).click(); \
        await page.locator(`article[data-approval='${args}'][data-ready=true]`).waitFor(); \
        return readable(page, 'article')";
    Ok(text(&console.run(open, approval["id"].clone()).await?))
}

/// Checks that the screen shows all of it.
fn shows(screen: &str, expected: &Shown, common: &[&str]) -> anyhow::Result<()> {
    let own = [expected.action.as_str()].into_iter().chain(expected.input.iter().map(String::as_str));
    let marks = expected.risks.iter().chain(expected.buttons).chain(common).copied();
    let missing: Vec<&str> = own.chain(marks).filter(|part| !screen.contains(part)).collect();
    ensure!(missing.is_empty(), "{}: {missing:#?} is not visible; the screen shows: {screen}", expected.kind);
    // The action is the first thing after the names of the session and its project.
    let before = screen.find(&expected.action).unwrap_or_default();
    ensure!(before < 120, "{}: {before} characters before the action: {screen}", expected.kind);
    Ok(())
}

const PARSER: &str = "export function parse(text) {\n  const lines = text.split('\\n');\n  return lines.map((line) => line.trim());\n}\n";

/// Creates the project's files.
fn create_files(shop: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(shop.join("src"))?;
    let long: String = (1..=40).map(|line| format!("// line {line}\n")).collect();
    let cell = json!({"cell_type": "code", "id": "load", "source": "import pandas", "metadata": {}, "outputs": [], "execution_count": null});
    let notebook = json!({"cells": [cell], "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5});
    for (file, content) in [
        ("src/parser.js", format!("{long}{PARSER}")),
        ("src/config.json", "{\n  \"retries\": 3,\n  \"timeout\": 30\n}\n".to_owned()),
        (".env", "KEY=1\n".to_owned()),
        ("sales.ipynb", notebook.to_string()),
    ] {
        std::fs::write(shop.join(file), content)?;
    }
    Ok(())
}

/// The calls of one agent, in the order in which it makes them. A person denies each of them.
fn calls(shop: &Path) -> Vec<Kind> {
    let file = |name: &str| shop.join(name);
    vec![
        bash(
            "simple command",
            "The tests tell whether it works.",
            "sh run-tests.sh --all",
            "Run the tests",
            &[],
        ),
        bash(
            "force push",
            "The remote has diverged, and my branch is newer.",
            "git push --force origin main",
            "Publish the branch",
            &["Force push", "overwrites the remote branch"],
        ),
        bash(
            "recursive delete",
            "The old build is in the way.",
            "rm -rf build/old",
            "Delete the old build",
            &["Recursive delete", "rm -rf build/old"],
        ),
        bash(
            "download",
            "I need the schema.",
            "curl -sSL https://example.com/schema.json -o schema.json",
            "Download the schema",
            &["Network", "example.com"],
        ),
        bash(
            "outside the project",
            "Other programs look for it there.",
            "echo shop > /opt/shop.conf",
            "Write the configuration",
            &["Outside the project", "/opt/shop.conf"],
        ),
        bash(
            "like a denied call",
            "A plain push may do.",
            "git push",
            "Try without force",
            &["Denied before", "git push --force origin main", "Denied by you", "not now"],
        ),
        Kind {
            says: "Empty lines are dropped here.",
            tool: "Edit",
            input: json!({"file_path": file("src/parser.js"), "old_string": "lines.map((line) => line.trim())", "new_string": "lines.map((line) => line.trim()).filter(Boolean)"}),
            shown: shown(
                "edit",
                "Edit src/parser.js, line 43",
                &[],
                &[
                    "42 42 const lines = text.split('\\n');",
                    "43 − return lines.map((line) => line.trim());",
                    "43 + return lines.map((line) => line.trim()).filter(Boolean);",
                ],
            ),
        },
        Kind {
            says: "The notes go into a file of their own.",
            tool: "Write",
            input: json!({"file_path": file("NOTES.md"), "content": "# Notes\n\nThe parser drops empty lines.\n"}),
            shown: shown(
                "new file",
                "Write NOTES.md, new file, 3 lines",
                &[],
                &["creates a new file", "# Notes", "The parser drops empty lines."],
            ),
        },
        Kind {
            says: "The server is slow, so I wait longer.",
            tool: "Write",
            input: json!({"file_path": file("src/config.json"), "content": "{\n  \"retries\": 3,\n  \"timeout\": 90\n}\n"}),
            shown: shown(
                "overwritten file",
                "Write src/config.json, replaces the file, 4 lines",
                &[],
                &["replaces the whole file", "3 − \"timeout\": 30", "3 + \"timeout\": 90"],
            ),
        },
        Kind {
            says: "The key may be in there.",
            tool: "Read",
            input: json!({"file_path": file(".env")}),
            shown: shown(
                "credentials",
                "Read .env",
                &["Credentials", "usually holds secrets"],
                &["File", ".env"],
            ),
        },
        Kind {
            says: "The manual describes the format.",
            tool: "WebFetch",
            input: json!({"url": "https://example.com/manual", "prompt": "What is the format of a price?"}),
            shown: shown(
                "web page",
                "Fetch https://example.com/manual",
                &["Network", "example.com"],
                &["https://example.com/manual", "What is the format of a price?"],
            ),
        },
        Kind {
            says: "Somebody has met this before.",
            tool: "WebSearch",
            input: json!({"query": "split drops empty lines"}),
            shown: shown(
                "web search",
                "Search the web for split drops empty lines",
                &["Network"],
                &["split drops empty lines"],
            ),
        },
        Kind {
            says: "The team wants to know.",
            tool: "mcp__notes__note",
            input: json!({"text": "The parser is fixed."}),
            shown: shown("MCP tool", "notes: note", &[], &["text", "The parser is fixed."]),
        },
        Kind {
            says: "This is work for another.",
            tool: "Agent",
            input: json!({"description": "Check the prices", "prompt": "Compare every price with the list.", "subagent_type": "general-purpose", "run_in_background": false}),
            shown: shown(
                "sub-agent",
                "Start a sub-agent: Check the prices",
                &[],
                &["Prompt for the sub-agent", "Compare every price with the list.", "general-purpose"],
            ),
        },
        Kind {
            says: "One cell is enough.",
            tool: "NotebookEdit",
            input: json!({"notebook_path": file("sales.ipynb"), "cell_id": "load", "new_source": "import polars as pl", "cell_type": "code", "edit_mode": "replace"}),
            shown: shown(
                "notebook",
                "Edit notebook sales.ipynb",
                &[],
                &["import polars as pl", "cell_id load", "edit_mode replace"],
            ),
        },
    ]
}

/// The prompt of every session here: a person must see it.
const TASK: &str = "Release the shop by noon";

/// One agent of a real `claude` makes all calls of the table, one after the other.
async fn one_agent_asks(console: &ConsolePage, shop: &Path) -> anyhow::Result<usize> {
    let world = &console.world;
    let kinds = calls(shop);
    let looks = ["src/parser.js", "src/config.json", "sales.ipynb"]
        .map(|file| Step::tool("Read", json!({"file_path": shop.join(file)})));
    let asks = kinds
        .iter()
        .map(|kind| Step::text_and_tools(kind.says, vec![Tool::new(kind.tool, kind.input.clone())]));
    world.model.script(TASK, looks.into_iter().chain(asks).chain([Step::text("Done.")]).collect());
    let log = world.file("notes.log");
    let server = json!({"type": "stdio", "command": binaries::tool_server()?, "args": ["--quiet"], "env": {"TOOL_SERVER_LOG": log}});
    // Claude Code does not ask about these two by itself.
    let rules = json!([{"rule": "Agent", "effect": "ask"}, {"rule": "Read(.env)", "effect": "ask"}]);
    let given = json!({"working_dir": shop, "mcp_servers": {"notes": server}, "rules": rules});
    let session = world.create("releaser", given).await?;
    world.chat(&session, TASK).await?;
    for kind in &kinds {
        let (_, approval) = world.asked(&session).await?;
        assert_eq!(approval["tool_name"], kind.tool, "{approval:#}");
        let screen = selected(console, &approval).await?;
        shows(&screen, &kind.shown, &["shop", "releaser", kind.says, TASK])?;
        world.respond(&approval, json!({"approve": false, "message": "not now"})).await?;
    }
    assert_eq!(world.ended(&session).await?["status"], "complete");
    Ok(kinds.len())
}

/// A plan, a question with one and one with several answers, and a request for a larger budget, each of an own agent.
async fn others_ask(
    console: &ConsolePage,
    shop: &Path,
) -> anyhow::Result<Vec<(Value, Shown, Vec<&'static str>)>> {
    let world = &console.world;
    let plan = "## Move the prices\n\n1. Add a column `currency`.\n2. Copy in batches of 10,000 rows.\n";
    let written = Step::from_fn(move |request| {
        Step::tool("Write", json!({"file_path": plan_file(request), "content": plan}))
    });
    let submit = Step::text_and_tools(
        "This order loses nothing.",
        vec![Tool::new("ExitPlanMode", json!({"plan": plan}))],
    );
    world.model.script("PLAN: Release the shop", vec![written, submit, Step::text("Done.")]);
    let option = |label: &str, about: &str| json!({"label": label, "description": about});
    let question = |text: &str, several: bool| {
        json!({"question": text, "header": "Release", "multiSelect": several, "options": [
        option("Tag", "A tag in git"), option("Branch", "A branch that stays"), option("Both", "One of each")]})
    };
    let ask = |text: &str, several: bool| {
        Step::text_and_tools(
            "This is yours to decide.",
            vec![Tool::new("AskUserQuestion", json!({"questions": [question(text, several)]}))],
        )
    };
    world.model.script("ASK-ONE: Release the shop", vec![ask("How is a release marked?", false)]);
    world.model.script("ASK-MANY: Release the shop", vec![ask("Who has to approve it?", true)]);
    let touch = |name: &str| {
        let call = json!({"command": format!("touch {name}"), "description": "Mark it"});
        Step::text_and_tools("I mark the release.", vec![Tool::new("Bash", call)])
    };
    world
        .model
        .script("BUDGET: Release the shop", vec![touch("first"), touch("second"), Step::text("Done.")]);

    let options = ["Tag A tag in git", "Branch A branch that stays", "Both One of each", "Other answer"];
    let of_kind =
        |kind, action: &str, input: &[&str], buttons| Shown { buttons, ..shown(kind, action, &[], input) };
    let with = |first: &'static str| [[first].as_slice(), options.as_slice()].concat();
    let kinds = [
        (
            "planner",
            "PLAN: Release the shop",
            json!({"permission_mode": "plan"}),
            of_kind(
                "plan",
                "Plan: Move the prices",
                &["Add a column currency", "Copy in batches of 10,000 rows."],
                PLAN,
            ),
            "This order loses nothing.",
        ),
        (
            "chooser",
            "ASK-ONE: Release the shop",
            json!({}),
            of_kind(
                "question with one answer",
                "Question: How is a release marked?",
                &with("How is a release marked?"),
                QUESTION,
            ),
            "This is yours to decide.",
        ),
        (
            "collector",
            "ASK-MANY: Release the shop",
            json!({}),
            of_kind(
                "question with several answers",
                "Question: Who has to approve it?",
                &with("(choose one or more)"),
                QUESTION,
            ),
            "This is yours to decide.",
        ),
        (
            "spender",
            "BUDGET: Release the shop",
            json!({"budget": {"tool_calls": 1}, "policy": "allow_all"}),
            of_kind(
                "budget",
                "Grant a larger budget: 1 of 1 tool calls used",
                &["wanted_by spender", "wanted_for Bash"],
                BUDGET,
            ),
            "the tool_calls budget is exhausted",
        ),
    ];
    let mut open = Vec::new();
    for (name, prompt, mut given, shown, says) in kinds {
        given["working_dir"] = json!(shop);
        let session = world.create(name, given).await?;
        world.chat(&session, prompt).await?;
        open.push((world.asked(&session).await?.1, shown, vec!["shop", name, says, prompt]));
    }
    Ok(open)
}

/// The call of a grandchild: the path names every agent above it.
async fn grandchild_asks(
    console: &ConsolePage,
    shop: &Path,
) -> anyhow::Result<(Value, Shown, Vec<&'static str>)> {
    let world = &console.world;
    for prompt in ["LEAD: Release the shop", "MIDDLE: Release the shop"] {
        world.model.script(prompt, vec![Step::text("I wait.")]);
    }
    let Kind { says, tool, input, shown } = bash(
        "grandchild",
        "Old files confuse the build.",
        "rm -r dist",
        "Delete the output",
        &["Recursive delete"],
    );
    world
        .model
        .script("LEAF: Release the shop", vec![Step::text_and_tools(says, vec![Tool::new(tool, input)])]);
    let lead = world.create("lead", json!({"working_dir": shop, "hub_tools": true})).await?;
    world.chat(&lead, "LEAD: Release the shop").await?;
    world.ended(&lead).await?;
    let mut above = lead;
    for (name, prompt) in [("middle", "MIDDLE: Release the shop"), ("leaf", "LEAF: Release the shop")] {
        let given =
            json!({"name": name, "working_dir": shop, "hub_tools": name == "middle", "prompt": prompt});
        let door = world.door_of(&above).await?;
        above = text(&door.call("claudecode.create", given).await?["id"]);
        if name == "middle" {
            world.ended(&above).await?;
        }
    }
    let (_, approval) = world.asked(&above).await?;
    Ok((approval, shown, vec!["shop", "lead›middle›leaf", says, "LEAF: Release the shop"]))
}

#[tokio::test]
async fn everything_needed_to_decide_is_visible_for_each_kind_of_approval() -> anyhow::Result<()> {
    let test = "everything_needed_to_decide_is_visible_for_each_kind_of_approval";
    let Some(world) = Setup::cli("2.1.325", Channel::Control, DoorKind::Rpc).world(test).await? else {
        return Ok(());
    };
    let Some(console) = ConsolePage::open(world, test, Look::LAPTOP).await? else { return Ok(()) };
    let shop: PathBuf = console.world.file("shop");
    create_files(&shop)?;
    // These stay open, so that the list is mixed while the agent with many calls works.
    let mut open = others_ask(&console, &shop).await?;
    open.push(grandchild_asks(&console, &shop).await?);
    let mut kinds = one_agent_asks(&console, &shop).await?;
    for (approval, expected, common) in &open {
        let screen = selected(&console, approval).await?;
        shows(&screen, expected, common)?;
        kinds += 1;
    }
    assert_eq!(kinds, 20);
    console.window.close().await
}

/// Calls that the pinned versions of Claude Code do not make, or whose input is longer than a screen.
#[tokio::test]
async fn several_changes_of_a_file_and_a_long_command_can_be_judged_at_a_glance() -> anyhow::Result<()> {
    let test = "several_changes_of_a_file_and_a_long_command_can_be_judged_at_a_glance";
    let Some(world) = Setup::scripted().world(test).await? else { return Ok(()) };
    let Some(console) = ConsolePage::open(world, test, Look::LAPTOP).await? else { return Ok(()) };
    let world = &console.world;
    let shop = world.file("shop");
    create_files(&shop)?;
    let edits = json!([
        {"old_string": "// line 7\n", "new_string": "// seventh line\n"},
        {"old_string": "text.split('\\n')", "new_string": "text.split(/\\r?\\n/)"},
    ]);
    let body: String = (1..=300).map(|line| format!("echo step {line}\n")).collect();
    let long = format!("cat > /tmp/steps <<'EOF'\n{body}EOF\nrm -rf dist");
    let steps = json!([
        {"say": "Two lines are wrong."},
        {"tool": "MultiEdit", "input": {"file_path": shop.join("src/parser.js"), "edits": edits}},
        {"say": "All steps at once."},
        {"tool": "Bash", "input": {"command": long, "description": "Write the steps"}},
    ]);
    let session = world.create("releaser", json!({"working_dir": shop})).await?;
    world.chat(&session, &script(&steps)).await?;

    let (_, approval) = world.asked(&session).await?;
    let expected = shown(
        "several changes",
        "Edit src/parser.js, lines 7–42",
        &[],
        &[
            "Change 1 of 2",
            "7 − // line 7",
            "7 + // seventh line",
            "Change 2 of 2",
            "42 − const lines = text.split('\\n');",
            "42 + const lines = text.split(/\\r?\\n/);",
        ],
    );
    shows(&selected(&console, &approval).await?, &expected, &["shop", "releaser", "Two lines are wrong."])?;
    world.respond(&approval, json!({"approve": false})).await?;

    // The first screen shows the beginning, the risks, how much is hidden, and how to see it. The key shows the rest.
    let (_, approval) = world.asked(&session).await?;
    let expected = Shown {
        risks: vec!["Recursive delete", "rm -rf dist", "Outside the project"],
        ..shown(
            "long command",
            "Run cat > /tmp/steps",
            &[],
            &[
                "Write the steps",
                "cat > /tmp/steps",
                "echo step 1 echo step 2",
                "Not shown in full",
                "Show all m",
            ],
        )
    };
    shows(&selected(&console, &approval).await?, &expected, &["shop", "releaser", "All steps at once."])?;
    console.press(&["m"]).await?;
    let end = "for (let steps = 0; steps < 100 && await page.locator('article[data-shown=shown]').count() === 0; steps++) { \
            await page.keyboard.press('m'); await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))); } \
        await page.locator('article[data-shown=shown]').waitFor(); return readable(page, 'article')";
    let screen = text(&console.run(end, json!({})).await?);
    assert!(screen.contains("echo step 300 EOF rm -rf dist"), "{screen}");
    console.window.close().await
}
