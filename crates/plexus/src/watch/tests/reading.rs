//! A call is allowed only after all of it was on the screen: long inputs, edits and rules, even after a change of the width.

use super::*;

#[test]
fn a_line_of_a_megabyte_is_allowed_only_after_all_of_it_was_shown() {
    let mut screen = Screen::asking("Bash", json!({"command": "x".repeat(8192)}));
    screen.model.approvals[0].truncated = true;
    screen.model.approvals[0].digest = None;
    let id = screen.model.approvals[0].id;
    assert_eq!(screen.press('a'), [Effect::Read(id)], "it is truncated: the whole input is loaded first");
    assert_eq!(screen.press('a'), []);
    assert_eq!(screen.press('\n'), [Effect::Read(id)], "enter tries again");
    let mut whole = screen.model.approvals[0].clone();
    whole.input.insert("command".to_owned(), "x".repeat(1_000_000).into());
    let digest = plexus_core::call_digest("Bash", &whole.input, &whole.cwd);
    (whole.truncated, whole.digest) = (false, Some(digest.clone()));
    screen.apply(Event::Read(Box::new(Reviewed { approval: whole, file: None })));
    let since = Instant::now();
    for _ in 0..100 {
        screen.text(80, 24);
    }
    assert!(since.elapsed() < Duration::from_secs(10), "it is wrapped once, not for every frame");
    assert!(screen.text(80, 24).contains("of 13517"), "all of it can be reached:\n{}", screen.text(80, 24));
    assert_eq!(screen.press('a'), [], "it was not shown");
    screen.model.down = 13_100;
    screen.text(80, 24);
    assert_eq!(screen.press('a'), [], "its end was shown, but not the rows before it");
    screen.model.down = 0;
    for _ in 0..13_517 {
        if screen.model.seen.all() {
            break;
        }
        screen.press(' ');
        screen.text(80, 24);
    }
    assert_eq!(respond(&screen.press('a'))["digest"], digest);
}

#[test]
fn a_long_call_is_allowed_only_after_its_last_row_was_shown() {
    let mut screen = Screen::asking("Bash", long(20));
    screen.is_drawn_as("long", 80, 24);
    for key in ['a', 'r'] {
        assert_eq!(screen.press(key), []);
        assert!(
            screen.text(80, 24).contains("rows were shown; press space to read on"),
            "{}",
            screen.text(80, 24)
        );
        assert_eq!(screen.model.mode, Mode::Moving);
    }
    screen.press(' ');
    screen.press('?');
    screen.text(80, 24);
    screen.press('?');
    assert_eq!(screen.press('a'), [], "the help covered the approval");
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
    assert_eq!(tiny.press('a'), [], "the screen is too small to show a row");
}

#[test]
fn a_short_call_is_allowed_by_one_key_and_a_changed_one_is_read_again() {
    let mut screen = Screen::asking("Bash", long(5));
    let mut other = screen.model.approvals[0].clone();
    other.input = long(20).as_object().unwrap().clone();
    screen.apply(Event::Read(Box::new(Reviewed { approval: other, file: None })));
    screen.text(80, 24);
    assert_eq!(screen.press('a'), [], "the input has changed");
    let mut screen = Screen::asking("Bash", long(5));
    let digest = screen.model.approvals[0].digest.clone();
    assert_eq!(respond(&screen.press('a'))["digest"], json!(digest));
    assert!(screen.text(80, 24).contains("… lead/parser: Bash"), "{}", screen.text(80, 24));
}

#[test]
fn an_edit_is_shown_in_full_and_confirmed() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls", "description": "look"}));
    let effects = screen.press('e');
    let [Effect::Edit(of, editable)] = &effects[..] else { panic!("{effects:?}") };
    let (of, mut input) = (*of, editable.input.clone());
    input.insert("command".to_owned(), json!("ls\u{a0}-a "));
    screen.apply(Event::Edited(of, input.clone()));
    screen.is_drawn_as("edited", 80, 24);
    let key = KeyEvent::new(KeyCode::Char('y'), KeyModifiers::NONE);
    let at = screen.at + Duration::from_millis(100);
    assert_eq!(update(&mut screen.model, Event::Key(key), at), [], "it was typed for the editor");
    let sent = respond(&screen.press('y'));
    let digest = screen.model.approvals[0].digest.clone();
    assert_eq!((&sent["updated_input"], &sent["digest"]), (&Value::Object(input.clone()), &json!(digest)));
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    input.insert("command".to_owned(), long(40)["command"].clone());
    screen.apply(Event::Edited(of, input));
    screen.text(80, 24);
    assert_eq!(screen.press('y'), [], "not all of it was shown");
    while !screen.model.seen.all() {
        screen.press(' ');
        screen.text(80, 24);
    }
    assert_eq!(respond(&screen.press('y'))["approve"], true);
}

#[test]
fn a_message_disappears_with_the_next_page_and_the_prompt_returns() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    let of = screen.model.approvals[0].id;
    screen.apply(Event::Edited(of, long(40).as_object().unwrap().clone()));
    screen.text(80, 24);
    screen.press('y');
    assert!(screen.text(80, 24).contains("rows were shown"), "{}", screen.text(80, 24));
    screen.press(' ');
    assert!(screen.text(80, 24).contains("Allow it with this input? y / n"), "{}", screen.text(80, 24));
}

#[test]
fn an_edit_of_escaped_characters_warns_that_the_escapes_will_run() {
    let mut screen = Screen::asking("Bash", json!({"command": "echo \u{1b}a"}));
    let effects = screen.press('e');
    let [Effect::Edit(of, editable)] = &effects[..] else { panic!("{effects:?}") };
    let (of, mut input) = (*of, editable.input.clone());
    input.insert("command".to_owned(), json!("echo \\u{1b}b"));
    screen.apply(Event::Edited(of, input));
    let drawn = screen.text(80, 24);
    assert!(drawn.contains("- echo \\u{1b}a") && drawn.contains("+ echo \\\\u{1b}b"), "{drawn}");
    assert!(drawn.contains("The escapes will run, not the characters"), "{drawn}");
}

#[test]
fn another_width_restarts_reading() {
    let mut screen = Screen::asking("Bash", long(60));
    screen.press(' ');
    screen.text(80, 24);
    assert!(screen.model.down > 0);
    screen.text(100, 24);
    assert_eq!(screen.model.down, 0, "its rows are others");
    for _ in 0..10 {
        screen.press(' ');
        screen.text(100, 24);
    }
    assert_eq!(respond(&screen.press('a'))["approve"], true);
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
