//! `cargo xtask save-data-dir`: saves a data directory of this version for the tests of later ones.

use std::path::PathBuf;

use clap::Parser;

/// Save a data directory as a hub of this version leaves it
#[derive(Debug, Parser)]
#[command(name = "cargo xtask save-data-dir")]
struct Args {
    /// A directory that does not exist yet, for example tests/fixtures/data-dir-v2
    to: PathBuf,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    plexus_e2e::saved_data_dir::save(&Args::parse().to).await
}
