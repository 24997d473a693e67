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
use crate::review::Reviewed;

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
    let digest = plexus_core::call_digest(tool, input.as_object().unwrap(), "/work/project");
    // As the hub shows it.
    let mut input = input;
    plexus_protocol::shorten(&mut input, usize::MAX);
    let approval = json!({
        "id": id(100 + number), "session_id": session.id, "session_name": session.name, "kind": kind,
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
        screen.is_read(Value::Null);
        screen.text(80, 24);
        screen
    }

    /// The hub shows all of the selected approval, and the file it is about.
    fn is_read(&mut self, file: Value) {
        let mut whole = self.model.selected().unwrap().clone();
        whole.truncated = false;
        let found = json!({"approval": whole, "file": file});
        self.happens(Event::Read(Box::new(Reviewed::read(found).unwrap())));
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
        "command": "echo \u{1b}[2J\u{1b}]0;owned\u{7} \u{202e}txt.exe\r\n\trm\u{a0}-r\u{3000}x  \nexpires in 5s",
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
fn a_line_of_a_megabyte_is_read_in_parts_and_allowed_only_when_all_was_shown() {
    let mut screen = Screen::asking("Bash", json!({"command": "x".repeat(8192)}));
    screen.model.approvals[0].truncated = true;
    screen.model.approvals[0].digest = None;
    let id = screen.model.approvals[0].id;
    assert_eq!(screen.press('a'), [Effect::Read(id)], "it is cut: all of it is read first");
    assert_eq!(screen.press('a'), []);
    assert_eq!(screen.press('\n'), [Effect::Read(id)], "enter tries again");
    let mut whole = screen.model.approvals[0].clone();
    whole.input.insert("command".to_owned(), "x".repeat(1_000_000).into());
    (whole.truncated, whole.digest) = (false, Some("the digest".to_owned()));
    screen.happens(Event::Read(Box::new(Reviewed { approval: whole, file: None })));
    let since = Instant::now();
    for _ in 0..100 {
        screen.text(80, 24);
    }
    assert!(since.elapsed() < Duration::from_secs(10), "it is cut up once, and not at every frame");
    assert!(screen.text(80, 24).contains("of 13162"), "all of it can be reached:\n{}", screen.text(80, 24));
    assert_eq!(screen.press('a'), [], "it was not shown");
    screen.model.down = 13_100;
    screen.text(80, 24);
    assert_eq!(screen.press('a'), [], "its end was, but not what is before");
    screen.model.down = 0;
    for _ in 0..13_162 {
        if screen.model.seen.all() {
            break;
        }
        screen.press(' ');
        screen.text(80, 24);
    }
    assert_eq!(respond(&screen.press('a'))["digest"], "the digest");
}

/// A command of this many lines.
fn long(lines: usize) -> Value {
    json!({"command": (1..=lines).map(|number| format!("echo {number}\n")).collect::<String>()})
}

#[test]
fn what_does_not_fit_is_allowed_only_after_its_last_row_was_shown() {
    let mut screen = Screen::asking("Bash", long(20));
    screen.is_drawn_as("long", 80, 24);
    for key in ['a', 'r'] {
        assert_eq!(screen.press(key), []);
        assert!(screen.text(80, 24).contains("rows were shown: space reads on"), "{}", screen.text(80, 24));
        assert_eq!(screen.model.mode, Mode::Moving);
    }
    screen.press(' ');
    screen.press('?');
    screen.text(80, 24);
    screen.press('?');
    assert_eq!(screen.press('a'), [], "under the help nothing was shown");
    screen.text(80, 24);
    assert_eq!(respond(&screen.press('a'))["approve"], true);
    let mut small = Screen::asking("Bash", long(20));
    small.model.seen.stop();
    for _ in 0..30 {
        small.text(40, 10);
        if small.model.seen.all() {
            break;
        }
        assert_eq!(small.press('a'), []);
        small.press(' ');
    }
    assert_eq!(respond(&small.press('a'))["approve"], true, "a small screen only has more pages");
    let mut tiny = Screen::asking("Bash", json!({"command": "ls"}));
    tiny.text(15, 6);
    assert_eq!(tiny.press('a'), [], "nothing can be read here");
}

#[test]
fn what_fits_is_allowed_by_one_key_and_what_changed_is_read_again() {
    let mut screen = Screen::asking("Bash", long(5));
    let mut other = screen.model.approvals[0].clone();
    other.input = long(20).as_object().unwrap().clone();
    screen.happens(Event::Read(Box::new(Reviewed { approval: other, file: None })));
    screen.text(80, 24);
    assert_eq!(screen.press('a'), [], "it is another input by now");
    let mut screen = Screen::asking("Bash", long(5));
    let digest = screen.model.approvals[0].digest.clone();
    assert_eq!(respond(&screen.press('a'))["digest"], json!(digest));
    assert!(screen.text(80, 24).contains("parser: Bash …"), "{}", screen.text(80, 24));
}

#[test]
fn a_file_that_is_written_over_and_an_edit_are_shown_as_diffs_with_the_files_own_numbers() {
    let lines =
        |range: std::ops::RangeInclusive<usize>| range.map(|n| format!("line {n}\n")).collect::<String>();
    let file = json!({"path": "/work/project/a.txt", "text": lines(1..=120), "state": "text"});
    let edit = json!({"file_path": "/work/project/a.txt", "old_string": "line 100\n", "new_string": "line one hundred\n"});
    let mut screen = Screen::asking("Edit", edit);
    screen.is_read(file);
    screen.is_drawn_as("edit-numbered", 80, 24);
    let write = json!({"file_path": "/work/project/a.txt", "content": "one\n2\nthree\n"});
    let mut screen = Screen::asking("Write", write);
    screen.is_read(json!({"path": "/work/project/a.txt", "text": "one\ntwo\nthree\n", "state": "text"}));
    screen.is_drawn_as("write-over", 80, 24);
    assert_eq!(respond(&screen.press('a'))["approve"], true);
}

#[test]
fn with_a_filter_no_key_acts_on_what_the_list_does_not_show() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    screen.types("/docs\n");
    screen.text(80, 24);
    for key in ['a', 'd', 'e', 'r', 'E', 'p'] {
        assert_eq!((screen.press(key), &screen.model.mode), (vec![], &Mode::Moving), "{key}");
    }
    // The approval passes by its tool, its session does not pass by its name.
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    screen.types("/bash\n");
    let drawn = screen.text(80, 24);
    assert!(drawn.contains("parser: Bash") && !drawn.contains("asks   parser"), "{drawn}");
    for key in ['i', 's'] {
        assert_eq!((screen.press(key), &screen.model.mode), (vec![], &Mode::Moving), "{key}");
    }
    assert!(screen.text(80, 24).contains("the list does not show this session"));
    assert_eq!(respond(&screen.press('a'))["approval_id"], json!(id(101)), "what is shown is answered");
}

#[test]
fn what_leaves_the_list_while_one_types_is_not_answered() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    screen.types("/parser\n");
    screen.text(80, 24);
    screen.types("dbecause");
    let mut renamed = screen.model.approvals[0].clone();
    renamed.session_name = serde_json::from_value(json!("other")).unwrap();
    screen.happens(Event::Asked(Box::new(renamed)));
    assert_eq!((screen.press('\n'), &screen.model.mode), (vec![], &Mode::Moving));
}

