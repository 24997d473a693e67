//! Writes the console's wire types to the file that is given as the only argument. `cargo xtask wire` runs it.

use std::{env, fs};

use anyhow::Context as _;

fn main() -> anyhow::Result<()> {
    let path = env::args_os().nth(1).context("usage: wire-types FILE")?;
    fs::write(&path, wire_types::typescript()).with_context(|| path.display().to_string())
}
