//! Whole screens as they are drawn, each beside the file that says how it should be (`screens/NAME.txt`). With
//! `PLEXUS_WRITE_SCREENS=1` the files are written instead.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use plexus_protocol::claudecode::SessionView;
use plexus_protocol::{Approval, SessionId};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;
use serde_json::{Value, json};

use super::model::{Mode, Model};
use super::update::{Effect, Event, update};
use super::view::{Paint, view};

const NOW: u64 = 1_800_000_000;

fn id(number: u32) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

fn session(number: u32, name: &str, depth: u32, status: &str) -> SessionView {
    let view = json!({
        "id": id(number), "name": name, "status": status, "turn": 1, "working_dir": "/work", "channel": "control",
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
    let approval = json!({
        "id": id(100 + number), "session_id": session.id, "session_name": session.name, "kind": kind,
        "tool_name": tool, "tool_use_id": "t", "input": input, "status": "pending",
        "created_at": NOW - 95, "asked_of": {"kind": "operator"}, "cwd": "/work/project", "digest": "d",
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
        screen.happens(Event::Tick(NOW));
        screen.happens(Event::Open(Vec::new()));
        screen
    }

    /// A tree of three, the second of which asks this.
    fn asking(tool: &str, input: Value) -> Self {
        let mut screen = Self::new();
        let asks = session(2, "parser", 1, "awaiting_permission");
        let approval = approval(1, &asks, tool, input);
        screen.happens(Event::Sessions(vec![
            session(1, "lead", 0, "running"),
            asks,
            session(3, "docs", 1, "failed"),
        ]));
        screen.happens(Event::Asked(Box::new(approval)));
        screen.text(80, 24);
        screen
    }

    fn happens(&mut self, event: Event) -> Vec<Effect> {
        self.at += Duration::from_secs(1);
        update(&mut self.model, event, self.at)
    }

    fn press(&mut self, key: char) -> Vec<Effect> {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            key => KeyCode::Char(key),
        };
        self.happens(Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
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

    #[track_caller]
    fn is_drawn_as(&mut self, name: &str, width: u16, height: u16) {
        let drawn = self.text(width, height);
        let path = format!("{}/src/watch/screens/{name}.txt", env!("CARGO_MANIFEST_DIR"));
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

#[test]
fn a_hub_without_sessions() {
    Screen::new().is_drawn_as("empty", 80, 24);
}

#[test]
fn a_command_is_shown_as_a_command_with_all_else_that_stands_in_the_input() {
    let input =
        json!({"command": "cargo test\ncargo doc", "description": "Test it", "run_in_background": true});
    let mut screen = Screen::asking("Bash", input);
    screen.is_drawn_as("command", 80, 24);
    screen.is_drawn_as("command-wide", 140, 30);
}

#[test]
fn an_edit_is_shown_as_a_diff_with_and_without_colours() {
    let input = json!({"file_path": "/work/project/a.rs", "old_string": "fn a() {\n    1\n}", "new_string": "fn a() {\n    2\n}", "replace_all": false});
    let mut screen = Screen::asking("Edit", input);
    screen.is_drawn_as("edit", 80, 24);
    let colour_of = |screen: &mut Screen, paint, sign: &str| {
        let terminal = screen.draw(80, 24, paint);
        let buffer = terminal.backend().buffer();
        (8..23).find(|y| buffer[(1, *y)].symbol() == sign).map(|y| buffer[(1, y)].fg)
    };
    assert_eq!(colour_of(&mut screen, Paint::Colours, "+"), Some(Color::Green));
    assert_eq!(colour_of(&mut screen, Paint::Colours, "-"), Some(Color::Red));
    assert_eq!(colour_of(&mut screen, Paint::Plain, "+"), Some(Color::Reset));
}

#[test]
fn a_file_a_plan_and_the_help() {
    let file = json!({"file_path": "/work/project/a.txt", "content": "one\ntwo\n"});
    Screen::asking("Write", file).is_drawn_as("write", 80, 24);
    let mut screen = Screen::asking("ExitPlanMode", json!({"plan": "# Plan\n\n1. Read\n2. Write"}));
    screen.is_drawn_as("plan", 80, 24);
    screen.press('?');
    screen.is_drawn_as("help", 80, 24);
    screen.press('q');
    assert_eq!(screen.model.mode, Mode::Moving, "any key leaves the help, and does no more");
}

#[test]
fn a_question_is_answered_by_numbers_or_words() {
    let input = json!({"questions": [
        {"question": "Which colour?", "options": [{"label": "red", "description": "as fire"}, {"label": "blue"}]},
        {"question": "Why?", "options": []},
    ]});
    let mut screen = Screen::asking("AskUserQuestion", input);
    screen.is_drawn_as("question", 80, 24);
    assert_eq!(screen.types("a2\n"), []);
    let answered = respond(&screen.types("it is calm\n"));
    assert_eq!(answered["answers"], json!({"Which colour?": "blue", "Why?": "it is calm"}));
}

#[test]
fn what_a_child_wrote_cannot_touch_the_terminal() {
    let input = json!({
        "command": "echo \u{1b}[2J\u{1b}]0;owned\u{7} \u{202e}txt.exe\r",
        "\u{1b}[31mname": "\u{9b}0m", "zalgo": format!("e{}", "\u{301}".repeat(50)),
    });
    let mut screen = Screen::asking("Bash\u{1b}c", input.clone());
    let lead = screen.model.session;
    screen.happens(Event::Happened(lead.unwrap(), json!({"type": "content", "text": "\u{1b}[H\u{202e}log"})));
    screen.is_drawn_as("hostile", 80, 24);
    let drawn = screen.text(140, 40);
    assert!(!drawn.chars().any(|c| c != '\n' && (c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c))));
}

#[test]
fn a_line_of_a_megabyte_is_read_in_parts_and_approved_only_when_read() {
    let mut screen = Screen::asking("Bash", json!({"command": "x".repeat(8192)}));
    screen.model.approvals[0].truncated = true;
    screen.model.approvals[0].digest = None;
    screen.text(80, 24);
    assert_eq!(screen.press('a'), [], "it is shown cut");
    let id = screen.model.approvals[0].id;
    assert_eq!(screen.press('\n'), [Effect::Read(id)]);
    let mut whole = screen.model.approvals[0].clone();
    whole.input.insert("command".to_owned(), "x".repeat(1_000_000).into());
    (whole.truncated, whole.digest) = (false, Some("the digest".to_owned()));
    screen.happens(Event::Read(Box::new(whole)));
    let since = Instant::now();
    for _ in 0..100 {
        screen.text(80, 24);
    }
    assert!(since.elapsed() < Duration::from_secs(10), "it is cut up once, and not at every frame");
    assert!(screen.text(80, 24).contains("of 13161"), "all of it can be reached:\n{}", screen.text(80, 24));
    assert_eq!(respond(&screen.press('a'))["digest"], "the digest");
}

#[test]
fn a_denial_takes_a_reason_or_none() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    let denied = respond(&screen.types("dnot now\n"));
    assert_eq!((&denied["approve"], &denied["message"]), (&json!(false), &json!("not now")));
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    assert_eq!(respond(&screen.types("d\n"))["message"], Value::Null);
}

#[test]
fn what_an_agent_is_asked_is_passed_on_with_an_opinion_or_none() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    assert_eq!(screen.press('p'), []);
    assert!(screen.text(80, 24).contains("it is asked of you, and nobody is above you"));
    let agent = json!({"kind": "session", "id": id(1)});
    screen.model.approvals[0].asked_of = serde_json::from_value(agent.clone()).unwrap();
    for (typed, opinion) in [("p\n", Value::Null), ("prather not\n", json!("rather not"))] {
        let effects = screen.types(typed);
        let [Effect::Call { method: "loopback.escalate", params, .. }] = &effects[..] else {
            panic!("{effects:?}")
        };
        assert_eq!(*params, json!({"approval_id": id(101), "opinion": opinion}));
    }
    let mut passed = screen.model.approvals[0].clone();
    let went = json!({"from": agent, "why": "escalated", "by": {"kind": "operator"}, "at": NOW});
    passed.passed = vec![serde_json::from_value(went).unwrap()];
    screen.happens(Event::Asked(Box::new(passed)));
    let drawn = screen.text(80, 24);
    assert!(drawn.contains(&format!("operator passed it on, past session:{}", id(1))), "{drawn}");
}

#[test]
fn a_rule_is_suggested_and_asked_about() {
    let mut screen = Screen::asking("Bash", json!({"command": "npm test"}));
    screen.model.approvals[0].suggestions = Some(json!([{"type": "addRules", "behavior": "allow",
        "rules": [{"toolName": "Bash", "ruleContent": "npm test:*"}], "destination": "session"}]));
    assert_eq!(screen.press('r'), []);
    assert!(screen.text(80, 24).contains("remember this rule (esc: back): Bash(npm test:*)_"));
    assert_eq!(respond(&screen.press('\n'))["remember"]["rule"], "Bash(npm test:*)");
}

#[test]
fn an_answer_from_elsewhere_takes_the_question_away_and_says_by_whom() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    screen.types("dbecause");
    let mut ended = screen.model.approvals[0].clone();
    ended.status = plexus_protocol::ApprovalStatus::Denied;
    let decision = json!({"approve": false, "by": {"kind": "parent", "id": "boss"}, "right": "ancestor"});
    ended.decision = Some(serde_json::from_value(decision).unwrap());
    screen.happens(Event::Ended(Box::new(ended)));
    assert!(screen.model.approvals.is_empty() && screen.model.mode == Mode::Moving);
    let drawn = screen.text(80, 24);
    assert!(drawn.contains("Bash of parser: denied by parent:boss"), "{drawn}");
}

#[test]
fn a_key_meant_for_one_question_does_not_answer_the_next() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    let parser = session(2, "parser", 1, "awaiting_permission");
    screen.happens(Event::Asked(Box::new(approval(2, &parser, "Bash", json!({"command": "rm -r x"})))));
    let mut first = screen.model.approvals[0].clone();
    first.status = plexus_protocol::ApprovalStatus::Withdrawn;
    screen.happens(Event::Ended(Box::new(first)));
    screen.text(80, 24);
    let key = KeyEvent::new(KeyCode::Char('a'), KeyModifiers::NONE);
    let at = screen.at + Duration::from_millis(100);
    assert_eq!(update(&mut screen.model, Event::Key(key), at), [], "the other one has only just come");
    assert_eq!(respond(&screen.press('a'))["approval_id"], json!(id(102)));
    assert_eq!(screen.press('a'), [], "once is enough");
}

#[test]
fn only_what_stands_on_the_screen_is_answered() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    screen.types("\t\t");
    assert!(screen.text(80, 24).contains("[Sessions]"), "the log is in its place");
    assert_eq!(screen.press('a'), []);
    assert!(screen.text(80, 24).contains("$ ls"), "now it is there");
    assert_eq!(respond(&screen.press('a'))["approve"], true);
}

