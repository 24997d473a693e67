//! `cargo xtask save-data-dir`: saves the data directory of a hub of this version, for the tests of later
//! versions. `plexus_e2e::saved_data_dir` defines its contents.

use std::path::PathBuf;

use clap::Args;

use crate::workspace::{Workspace, run as run_command};

/// Save the data directory of a hub of this version
///
/// Needed once for every release that changes the contents of a data directory; see tests/fixtures/README.md.
#[derive(Debug, Args)]
pub struct SaveDataDirArgs {
    /// A directory that does not exist yet, such as tests/fixtures/data-dir-v2
    pub to: PathBuf,
}

/// Runs the command.
pub fn run(workspace: &Workspace, args: &SaveDataDirArgs) -> anyhow::Result<()> {
    let packages = ["-p", "plexus", "-p", "plexus-testkit", "-p", "plexus-e2e"];
    run_command(workspace.cargo().arg("build").args(packages).arg("--bins"))?;
    let program = ["run", "-p", "plexus-e2e", "--bin", "plexus-save-data-dir", "--"];
    run_command(workspace.cargo().args(program).arg(&args.to))
}
