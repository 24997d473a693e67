//! A hub in typical use: a tree of working agents, an open edit, question and plan, a conversation with a fork, rules, budgets and audit
//! entries. The tests show every view with this content.

use std::path::Path;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use git2::{IndexAddOption, Repository, Signature};
use plexus_e2e::{World, text};
use plexus_testkit::model::{Step, Tool};
use plexus_testkit::rpc::Door as _;
use serde_json::{Value, json};

const TOTAL: &str = "import { rate } from './tax.js';\n\n\
    /** The sum a customer pays, in cents. */\n\
    export function total(items, discount) {\n  \
      let sum = 0;\n  \
      for (const item of items) {\n    \
        sum += item.price * item.count;\n  \
      }\n  \
      const taxed = sum * (1 + rate);\n  \
      return Math.round(taxed - discount);\n\
    }\n";

const PLAN: &str = "## Move the orders to the new table\n\n\
    1. Add `orders_v2` with the columns of `orders` and a `currency`.\n\
    2. Copy in batches of **10,000** rows, newest first.\n\
    3. Write to both until the counts agree for a day.\n\
    4. Switch reading over, then drop the old table.\n\n\
    | step | can be undone |\n|---|---|\n| 1 to 3 | yes |\n| 4 | only from a backup |\n\n\
    > Nothing is deleted before step 4. See [the runbook](https://example.com/runbook).\n";

/// A page of the project, which the agent moves.
const DISCOUNTS: &str = "# Discounts\n\n\
    A discount is an amount in cents.\n\
    It applies to the whole order.\n\
    Tax is due on the full price.\n\
    A discount never makes an order negative.\n\n\
    | customer | discount |\n|---|---|\n| new | 500 |\n| returning | 1000 |\n";

/// A small picture: a chart with six bars.
const CHART: &str = "iVBORw0KGgoAAAANSUhEUgAAAPAAAAB4CAIAAABD1OhwAAABqElEQVR42u3SOw2AMABAwZrABQ6wggJmRjYssTDDghM0NAx4KJ9Ae8lT8HIhxkPKpmCBgJaAloCWgBbQEtAS0BLQEtACWioY9DQvDgpoCWgJaAENtICWgFZ+bWNIDmgBDbSABlpAC2igBTTQAhpoAQ30z2v6PTmgBTTQAhpoAQ000EADDTTQAhpoAQ20gAYaaKCBBhpoAQ10UVVdnRzQQAMNNNBAAy2ggQYaaKCBBhpooIEGGmigBTTQQAMNNNBAAw000EADDbSABvrzE4EGGmiggQYaaKCBBhpooIEGGmiggQYaaKCBBvraxKFdkwMaaKCBBhpooIEGGmiggQYaaKCBBhpooIEGGmiggQYa6BJB5zERaKCBBhpooIEGGmiggQYaaKCBBhpooIEGGmiggQYaaKCBBhpooIEGGmiggQYaaKCBBhpooIEGGmiggQYaaKCBBhpooIEGGmiggQYaaKCBBhpooIEGGmiggQYaaKCBBhpooIEGGmigCwQtvdyDoKWvBbSAloCWgJaAFtAS0BLQEtAS0AJaAloCWgJaAlpAS0BLQEv3dgKtsefLDDdErwAAAABJRU5ErkJggg==";

/// The sessions and approvals of the scene.
pub(crate) struct Scene {
    pub(crate) worker: String,
    pub(crate) talker: String,
    pub(crate) edit: String,
    pub(crate) question: String,
    pub(crate) plan: String,
}

/// Creates the scene with a real `claude`.
pub(crate) async fn set(world: &World) -> anyhow::Result<Scene> {
    for (file, content) in
        [("total.js", TOTAL), ("tax.js", "export const rate = 0.19;\n"), ("discounts.md", DISCOUNTS)]
    {
        std::fs::write(world.file(file), content)?;
    }
    commit_all(&world.work)?;
    for (effect, rule) in [
        ("allow", "Bash(npm test:*)"),
        ("allow", "Bash(git status)"),
        ("ask", "WebFetch"),
        ("deny", "Read(//etc/**)"),
    ] {
        world.call("policy.add", json!({"rules": [{"effect": effect, "rule": rule}]})).await?;
    }
    let (worker, edit) = works(world).await?;
    let talker = talks(world).await?;
    Ok(Scene { worker, talker, edit, question: asks(world).await?, plan: plans(world).await? })
}

/// Creates a repository in the directory and commits all its files.
pub(crate) fn commit_all(folder: &Path) -> anyhow::Result<()> {
    let repo = Repository::init(folder)?;
    let mut index = repo.index()?;
    index.add_all(["*"], IndexAddOption::DEFAULT, None)?;
    let tree = repo.find_tree(index.write_tree()?)?;
    index.write()?;
    let me = Signature::now("Ada", "ada@example.com")?;
    repo.commit(Some("HEAD"), &me, &me, "Begin", &tree, &[])?;
    Ok(())
}

