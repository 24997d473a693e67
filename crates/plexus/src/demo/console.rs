//! `plexus demo --console`: a small tree of scripted agents, and the web console on it. It prints a link, opens a browser if
//! one is available, and serves until it is interrupted. The agents and their scripts are in `agents`.

use std::collections::HashMap;
use std::env;
use std::io::IsTerminal as _;
use std::path::Path;

use plexus_protocol::Principal;
use plexus_protocol::claudecode::CreateResult;
use plexus_protocol::console::LinkResult;
use serde_json::json;

use super::agents::{AGENTS, Agent, write_project};
use super::{DemoHub, environment};
use crate::cli::DemoArgs;
use crate::error::{ExpectedError, system};
use crate::output::print;
use crate::typed::Typed;

/// The run of a parent in which its children are created.
const FIRST_RUN: u32 = 1;

/// How the link reaches a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Browser {
    /// The desktop opens it.
    Opened,
    /// You do.
    Yours,
}

impl Browser {
    fn chosen(args: &DemoArgs) -> Self {
        let has_display = cfg!(target_os = "macos")
            || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env::var_os(name).is_some());
        if has_display && !args.no_open { Self::Opened } else { Self::Yours }
    }
}

/// Starts the agents and shows the console until the caller drops this future.
pub(super) async fn show(hub: &DemoHub, args: &DemoArgs, work: &Path) -> Result<(), ExpectedError> {
    if let Some(why) = plexus_console::missing() {
        return Err(ExpectedError::Refused(format!("this program was built without the console: {why}")));
    }
    write_project(work).map_err(system)?;
    start(hub, work).await?;
    print(&format!(
        "{} scripted agents are running. They need no account, and nothing leaves this machine.\n",
        AGENTS.len()
    ));
    if Browser::chosen(args) == Browser::Opened {
        let LinkResult::Ok { file, .. } = hub.call("console.link", json!({})).await?;
        // The opener may run for as long as the browser does. If it fails, the link below is still valid.
        drop(tokio::task::spawn_blocking(move || crate::console::open(&file)));
        print("Opening the console in your browser. If nothing opens, use this link:");
    } else {
        print("Open this link in a browser:");
    }
    print_link(hub).await?;
    if !std::io::stdin().is_terminal() {
        print(&format!(
            "`plexus console --print --data-dir {}` prints a new link. Ctrl-C ends the demo.",
            hub.data_dir().display()
        ));
        return std::future::pending().await;
    }
    print("Press Enter for a new link, Ctrl-C to end the demo.");
    let mut lines = Typed::new();
    while lines.line().await.is_some() {
        print_link(hub).await?;
    }
    std::future::pending().await
}

async fn print_link(hub: &DemoHub) -> Result<(), ExpectedError> {
    let LinkResult::Ok { link, expires_in_secs, .. } = hub.call("console.link", json!({})).await?;
    print(&format!("\n  {link}\n\nIt works once, within {expires_in_secs} seconds."));
    Ok(())
}

/// Creates all sessions, each on behalf of its parent.
async fn start(hub: &DemoHub, work: &Path) -> Result<(), ExpectedError> {
    let mut ids = HashMap::new();
    for agent in &AGENTS {
        let Agent { name, parent, permission_mode, prompt, .. } = agent;
        let principal = match parent.and_then(|parent| ids.get(parent)) {
            Some(id) => Principal::Session { id: *id, run: FIRST_RUN },
            None => Principal::Operator,
        };
        let create = json!({
            "name": name, "working_dir": work, "prompt": prompt, "permission_mode": permission_mode,
            "env": environment(),
            "hub_tools": AGENTS.iter().any(|other| other.parent == Some(*name)),
        });
        let CreateResult::Created { id, .. } = hub.call_as(principal, "claudecode.create", create).await?;
        ids.insert(*name, id);
    }
    Ok(())
}
