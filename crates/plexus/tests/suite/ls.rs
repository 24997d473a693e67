//! `plexus ls -w` in a terminal.

use serde_json::json;

use crate::support::{TestHub, plexus};
use crate::terminal::Terminal;

#[tokio::test]
async fn a_live_list_follows_the_size_of_the_terminal_and_counts_hidden_rows() {
    let hub = TestHub::start().await;
    for number in 1..=6 {
        let create = json!({"name": format!("agent-{number}"), "working_dir": hub.work()});
        hub.call("claudecode.create", create).await.unwrap();
    }
    let mut command = plexus(hub.folder.path());
    command.args(["ls", "-w", "--data-dir"]).arg(hub.process.data_dir());
    let mut terminal = Terminal::sized(command, 60, 5);
    terminal
        .until("the rows that fit", |shown| shown.contains("agent-2") && shown.contains("… and 4 more"))
        .await;
    terminal.resize(60, 12);
    terminal.until("all rows", |shown| shown.contains("agent-6") && !shown.contains("more")).await;
    terminal.resize(12, 12);
    terminal.until("narrow rows", |shown| shown.contains("agent-6  id…")).await;
}
