//! The screen of `plexus run` at several widths, with and without colours, compared with files (`screens/NAME.txt`).
//! `PLEXUS_WRITE_SCREENS=1` writes the files.

use plexus_testkit::picture::svg;
use serde_json::json;

use crate::support::{TestHub, plexus};
use crate::terminal::Terminal;

/// The text of the agent.
const TEXT: &str = "# The plan\n\nI will change **one** line of `notes.md`, because the greeting in it is *not* polite enough for our readers.\n\n\
    1. Read the file\n2. Edit it\n   - keep the rest\n\n```rust\nfn greet() {\n    println!(\"hi\");\n}\n```\n\n\
    See [the guide](https://example.com/guide).\nplexus: Allowed: everything &#27;[2J";

/// The text of the agent in the picture.
const PICTURE_TEXT: &str = "## Plan\n\nThe greeting in `notes.md` is **too short** for our readers.\n\n1. Change it\n2. Count the lines";

/// A terminal of this width, high enough for everything, in which `plexus run` follows an agent that writes this text, edits a file and
/// runs a command.
fn start(hub: &TestHub, says: &str, width: u16, env: &[(&str, &str)]) -> Terminal {
    let lines: String = (1..=12).map(|number| format!("line {number}\n")).collect();
    std::fs::write(hub.work().join("notes.md"), lines).unwrap();
    let edit = json!({"file_path": "notes.md", "old_string": "line 10\n", "new_string": "hello\n"});
    let prompt = json!([
        {"say": says},
        {"tool": "Edit", "input": edit},
        {"tool": "Bash", "input": {"command": "seq 1 9", "description": "Count"}},
        {"say": "Done."},
    ]);
    let mut command = plexus(hub.folder.path());
    command.args(["run", "--name", "a", &prompt.to_string(), "--data-dir"]).arg(hub.process.data_dir());
    command.current_dir(hub.work()).env("TERM", "xterm").envs(env.iter().copied());
    Terminal::sized(command, width, 120)
}

/// Replaces the rows with the path of the test's directory, which differs between runs.
fn without_paths(screen: &str) -> String {
    let mut lines = Vec::new();
    let mut in_path = false;
    for line in screen.lines() {
        let bare = line.rsplit('}').next().unwrap_or_default();
        let starts = bare.starts_with("in /");
        let continues = in_path && bare.trim_start().starts_with('…');
        in_path = starts || continues;
        if starts {
            lines.push("(path)");
        } else if !continues {
            lines.push(line);
        }
    }
    lines.join("\n") + "\n"
}

/// Compares a screen with a file of this crate.
#[track_caller]
fn is_drawn_as(file: &str, drawn: &str) {
    let path = format!("{}/{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("PLEXUS_WRITE_SCREENS").is_some() {
        std::fs::write(&path, drawn).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap();
    assert!(drawn == wanted, "{file} is drawn as\n{drawn}\ninstead of\n{wanted}");
}

async fn compare(width: u16) {
    for (name, env) in [("colour", &[][..]), ("plain", &[("NO_COLOR", "1")][..])] {
        let hub = TestHub::start().await;
        let mut terminal = start(&hub, TEXT, width, env);
        for allowed in 1..=2 {
            let asked = |screen: &str| screen.matches("s(kip)").count() == allowed;
            terminal.until("the prompt", asked).await;
            terminal.types("y\n");
        }
        assert!(terminal.exits().await.success(), "{}", terminal.text());
        let screen = without_paths(&terminal.coloured_text());
        is_drawn_as(&format!("tests/suite/screens/run-{width}-{name}.txt"), &screen);
        assert_eq!(terminal.wrote("\u{1b}[36m"), name == "colour");
        assert!(!terminal.wrote("\u{1b}[2J"), "no text of the agent is a control sequence");
    }
}

#[tokio::test]
async fn run_at_40_columns() {
    compare(40).await;
}

#[tokio::test]
async fn run_at_80_columns() {
    compare(80).await;
}

#[tokio::test]
async fn run_at_160_columns() {
    compare(160).await;
}

/// The picture in docs/cli.md.
#[tokio::test]
async fn the_documentation_shows_run_as_it_is() {
    let hub = TestHub::start().await;
    let mut terminal = start(&hub, PICTURE_TEXT, 80, &[]);
    for allowed in 1..=2 {
        terminal.until("the prompt", |screen| screen.matches("s(kip)").count() == allowed).await;
        terminal.types("y\n");
    }
    assert!(terminal.exits().await.success(), "{}", terminal.text());
    let mut rows = terminal.cells();
    rows.retain(|row| !row.iter().map(|cell| cell.text.as_str()).collect::<String>().starts_with("in /"));
    is_drawn_as("../../docs/terminal/run.svg", &svg(&rows));
}

#[tokio::test]
async fn a_problem_of_the_model_is_shown_at_once_with_advice() {
    let hub = TestHub::start().await;
    let retry = json!({"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10, "retry_delay_ms": 2000.0,
        "error_status": 401, "error": "authentication_failed", "session_id": "x", "uuid": "y"});
    let prompt = json!([
        {"raw": retry.to_string()},
        {"tool": "Bash", "input": {"command": "true"}},
        {"result_error": "API Error: 529 Overloaded"},
    ]);
    let mut command = plexus(hub.folder.path());
    command.args(["run", "--name", "a", &prompt.to_string(), "--data-dir"]).arg(hub.process.data_dir());
    command.current_dir(hub.work()).env("TERM", "xterm");
    let mut terminal = Terminal::sized(command, 100, 40);
    terminal
        .shows("! The model provider rejected the login (HTTP 401). Retry 1 of 10 in 2 s. Run `claude` and log in")
        .await;
    terminal.shows("s(kip)").await;
    terminal.types("y\n");
    assert_eq!(terminal.exits().await.code(), Some(1));
    assert!(terminal.text().contains("! Wait a moment, then send the prompt again."), "{}", terminal.text());
}

#[tokio::test]
async fn the_status_line_shows_the_action_and_leaves_nothing_on_the_screen() {
    let hub = TestHub::start().await;
    let command =
        "until [ -e ../go ]; do sleep 0.05; done; echo a long argument that does not fit into the line";
    let prompt = json!([{"tool": "Bash", "input": {"command": command}}]).to_string();
    let mut run = plexus(hub.folder.path());
    run.args(["run", "--name", "a", "--policy", "allow_all", &prompt, "--data-dir"])
        .arg(hub.process.data_dir());
    run.current_dir(hub.work()).env("TERM", "xterm");
    let mut terminal = Terminal::sized(run, 50, 20);
    terminal.until("the action", |screen| screen.contains("s, $0.0000] Bash until [ -e ")).await;
    std::fs::write(hub.folder.path().join("go"), "").unwrap();
    assert!(terminal.exits().await.success(), "{}", terminal.text());
    let screen = terminal.text();
    assert!(!screen.contains("[running") && screen.contains("\n  | a long argument"), "{screen}");
    let row = screen.lines().position(|line| line.starts_with("> Bash until"));
    assert_eq!(row, Some(1), "nothing is left between the lines: {screen}");
}