/// An agent in its own worktree, with two children. It has made one edit and needs approval for another.
async fn works(world: &World) -> anyhow::Result<(String, String)> {
    let prompt = "The total is wrong when there is a discount: tax is taken on the full price. Find out why and mend it.";
    let session = world
        .create(
            "checkout-fix",
            json!({"isolation": "worktree", "hub_tools": true, "budget": {"cost_usd": 5.0, "tool_calls": 200, "children": 4}}),
        )
        .await?;
    let got = world.call("claudecode.get", json!({"session_id": session})).await?;
    let folder = text(&got["session"]["worktree"]["path"]);
    let file = Path::new(&folder).join("total.js");
    // For the review: a file that was moved and changed, and a new picture.
    let docs = Path::new(&folder).join("docs");
    std::fs::create_dir(&docs)?;
    std::fs::remove_file(Path::new(&folder).join("discounts.md"))?;
    std::fs::write(
        docs.join("discounts.md"),
        DISCOUNTS.replace("on the full price", "on the price after the discount"),
    )?;
    std::fs::write(docs.join("orders.png"), STANDARD.decode(CHART)?)?;
    let edit = |old: &str, new: &str| {
        Tool::new("Edit", json!({"file_path": file, "old_string": old, "new_string": new}))
    };
    let first = edit(
        "  const taxed = sum * (1 + rate);\n  return Math.round(taxed - discount);\n",
        "  const due = Math.max(0, sum - discount);\n  return Math.round(due * (1 + rate));\n",
    );
    let second = edit(
        "/** The sum a customer pays, in cents. */\nexport function total(items, discount) {\n  let sum = 0;\n  for (const item of items) {\n    sum += item.price * item.count;\n  }\n",
        "/** The sum a customer pays, in cents: tax is due on what is left after the discount. */\nexport function total(items, discount = 0) {\n  const sum = items.reduce((all, item) => all + item.price * item.count, 0);\n",
    );
    let steps = vec![
        Step::text_and_tools(
            "I will look at how the total is made.",
            vec![Tool::new("Read", json!({"file_path": file}))],
        ),
        Step::text_and_tools(
            "Tax is taken before the discount. It has to be the other way round.",
            vec![first],
        ),
        Step::text_and_tools(
            "That mends it. The loop can go while we are here, and a missing discount is **none**.",
            vec![second],
        ),
        Step::text("Done."),
    ];
    world.model.script("The total is wrong", steps);
    world.chat(&session, prompt).await?;
    let (_, approval) = world.asked(&session).await?;
    let door = world.door_of(&session).await?;
    for name in ["checkout-tests", "checkout-docs"] {
        let below =
            json!({"name": name, "working_dir": folder, "budget": {"cost_usd": 1.0, "tool_calls": 50}});
        door.call("claudecode.create", below).await?;
    }
    world.respond(&approval, json!({"approve": true})).await?;
    let (_, next) = world.asked(&session).await?;
    Ok((session, text(&next["id"])))
}

/// A conversation with three turns and a fork after the second.
async fn talks(world: &World) -> anyhow::Result<String> {
    let session = world.create("release-notes", json!({})).await?;
    for (prompt, answer) in [
        ("What changed since 1.4?", "Three things: discounts, the new currency field, and a faster search."),
        (
            "Write the notes for customers.",
            "**1.5**\n\n- Discounts are taken off before tax\n- Prices in your own currency\n- Search answers at once",
        ),
        ("Shorter, please.", "**1.5**: fair discounts, your currency, faster search."),
    ] {
        world.model.script(prompt, vec![Step::text(answer)]);
        world.chat(&session, prompt).await?;
        world.ended(&session).await?;
    }
    let forked = json!({"name": "release-notes", "new_name": "release-mail", "at": 2});
    world.call("claudecode.fork", forked).await?;
    world.model.script("As a mail", vec![Step::text("Dear all, 1.5 is here.")]);
    let fork = world.call("claudecode.get", json!({"name": "release-mail"})).await?;
    let fork = text(&fork["session"]["id"]);
    world.chat(&fork, "As a mail, in a warmer tone.").await?;
    world.ended(&fork).await?;
    Ok(session)
}

async fn asks(world: &World) -> anyhow::Result<String> {
    let option = |label: &str, description: &str| json!({"label": label, "description": description});
    let questions = json!([
        {"question": "Which format should the reference have?", "header": "Format", "multiSelect": false, "options": [
            option("OpenAPI", "One file that tools can read"), option("Markdown", "Pages that people like to read")]},
        {"question": "Which parts come first?", "header": "Order", "multiSelect": true, "options": [
            option("Orders", "Most used"), option("Customers", "Most asked about"), option("Payments", "Most dangerous")]},
    ]);
    let steps = vec![Step::tool("AskUserQuestion", json!({"questions": questions})), Step::text("Thanks.")];
    world.model.script("Document the API", steps);
    let session = world.create("api-docs", json!({})).await?;
    world.chat(&session, "Document the API. Ask where you are not sure.").await?;
    Ok(text(&world.asked(&session).await?.1["id"]))
}

async fn plans(world: &World) -> anyhow::Result<String> {
    let written = Step::from_fn(|request: &Value| {
        Step::tool(
            "Write",
            json!({"file_path": crate::console::approval_kinds::plan_file(request), "content": PLAN}),
        )
    });
    world.model.script(
        "Move the orders",
        vec![written, Step::tool("ExitPlanMode", json!({"plan": PLAN})), Step::text("Done.")],
    );
    let session = world.create("orders-migration", json!({"permission_mode": "plan"})).await?;
    world.chat(&session, "Move the orders to a table with a currency. Plan it first.").await?;
    let (_, approval) = world.asked(&session).await.context("the plan")?;
    Ok(text(&approval["id"]))
}
