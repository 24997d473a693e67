//! The MCP server of [`plexus_testkit::tool_server`] as a program.

fn main() -> anyhow::Result<()> {
    plexus_testkit::tool_server::run()
}
