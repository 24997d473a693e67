//! Tests of whole screens against files (`tests/screens/NAME.txt`). `PLEXUS_WRITE_SCREENS=1` writes the files. The tests are in the modules
//! below; this file has what they share.

mod answering;
mod drawing;
mod guarding;
mod reading;

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use plexus_protocol::claudecode::SessionView;
use plexus_protocol::{Approval, SessionId};
use plexus_testkit::picture::{Cell, Look, svg};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::{Color, Modifier};
use serde_json::{Value, json};

use super::model::{Mode, Model};
use super::update::{Effect, Event, update};
use super::view::{Paint, view};
use crate::review::Reviewed;

const NOW: u64 = 1_800_000_000;

fn id(number: u32) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

fn session(number: u32, name: &str, depth: u32, status: &str) -> SessionView {
    let path = if depth == 0 { name.to_owned() } else { format!("lead/{name}") };
    let view = json!({
        "id": id(number), "name": name, "path": path, "status": status, "turn": 1, "working_dir": "/work", "channel": "control",
        "loopback_enabled": true, "policy": "own_course", "permission_mode": "default", "hub_tools": false,
        "answers_to": {"kind": "operator"}, "depth": depth,
        "pending_approvals": u64::from(status == "awaiting_permission"), "cost_usd": 0.25 * f64::from(number),
        "tree": {"sessions": 1, "running": 0, "pending_approvals": 0, "cost_usd": 0.0},
        "head": {"tree_id": id(90), "node_id": id(91)}, "created_at": NOW,
    });
    serde_json::from_value(view).unwrap()
}

fn approval(number: u32, session: &SessionView, tool: &str, input: Value) -> Approval {
    let kind = match tool {
        "AskUserQuestion" => "question",
        "ExitPlanMode" => "plan",
        _ => "tool",
    };
    let digest = plexus_core::call_digest(tool, input.as_object().unwrap(), "/work/project");
    // As the hub shows it.
    let mut input = input;
    plexus_protocol::shorten(&mut input, usize::MAX);
    let approval = json!({
        "id": id(100 + number), "session_id": session.id, "session_name": session.name,
        "session_path": session.path, "kind": kind,
        "tool_name": tool, "tool_use_id": "t", "input": input, "status": "pending",
        "created_at": NOW - 95, "asked_of": {"kind": "operator"}, "cwd": "/work/project", "digest": digest,
    });
    serde_json::from_value(approval).unwrap()
}

/// A model and a clock that tests move.
struct Screen {
    model: Model,
    at: Instant,
}

impl Screen {
    fn new() -> Self {
        let mut screen = Self { model: Model::default(), at: Instant::now() };
        screen.apply(Event::Tick(NOW));
        screen.apply(Event::Open(Vec::new()));
        screen
    }

    /// A tree of three, the second of which asks this.
    fn asking(tool: &str, input: Value) -> Self {
        let mut screen = Self::new();
        let asks = session(2, "parser", 1, "awaiting_permission");
        let approval = approval(1, &asks, tool, input);
        screen.apply(Event::Sessions(vec![
            session(1, "lead", 0, "running"),
            asks,
            session(3, "docs", 1, "failed"),
        ]));
        screen.apply(Event::Asked(Box::new(approval)));
        screen.is_read(Value::Null);
        screen.text(80, 24);
        screen
    }

    /// The hub shows all of the selected approval, and the file it is about.
    fn is_read(&mut self, file: Value) {
        let mut whole = self.model.selected().unwrap().clone();
        whole.truncated = false;
        let found = json!({"approval": whole, "file": file});
        self.apply(Event::Read(Box::new(Reviewed::read(found).unwrap())));
    }

    fn apply(&mut self, event: Event) -> Vec<Effect> {
        self.at += Duration::from_secs(1);
        update(&mut self.model, event, self.at)
    }

    fn press(&mut self, key: char) -> Vec<Effect> {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            key => KeyCode::Char(key),
        };
        self.apply(Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    fn types(&mut self, text: &str) -> Vec<Effect> {
        text.chars().flat_map(|key| self.press(key)).collect()
    }

    fn draw(&mut self, width: u16, height: u16, paint: Paint) -> Terminal<TestBackend> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| view(&mut self.model, frame, paint)).unwrap();
        terminal
    }

    fn text(&mut self, width: u16, height: u16) -> String {
        let terminal = self.draw(width, height, Paint::Plain);
        let buffer = terminal.backend().buffer();
        let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(|y| row(y) + "\n").collect()
    }

    /// The screen in colours, for a picture.
    fn cells(&mut self, width: u16, height: u16) -> Vec<Vec<Cell>> {
        let terminal = self.draw(width, height, Paint::Colours);
        let buffer = terminal.backend().buffer();
        let cell = |x, y| {
            let cell = &buffer[(x, y)];
            let colour = match cell.fg {
                Color::Red => Some(1),
                Color::Green => Some(2),
                Color::Yellow => Some(3),
                _ => None,
            };
            let has = |modifier| cell.modifier.contains(modifier);
            let look = Look {
                colour,
                bold: has(Modifier::BOLD),
                dim: has(Modifier::DIM),
                italic: has(Modifier::ITALIC),
                reversed: has(Modifier::REVERSED),
            };
            Cell { text: cell.symbol().to_owned(), look }
        };
        (0..height).map(|y| (0..width).map(|x| cell(x, y)).collect()).collect()
    }

    #[track_caller]
    fn is_drawn_as(&mut self, name: &str, width: u16, height: u16) {
        let drawn = self.text(width, height);
        let path = format!("{}/src/watch/tests/screens/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("PLEXUS_WRITE_SCREENS").is_some() {
            std::fs::write(&path, &drawn).unwrap();
        }
        let wanted = std::fs::read_to_string(&path).unwrap();
        assert!(drawn == wanted, "{name} is drawn as\n{drawn}\ninstead of\n{wanted}");
    }
}

fn respond(effects: &[Effect]) -> Value {
    let [Effect::Call { method: "loopback.respond", params, .. }] = effects else { panic!("{effects:?}") };
    params.clone()
}

/// A command of this many lines.
fn long(lines: usize) -> Value {
    json!({"command": (1..=lines).map(|number| format!("echo {number}\n")).collect::<String>()})
}