#[test]
fn a_key_that_was_pressed_before_an_approval_came_does_not_answer_it() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    let pressed_at = screen.at;
    let parser = session(2, "parser", 1, "awaiting_permission");
    screen.happens(Event::Asked(Box::new(approval(2, &parser, "Bash", json!({"command": "rm -r x"})))));
    let mut first = screen.model.approvals[0].clone();
    first.status = plexus_protocol::ApprovalStatus::Withdrawn;
    screen.happens(Event::Ended(Box::new(first)));
    screen.text(80, 24);
    let key = KeyEvent::new(KeyCode::Char('a'), KeyModifiers::NONE);
    assert_eq!(update(&mut screen.model, Event::Key(key), pressed_at), []);
}

#[test]
fn an_edit_is_shown_in_full_and_confirmed() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls", "description": "look"}));
    let effects = screen.press('e');
    let [Effect::Edit(of, input)] = &effects[..] else { panic!("{effects:?}") };
    let (of, mut input) = (*of, input.clone());
    input.insert("command".to_owned(), json!("ls\u{a0}-a "));
    screen.happens(Event::Edited(of, input.clone()));
    screen.is_drawn_as("edited", 80, 24);
    let key = KeyEvent::new(KeyCode::Char('y'), KeyModifiers::NONE);
    let at = screen.at + Duration::from_millis(100);
    assert_eq!(update(&mut screen.model, Event::Key(key), at), [], "it was typed for the editor");
    let sent = respond(&screen.press('y'));
    let digest = screen.model.approvals[0].digest.clone();
    assert_eq!((&sent["updated_input"], &sent["digest"]), (&Value::Object(input.clone()), &json!(digest)));
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    input.insert("command".to_owned(), long(40)["command"].clone());
    screen.happens(Event::Edited(of, input));
    screen.text(80, 24);
    assert_eq!(screen.press('y'), [], "not all of it was shown");
    while !screen.model.seen.all() {
        screen.press(' ');
        screen.text(80, 24);
    }
    assert_eq!(respond(&screen.press('y'))["approve"], true);
}

