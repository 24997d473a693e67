//! The sources of the console: types and components (svelte-check), unit tests (vitest), format (Prettier) and lint rules (ESLint).
//! A search of the sources shows that no text can become markup.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use plexus_e2e::cached;
use plexus_e2e::mcp_tools::McpTools;
use tokio::process::Command;

const UI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../ui");

/// The files that the checks read.
const SOURCES: [&str; 9] = [
    "src",
    "index.html",
    "package.json",
    "tsconfig.json",
    "svelte.config.js",
    "vite.config.ts",
    "eslint.config.js",
    ".prettierrc.json",
    ".prettierignore",
];

const LOCK_FILE: &str = include_str!("../../../ui/package-lock.json");

#[tokio::test]
async fn the_console_passes_its_own_checks() -> anyhow::Result<()> {
    let modules = cached::modules("PLEXUS_UI_CACHE", "ui", LOCK_FILE);
    let (Some(modules), Some(tools)) = (modules, McpTools::find()) else {
        plexus_testkit::skip("the_console_passes_its_own_checks", "packages of the console");
        return Ok(());
    };
    let dir = tempfile::tempdir()?;
    for name in SOURCES {
        copy(&Path::new(UI).join(name), &dir.path().join(name))?;
    }
    std::os::unix::fs::symlink(modules, dir.path().join("node_modules"))?;
    for check in [
        &["node_modules/svelte-check/bin/svelte-check", "--fail-on-warnings"][..],
        &["node_modules/vitest/vitest.mjs", "run"],
        &["node_modules/prettier/bin/prettier.cjs", "--check", "."],
        &["node_modules/eslint/bin/eslint.js", "--max-warnings", "0", "."],
    ] {
        let mut node = Command::new(tools.node());
        node.args(check).current_dir(dir.path()).env_clear().env("HOME", dir.path());
        let output = node.env("PATH", "/usr/bin:/bin").kill_on_drop(true).output().await.context("node")?;
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
    }
    Ok(())
}

#[test]
fn no_source_of_the_console_inserts_text_as_markup() -> anyhow::Result<()> {
    let mut sources = Vec::new();
    list(&Path::new(UI).join("src"), &mut sources)?;
    assert!(sources.len() > 50, "{sources:?}");
    for path in sources {
        let text = fs::read_to_string(&path)?;
        for way in
            ["{@html", "innerHTML", "outerHTML", "insertAdjacentHTML", "srcdoc", "document.write", "eval("]
        {
            assert!(!text.contains(way), "{way} in {}", path.display());
        }
    }
    Ok(())
}

fn list(folder: &Path, into: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, into)?;
        } else {
            into.push(path);
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    if !from.is_dir() {
        fs::copy(from, to)?;
        return Ok(());
    }
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
