//! `plexus-conformance DATA_DIR`: a hub whose `/mcp` serves the tools of the MCP conformance suite instead of its own. Everything in front
//! of the tools is the real code: the listener, the checks of Host, Origin and token, the permit handler, and rmcp's configuration. It
//! prints its address as `plexus serve` does, and runs until its stdin is closed.
#![expect(clippy::print_stdout, reason = "the test reads the address from stdout")]

mod fixtures;
mod rounds;
mod server;

use std::path::PathBuf;

use anyhow::Context as _;
use plexus_core::ShutDown;
use plexus_server::{Config, Serving};
use plexus_store::Durability;
use tokio::io::AsyncReadExt as _;

use crate::server::ConformanceServer;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let data_dir = std::env::args_os().nth(1).context("usage: plexus-conformance DATA_DIR")?;
    let server = ConformanceServer::new()?;
    let serving = Serving::start_with(config(data_dir.into())?, |_| server).await?;
    println!("plexus listening on {}", serving.url());
    // If the test is killed, the system closes stdin.
    tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    serving.stop(ShutDown::EndChildren).await;
    Ok(())
}

/// A hub that never starts a child.
fn config(data_dir: PathBuf) -> anyhow::Result<Config> {
    let mut config = Config::defaults(data_dir)?;
    config.listen = ([127, 0, 0, 1], 0).into();
    config.hub.clean_env = true;
    config.durability = Durability::Normal;
    Ok(config)
}
