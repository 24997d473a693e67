//! The commands in README.md and docs/*.md. One test runs every shell block as written, in a real shell at a real terminal, with a real
//! Claude Code and the scripted model. Another checks that every verb and flag in running text exists. `tour` types the tour.
//!
//! A line that cannot run in a test has a marker before its block: `<!-- not run: COMMAND: REASON -->`, with a known reason. `*`
//! means every line of the block. Readers of the page do not see it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, bail, ensure};
use plexus_e2e::Setup;
use plexus_testkit::model::{ScriptedModel, Step};
use plexus_testkit::pty::Pty;
use plexus_testkit::{binaries, clean_env, executable, require_claude};
use serde_json::{Value, json};

/// The version of Claude Code behind the commands.
const CLI: &str = "2.1.325";

/// Why a command cannot run in a test.
const REASONS: [&str; 3] = ["builds Plexus", "needs another machine", "is a file, not a command"];

/// Commands that need a key to end: the command, the text that it shows when it is ready, and the keys.
const INTERACTIVE: [(&str, &str, &str); 1] = [("plexus watch", "\u{1b}[?1049h", "q")];

/// A fenced block of a page.
#[derive(Debug)]
struct Block {
    /// The line of its first content line, from 1.
    line: usize,
    language: String,
    /// The commands that do not run, from the marker before it.
    not_run: Vec<String>,
    lines: Vec<String>,
}

/// The pages: their names and their texts.
fn pages() -> anyhow::Result<Vec<(String, String)>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = vec![root.join("README.md")];
    for entry in std::fs::read_dir(root.join("docs"))? {
        files.push(entry?.path());
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
    files.sort();
    let named = |file: PathBuf| {
        let name = file.file_name().context("a name")?.to_string_lossy().into_owned();
        Ok((name, std::fs::read_to_string(&file)?))
    };
    files.into_iter().map(named).collect()
}

/// The fenced blocks of a page. Fails on a marker that is unknown or has no block.
fn blocks(page: &str, text: &str) -> anyhow::Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut not_run: Vec<String> = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in text.lines().enumerate().map(|(i, line)| (i + 1, line)) {
        if let Some(block) = &mut open {
            if line.trim() == "```" {
                blocks.extend(open.take());
            } else {
                block.lines.push(line.to_owned());
            }
            continue;
        }
        if let Some(language) = line.trim().strip_prefix("```") {
            let not_run = std::mem::take(&mut not_run);
            let language = language.to_owned();
            open = Some(Block { line: number + 1, language, not_run, lines: Vec::new() });
        } else if let Some(marker) = line.trim().strip_prefix("<!-- not run: ") {
            let marker = marker.strip_suffix(" -->").with_context(|| format!("{page}:{number}: no `-->`"))?;
            let (command, reason) =
                marker.rsplit_once(": ").with_context(|| format!("{page}:{number}: no reason"))?;
            ensure!(REASONS.contains(&reason), "{page}:{number}: unknown reason `{reason}`");
            not_run.push(command.to_owned());
        } else {
            ensure!(not_run.is_empty(), "{page}:{number}: no block follows the marker");
        }
    }
    ensure!(open.is_none() && not_run.is_empty(), "{page}: a block does not end, or a marker has no block");
    Ok(blocks)
}

/// The commands of a shell block that run, with their lines in the page. A line that ends with `\` continues.
fn commands(page: &str, block: &Block) -> anyhow::Result<Vec<(usize, String)>> {
    let mut commands: Vec<(usize, String)> = Vec::new();
    let mut continued = false;
    for (i, line) in block.lines.iter().enumerate() {
        match commands.last_mut() {
            Some((_, command)) if continued => {
                command.push('\n');
                command.push_str(line);
            }
            _ => commands.push((block.line + i, line.clone())),
        }
        continued = line.ends_with('\\');
    }
    for skipped in &block.not_run {
        let before = commands.len();
        commands.retain(|(_, command)| skipped != "*" && !command.starts_with(skipped.as_str()));
        ensure!(commands.len() < before, "{page}:{}: no command starts with `{skipped}`", block.line);
    }
    commands.retain(|(_, command)| !command.trim().is_empty());
    Ok(commands)
}