#[test]
fn a_paste_answers_nothing() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    assert_eq!(screen.happens(Event::Pasted("aaaa".to_owned())), []);
    screen.press('d');
    screen.happens(Event::Pasted("as said\nq".to_owned()));
    assert_eq!(respond(&screen.press('\n'))["message"], "as said");
}

#[test]
fn a_hub_that_is_away_is_said_to_be() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    screen.happens(Event::Away);
    assert!(screen.text(80, 24).contains("HUB AWAY"));
    screen.happens(Event::Open(Vec::new()));
    let drawn = screen.text(80, 24);
    assert!(!drawn.contains("HUB AWAY") && drawn.contains("0 open"), "{drawn}");
}

#[test]
fn stopping_asks_first_and_the_filter_narrows() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    assert_eq!(screen.press('s'), []);
    assert!(screen.text(80, 24).contains("Stop parser and all below it? y / n"));
    assert_eq!(screen.press('n'), []);
    screen.press('s');
    let stopped = screen.press('y');
    assert!(matches!(&stopped[..], [Effect::Call { method: "claudecode.stop", .. }]), "{stopped:?}");
    screen.types("/doc\n");
    let drawn = screen.text(80, 24);
    assert!(drawn.contains("docs") && !drawn.contains("lead"), "{drawn}");
    let docs: SessionId = id(3).parse().unwrap();
    assert_eq!(screen.model.session, Some(docs));
}

#[test]
fn every_size_is_drawn() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    for (width, height) in [(1, 1), (3, 2), (10, 5), (20, 10), (40, 12), (80, 24), (300, 100)] {
        screen.text(width, height);
    }
}