#[test]
fn a_rule_that_does_not_fit_on_the_line_is_shown_in_full_first() {
    let command = format!("make {}", "x".repeat(60));
    let mut screen = Screen::asking("Bash", json!({"command": command}));
    screen.press('r');
    assert_eq!(screen.press('\n'), []);
    assert!(screen.text(80, 24).contains(&format!("Bash({command})")), "{}", screen.text(80, 24));
    assert_eq!(respond(&screen.press('y'))["remember"]["rule"], format!("Bash({command})"));
}

#[test]
fn the_log_shows_what_ran_when_a_call_was_edited() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    let of = screen.model.session.unwrap();
    let call =
        json!({"type": "tool_use", "tool_use_id": "t", "tool_name": "Bash", "input": {"command": "ls"}});
    let resolved = json!({"type": "approval_resolved", "tool_use_id": "t", "status": "allowed", "by": {"kind": "operator"},
        "updated_input": {"command": "ls -a"}});
    for event in [call, resolved] {
        screen.happens(Event::Happened(of, event));
    }
    let drawn = screen.text(140, 40);
    assert!(
        drawn.contains("allowed by operator, edited") && drawn.contains("- ls ") && drawn.contains("+ ls -a"),
        "{drawn}"
    );
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
    assert!(drawn.contains("Denied by parent:boss: Bash ls (parser)"), "{drawn}");
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
fn a_hub_that_is_disconnected_is_said_to_be_and_nothing_is_answered_meanwhile() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    screen.types("dnot");
    screen.happens(Event::Away);
    assert_eq!(screen.types(" now\n"), [], "what was typed waits");
    assert!(screen.text(80, 24).contains("Disconnected. Reconnecting…"));
    screen.happens(Event::Open(screen.model.approvals.clone()));
    assert_eq!(respond(&screen.press('\n'))["message"], "not now");
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    screen.happens(Event::Away);
    screen.text(80, 24);
    for key in ['a', 'd', 'e', 'r', 'i', 's'] {
        assert_eq!((screen.press(key), &screen.model.mode), (vec![], &Mode::Moving), "{key}");
    }
    assert!(screen.text(80, 24).contains("nothing can be answered before the hub is back"));
    screen.happens(Event::Open(Vec::new()));
    let drawn = screen.text(80, 24);
    assert!(!drawn.contains("Disconnected. ") && drawn.contains("0 open"), "{drawn}");
}

#[test]
fn stopping_asks_first_and_the_filter_narrows() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    assert_eq!(screen.press('s'), []);
    assert!(screen.text(80, 24).contains("Stop parser and all below it? y / n"));
    assert_eq!(screen.press('n'), []);
    screen.press('s');
    screen.text(80, 24);
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