/// A shell in a home directory of its own.
struct Shell {
    terminal: Pty,
    env: Vec<(String, String)>,
    work: PathBuf,
}

impl Shell {
    async fn start(dir: &Path, claude: &Path, model: &ScriptedModel) -> anyhow::Result<Self> {
        let [home, work, bin] = ["home", "work", "bin"].map(|name| dir.join(name));
        for folder in [&home, &work, &bin] {
            std::fs::create_dir(folder)?;
        }
        std::os::unix::fs::symlink(binaries::plexus()?, bin.join("plexus"))?;
        std::os::unix::fs::symlink(claude, bin.join("claude"))?;
        // `plexus console` opens the page with this program.
        executable::write(&bin.join("xdg-open"), "#!/bin/sh\ntest -e \"$1\"\n")?;
        let mut env = clean_env(&home, &model.url());
        env.retain(|(name, _)| name != "PATH");
        let more = [
            ("PATH", format!("{}:{}", bin.display(), std::env::var("PATH")?)),
            ("TERM", "xterm".to_owned()),
            ("PS1", "exit:$?:# ".to_owned()),
            ("PLEXUS_LISTEN", "127.0.0.1:0".to_owned()),
        ];
        env.extend(more.map(|(name, value)| (name.to_owned(), value)));
        let mut terminal = Pty::start("/bin/bash".as_ref(), &["--norc", "--noprofile"], &work, &env)?;
        terminal.expect(":# ").await?;
        Ok(Self { terminal, env, work })
    }

    /// Types a command and waits for its end. Fails if the command fails or prints a JSON-RPC error.
    async fn run(&mut self, command: &str) -> anyhow::Result<()> {
        let before = self.terminal.shown().len();
        self.terminal.press(&format!("{command}\n"))?;
        let typed = command.split('#').next().unwrap_or_default().trim();
        if let Some((_, ready, keys)) = INTERACTIVE.iter().find(|(name, ..)| *name == typed) {
            self.terminal.expect(ready).await?;
            self.terminal.press(keys)?;
        }
        self.terminal.expect("exit:").await?;
        self.terminal.expect(":# ").await?;
        let shown = self.terminal.shown();
        let shown = shown.get(before..).unwrap_or_default();
        let code = shown.rsplit("exit:").next().and_then(|rest| rest.split(':').next());
        ensure!(code == Some("0"), "exit code {code:?}:\n{shown}");
        ensure!(!shown.contains("\"error\":{"), "the hub refused:\n{shown}");
        Ok(())
    }

    /// Stops the hub that the commands started.
    async fn stop(self) -> anyhow::Result<()> {
        let mut down = tokio::process::Command::new(binaries::plexus()?);
        down.arg("down").env_clear().envs(self.env).current_dir(&self.work);
        down.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().await?;
        Ok(())
    }
}

#[tokio::test]
async fn every_shell_block_works_as_written() -> anyhow::Result<()> {
    let Some(claude) = require_claude(CLI, "every_shell_block_works_as_written") else { return Ok(()) };
    let model = ScriptedModel::start().await?;
    model.script("Fix the failing test", vec![Step::text("It passes.")]);
    let mut ran = 0;
    for (page, text) in pages()? {
        let mut found = Vec::new();
        for block in blocks(&page, &text)? {
            match block.language.as_str() {
                "sh" => found.extend(commands(&page, &block)?),
                // The tour has a test of its own, which also compares the output.
                "console" => ensure!(page == "tour.md", "{page}:{}: use `sh`", block.line),
                "json" => {
                    let parsed = serde_json::from_str::<Value>(&block.lines.join("\n"));
                    parsed.with_context(|| format!("{page}:{}", block.line))?;
                }
                _ => {
                    let typed = block.lines.iter().find(|line| line.starts_with("plexus "));
                    ensure!(typed.is_none(), "{page}:{}: mark the block as `sh`", block.line);
                }
            }
        }
        if found.is_empty() {
            continue;
        }
        let dir = tempfile::tempdir()?;
        let mut shell = Shell::start(dir.path(), &claude, &model).await?;
        let mut outcome = Ok(());
        for (line, command) in found {
            outcome = shell.run(&command).await.with_context(|| format!("{page}:{line}: {command}"));
            ran += 1;
            if outcome.is_err() {
                break;
            }
        }
        shell.stop().await?;
        outcome?;
    }
    ensure!(ran >= 10, "only {ran} commands were found");
    Ok(())
}

