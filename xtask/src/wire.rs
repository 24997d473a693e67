//! `cargo xtask wire`: generates the console's TypeScript types from the schemas of the wire. The generator
//! is the crate `wire-types`; its test fails while the checked-in file is out of date.

use clap::Args;

use crate::workspace::{Workspace, run as run_command};

/// Generate ui/src/wire.ts, the console's types, from the schemas of the wire
#[derive(Debug, Args)]
pub struct WireArgs {}

/// Runs the command.
pub fn run(workspace: &Workspace, WireArgs {}: &WireArgs) -> anyhow::Result<()> {
    let file = workspace.root().join("ui/src/wire.ts");
    run_command(workspace.cargo().args(["run", "--quiet", "--package", "wire-types", "--"]).arg(file))
}
