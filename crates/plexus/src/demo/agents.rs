//! The agents of `plexus demo --console`: names, prompts and scripts, and the small project they work on. The scripted agent
//! looks its script up by prompt, so the console shows prompts in plain English.

use std::io;
use std::path::Path;

use serde_json::{Value, json};

/// The files of the project.
const PROJECT: [(&str, &str); 3] = [
    ("README.md", include_str!("project/README.md")),
    ("price.py", include_str!("project/price.py")),
    ("run-tests.sh", include_str!("project/run-tests.sh")),
];

const TAX_BEFORE: &str = "    taxed = subtotal * (1 + TAX)\n    return round(taxed - discount)\n";
const TAX_AFTER: &str =
    "    discounted = max(0, subtotal - discount)\n    return round(discounted * (1 + TAX))\n";

const PLAN: &str = "## Move the orders to a table with a currency\n\n\
    1. Create `orders_v2` with the columns of `orders` and a `currency`.\n\
    2. Copy the rows in batches of **10,000**, newest first.\n\
    3. Write to both tables until their counts agree for a day.\n\
    4. Switch the readers over, then drop the old table.\n\n\
    | step | reversible |\n|---|---|\n| 1 to 3 | yes |\n| 4 | only from a backup |\n";

const MIGRATION: &str = "CREATE TABLE orders_v2 AS SELECT *, 'EUR' AS currency FROM orders WHERE false;\n";

/// One agent of the demo.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) name: &'static str,
    /// The agent that created it; `None` for the one that you started.
    pub(super) parent: Option<&'static str>,
    pub(super) permission_mode: &'static str,
    pub(super) prompt: &'static str,
    steps: fn(&Path) -> Value,
}

/// All agents, a parent before its children.
pub(super) const AGENTS: [Agent; 5] = [
    Agent {
        name: "release",
        parent: None,
        permission_mode: "default",
        prompt: "Get version 1.5 ready for release. Delegate the work, then run the tests.",
        steps: release,
    },
    Agent {
        name: "fix-discount",
        parent: Some("release"),
        permission_mode: "default",
        prompt: "With a discount, tax is still charged on the full price. Fix it.",
        steps: fix_discount,
    },
    Agent {
        name: "review-rounding",
        parent: Some("fix-discount"),
        permission_mode: "default",
        prompt: "Check how price.py rounds amounts. Do not change anything.",
        steps: review_rounding,
    },
    Agent {
        name: "migrate-orders",
        parent: Some("release"),
        permission_mode: "plan",
        prompt: "Move the orders to a table with a currency. Plan it first.",
        steps: migrate_orders,
    },
    Agent {
        name: "api-docs",
        parent: Some("release"),
        permission_mode: "default",
        prompt: "Document the API. Ask if you are unsure.",
        steps: api_docs,
    },
];

/// The script of the agent with this prompt.
pub(crate) fn script(prompt: &str, working_dir: &Path) -> Option<Value> {
    AGENTS.iter().find(|agent| agent.prompt == prompt).map(|agent| (agent.steps)(working_dir))
}

/// Writes the project into an empty directory.
pub(super) fn write_project(working_dir: &Path) -> io::Result<()> {
    PROJECT.iter().try_for_each(|(name, content)| std::fs::write(working_dir.join(name), content))
}

fn release(_: &Path) -> Value {
    json!([
        {"say": "I created three agents: `fix-discount`, `migrate-orders` and `api-docs`. The tests are next."},
        run_tests(),
        {"say": "I will run the tests again when the three agents have finished."},
    ])
}

fn fix_discount(working_dir: &Path) -> Value {
    let file = working_dir.join("price.py");
    json!([
        {"tool": "Read", "input": {"file_path": file}},
        {"say": "Tax is computed before the discount is subtracted. I will swap the two."},
        {
            "tool": "Edit", "stop_when_denied": true,
            "input": {"file_path": file, "old_string": TAX_BEFORE, "new_string": TAX_AFTER},
        },
        {"say": "Now the tests."},
        run_tests(),
        {"say": "Fixed: tax is charged on the discounted price."},
    ])
}

fn review_rounding(working_dir: &Path) -> Value {
    json!([
        {"tool": "Read", "input": {"file_path": working_dir.join("price.py")}},
        {"say": "Each total is rounded once, at the end. That is correct."},
    ])
}

fn migrate_orders(working_dir: &Path) -> Value {
    let file = working_dir.join("orders-v2.sql");
    json!([
        {"tool": "ExitPlanMode", "stop_when_denied": true, "input": {"plan": PLAN}},
        {"say": "Thank you. I will write the first step."},
        {"tool": "Write", "stop_when_denied": true, "input": {"file_path": file, "content": MIGRATION}},
        {"say": "Step 1 is in `orders-v2.sql`."},
    ])
}

fn api_docs(working_dir: &Path) -> Value {
    let option = |label: &str, description: &str| json!({"label": label, "description": description});
    let questions = json!([
        {"question": "Which format should the reference have?", "header": "Format", "multiSelect": false, "options": [
            option("OpenAPI", "One file that tools can read"), option("Markdown", "Pages that people can read")]},
        {"question": "Which parts come first?", "header": "Order", "multiSelect": true, "options": [
            option("Orders", "Used most"), option("Customers", "Most questions"), option("Payments", "Most risk")]},
    ]);
    let file = working_dir.join("API.md");
    json!([
        {"tool": "AskUserQuestion", "stop_when_denied": true, "input": {"questions": questions}},
        {"say": "Thank you. I will create the first page."},
        {"tool": "Write", "stop_when_denied": true, "input": {"file_path": file, "content": "# Shop API\n"}},
        {"say": "The first page is in `API.md`."},
    ])
}

fn run_tests() -> Value {
    json!({"tool": "Bash", "input": {"command": "sh run-tests.sh", "description": "Run the test suite"}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parent_precedes_its_children() {
        for (n, agent) in AGENTS.iter().enumerate() {
            let created: Vec<_> = AGENTS[..n].iter().map(|agent| agent.name).collect();
            assert!(agent.parent.is_none_or(|parent| created.contains(&parent)), "{agent:?}");
        }
    }

    #[test]
    fn every_prompt_has_its_own_script() {
        for agent in &AGENTS {
            let steps = (agent.steps)(Path::new("/work"));
            assert_eq!(script(agent.prompt, Path::new("/work")), Some(steps), "{agent:?}");
        }
        assert_eq!(script("something else", Path::new("/work")), None);
    }

    #[test]
    fn the_edit_matches_the_file() {
        let dir = tempfile::tempdir().unwrap();
        write_project(dir.path()).unwrap();
        let content = std::fs::read_to_string(dir.path().join("price.py")).unwrap();
        assert_eq!(content.matches(TAX_BEFORE).count(), 1);
    }
}
