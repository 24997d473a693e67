//! `plexus-conformance DATA_DIR`: a hub whose `/mcp` serves what the MCP conformance suite wants to find, instead of
//! the hub's own tools. Everything in front of the tools is the real thing: the listener, the checks of Host, Origin
//! and token, the permit's handler, rmcp's configuration. It says where it listens, as `plexus serve` does, and goes
//! on until its stdin ends.
#![expect(clippy::print_stdout, reason = "whoever started it reads where it listens")]

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
    // Whoever started it may be killed: then its end of stdin is closed for it.
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
