//! Whole screens, compared with the files in `screens/`.

use super::*;

#[test]
fn a_hub_without_sessions_is_drawn() {
    Screen::new().is_drawn_as("empty", 80, 24);
}

#[test]
fn a_command_is_shown_with_all_other_fields_of_the_input() {
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
fn a_new_file_a_plan_and_the_help_are_drawn() {
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
fn text_of_an_agent_cannot_affect_the_terminal() {
    let input = json!({
        "command": "echo \u{1b}[2J\u{1b}]0;owned\u{7} \u{202e}txt.exe\r\n\trm\u{a0}-r\u{3000}x  \nexpires in 5s",
        "\u{1b}[31mname": "\u{9b}0m", "zalgo": format!("e{}", "\u{301}".repeat(50)),
    });
    let mut screen = Screen::asking("Bash\u{1b}c", input.clone());
    let lead = screen.model.session;
    screen.apply(Event::Logged(lead.unwrap(), json!({"type": "content", "text": "\u{1b}[H\u{202e}log"})));
    screen.is_drawn_as("hostile", 80, 24);
    let drawn = screen.text(140, 40);
    assert!(!drawn.chars().any(|c| c != '\n' && (c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c))));
}

#[test]
fn an_overwrite_and_an_edit_are_diffs_with_the_line_numbers_of_the_file() {
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
fn the_log_shows_the_edited_input_that_ran() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    let of = screen.model.session.unwrap();
    let call =
        json!({"type": "tool_use", "tool_use_id": "t", "tool_name": "Bash", "input": {"command": "ls"}});
    let resolved = json!({"type": "approval_resolved", "tool_use_id": "t", "status": "allowed", "by": {"kind": "operator"},
        "updated_input": {"command": "ls -a"}});
    for event in [call, resolved] {
        screen.apply(Event::Logged(of, event));
    }
    let drawn = screen.text(140, 40);
    assert!(
        drawn.contains("allowed by you, edited") && drawn.contains("- ls ") && drawn.contains("+ ls -a"),
        "{drawn}"
    );
}

#[test]
fn the_screen_is_drawn_at_every_size() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    for (width, height) in [(1, 1), (3, 2), (10, 5), (20, 10), (40, 12), (80, 24), (300, 100)] {
        screen.text(width, height);
    }
}

/// The picture in docs/watch.md.
#[test]
fn the_documentation_shows_watch_as_it_is() {
    let edit = json!({"file_path": "/work/project/a.rs", "old_string": "    1\n", "new_string": "    2\n"});
    let mut screen = Screen::asking("Edit", edit);
    screen.is_read(json!({"path": "/work/project/a.rs", "text": "fn a() {\n    1\n}\n", "state": "text"}));
    let drawn = svg(&screen.cells(80, 24));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/terminal/watch.svg");
    if std::env::var_os("PLEXUS_WRITE_SCREENS").is_some() {
        std::fs::write(path, &drawn).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).unwrap() == drawn,
        "the picture differs; PLEXUS_WRITE_SCREENS=1 writes it"
    );
}