#[tokio::test]
async fn the_hub_accepts_the_documented_rules_and_servers() -> anyhow::Result<()> {
    let world =
        Setup::scripted().world("documented").await?.context("the scripted agent is always available")?;
    let pages: BTreeMap<String, String> = pages()?.into_iter().collect();
    let example = |page: &str| -> anyhow::Result<Value> {
        let blocks = blocks(page, pages.get(page).context("the page")?)?;
        let block = blocks.iter().find(|block| block.language == "json").context("an example")?;
        Ok(serde_json::from_str(&block.lines.join("\n"))?)
    };
    world.create("documented", json!({"mcp_servers": example("loading.md")?})).await?;
    world.call("policy.add", json!({"rules": [example("policy.md")?]})).await?;
    Ok(())
}

/// The commands in running text: `` `plexus …` ``, without line breaks.
fn spans(text: &str) -> Vec<String> {
    let mut spans = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let quoted = line.split('`').skip(1).step_by(2);
            spans.extend(quoted.filter(|span| span.starts_with("plexus ")).map(str::to_owned));
        }
    }
    spans
}

#[tokio::test]
async fn every_verb_and_flag_in_the_text_exists() -> anyhow::Result<()> {
    let world =
        Setup::scripted().world("documented").await?.context("the scripted agent is always available")?;
    let mut helps: BTreeMap<String, String> = BTreeMap::new();
    let mut checked = 0;
    for (page, text) in pages()? {
        for span in spans(&text) {
            let words: Vec<&str> = span
                .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_')))
                .skip(1)
                .collect();
            let verb =
                words.iter().take(2).take_while(|word| is_name(word)).copied().collect::<Vec<_>>().join(" ");
            if verb.is_empty() {
                continue;
            }
            let help = match helps.get(&verb) {
                Some(help) => help.clone(),
                None => {
                    let mut command = tokio::process::Command::new(binaries::plexus()?);
                    command.args(verb.split(' ')).arg("--help").env_clear().env("HOME", &world.home);
                    command.env("PLEXUS_DATA_DIR", world.hub.data_dir()).stdin(Stdio::null());
                    let output = command.output().await?;
                    if !output.status.success() {
                        bail!("{page}: `{span}`: {}", String::from_utf8_lossy(&output.stderr));
                    }
                    let help = String::from_utf8_lossy(&output.stdout).into_owned();
                    helps.insert(verb.clone(), help.clone());
                    help
                }
            };
            let known: Vec<&str> =
                help.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))).collect();
            for flag in words.iter().filter(|word| word.starts_with('-') && word.len() > 1) {
                ensure!(known.contains(flag), "{page}: `{span}`: `plexus {verb}` has no {flag}\n{help}");
            }
            checked += 1;
        }
    }
    ensure!(checked >= 50, "only {checked} commands were found");
    Ok(())
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
        && word.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '-' | '_'))
}

#[test]
fn a_marker_needs_a_known_reason_and_a_command() {
    let page = |marker: &str| format!("{marker}\n```sh\ncargo build\nplexus ls \\\n  -w\n```\n");
    let good = blocks("p", &page("<!-- not run: cargo build: builds Plexus -->")).unwrap();
    assert_eq!(commands("p", &good[0]).unwrap(), [(4, "plexus ls \\\n  -w".to_owned())]);
    assert!(blocks("p", &page("<!-- not run: cargo build: too slow -->")).is_err());
    assert!(blocks("p", "<!-- not run: cargo build: builds Plexus -->\n\ntext").is_err());
    let other = blocks("p", &page("<!-- not run: npm: builds Plexus -->")).unwrap();
    assert!(commands("p", &other[0]).is_err());
}
