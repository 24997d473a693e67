//! `cargo xtask save-data-dir`: saves what a hub of this version leaves behind, for the tests of later ones. What is in
//! it is `plexus_e2e::saved`'s to say.

use std::path::PathBuf;

use clap::Args;

use crate::workspace::{Workspace, run as run_command};

/// Save a data directory as a hub of this version leaves it
///
/// To be done once for every release that changed what is in one; see tests/fixtures/README.md.
#[derive(Debug, Args)]
pub struct SaveDataDirArgs {
    /// A folder that is not there yet, such as tests/fixtures/data-dir-v2
    pub to: PathBuf,
}

/// Does the chore.
pub fn run(workspace: &Workspace, args: &SaveDataDirArgs) -> anyhow::Result<()> {
    let packages = ["-p", "plexus", "-p", "plexus-testkit", "-p", "plexus-e2e"];
    run_command(workspace.cargo().arg("build").args(packages).arg("--bins"))?;
    let program = ["run", "-p", "plexus-e2e", "--bin", "plexus-save-data-dir", "--"];
    run_command(workspace.cargo().args(program).arg(&args.to))
}
