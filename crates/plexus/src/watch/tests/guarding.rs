//! Input that must not answer: keys meant for something else, pastes, and keys while the hub is disconnected or the list shows another approval.

use super::*;

#[test]
fn with_a_filter_no_key_acts_on_hidden_rows() {
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
    assert!(drawn.contains("parser: Bash") && !drawn.contains("open   parser"), "{drawn}");
    for key in ['i', 's'] {
        assert_eq!((screen.press(key), &screen.model.mode), (vec![], &Mode::Moving), "{key}");
    }
    assert!(screen.text(80, 24).contains("the list does not show this session"));
    assert_eq!(respond(&screen.press('a'))["approval_id"], json!(id(101)), "the shown approval is answered");
}

#[test]
fn an_approval_that_leaves_the_list_while_typing_is_not_answered() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    screen.types("/parser\n");
    screen.text(80, 24);
    screen.types("dbecause");
    let mut renamed = screen.model.approvals[0].clone();
    renamed.session_name = serde_json::from_value(json!("other")).unwrap();
    renamed.session_path = Some("lead/other".to_owned());
    screen.apply(Event::Asked(Box::new(renamed)));
    assert_eq!((screen.press('\n'), &screen.model.mode), (vec![], &Mode::Moving));
}

#[test]
fn a_key_pressed_before_an_approval_appeared_does_not_answer_it() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    let pressed_at = screen.at;
    let parser = session(2, "parser", 1, "awaiting_permission");
    screen.apply(Event::Asked(Box::new(approval(2, &parser, "Bash", json!({"command": "rm -r x"})))));
    let mut first = screen.model.approvals[0].clone();
    first.status = plexus_protocol::ApprovalStatus::Withdrawn;
    screen.apply(Event::Resolved(Box::new(first)));
    screen.text(80, 24);
    let key = KeyEvent::new(KeyCode::Char('a'), KeyModifiers::NONE);
    assert_eq!(update(&mut screen.model, Event::Key(key), pressed_at), []);
}

#[test]
fn a_key_meant_for_one_approval_does_not_answer_the_next() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    let parser = session(2, "parser", 1, "awaiting_permission");
    screen.apply(Event::Asked(Box::new(approval(2, &parser, "Bash", json!({"command": "rm -r x"})))));
    let mut first = screen.model.approvals[0].clone();
    first.status = plexus_protocol::ApprovalStatus::Withdrawn;
    screen.apply(Event::Resolved(Box::new(first)));
    screen.text(80, 24);
    let key = KeyEvent::new(KeyCode::Char('a'), KeyModifiers::NONE);
    let at = screen.at + Duration::from_millis(100);
    assert_eq!(update(&mut screen.model, Event::Key(key), at), [], "the other approval has just appeared");
    assert_eq!(respond(&screen.press('a'))["approval_id"], json!(id(102)));
    assert_eq!(screen.press('a'), [], "once is enough");
}

#[test]
fn only_the_approval_on_the_screen_is_answered() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    screen.types("\t\t");
    assert!(screen.text(80, 24).contains("[Sessions]"), "the log is in its place");
    assert_eq!(screen.press('a'), []);
    assert!(screen.text(80, 24).contains("$ ls"), "now it is on the screen");
    assert_eq!(respond(&screen.press('a'))["approve"], true);
}

#[test]
fn a_key_with_control_or_alt_answers_nothing() {
    for modifiers in [KeyModifiers::CONTROL, KeyModifiers::ALT, KeyModifiers::SUPER, KeyModifiers::META] {
        let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
        let press = |screen: &mut Screen, key: char| {
            screen.apply(Event::Key(KeyEvent::new(KeyCode::Char(key), modifiers)))
        };
        for key in ['a', 'd', 'e', 'r', 'p', 'E', 'i', 's', 'q'] {
            assert_eq!(
                (press(&mut screen, key), &screen.model.mode),
                (vec![], &Mode::Moving),
                "{modifiers} {key}"
            );
        }
        screen.press('s');
        screen.text(80, 24);
        assert_eq!(press(&mut screen, 'y'), [], "{modifiers}");
        assert_eq!(screen.press('y').len(), 1, "the key alone still answers");
    }
}

#[test]
fn a_paste_answers_nothing() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    assert_eq!(screen.apply(Event::Pasted("aaaa".to_owned())), []);
    screen.press('d');
    screen.apply(Event::Pasted("as said\nq".to_owned()));
    assert_eq!(respond(&screen.press('\n'))["message"], "as said");
}

#[test]
fn a_disconnected_hub_is_shown_and_takes_no_answers() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    screen.types("dnot");
    screen.apply(Event::Disconnected);
    assert_eq!(screen.types(" now\n"), [], "the typed text is kept");
    assert!(screen.text(80, 24).contains("Disconnected. Reconnecting…"));
    let advice = "Reconnecting… Is the hub running? Try `plexus up`.";
    for (secs, advised) in [(1, false), (10, false), (11, true)] {
        screen.apply(Event::Tick(NOW + secs));
        assert_eq!(screen.text(80, 24).contains(advice), advised, "{}", screen.text(80, 24));
    }
    screen.apply(Event::Open(screen.model.approvals.clone()));
    assert_eq!(respond(&screen.press('\n'))["message"], "not now");
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    screen.apply(Event::Disconnected);
    screen.text(80, 24);
    for key in ['a', 'd', 'e', 'r', 'i', 's'] {
        assert_eq!((screen.press(key), &screen.model.mode), (vec![], &Mode::Moving), "{key}");
    }
    assert!(screen.text(80, 24).contains("you cannot answer until the hub responds"));
    screen.apply(Event::Open(Vec::new()));
    let drawn = screen.text(80, 24);
    assert!(!drawn.contains("Disconnected. ") && drawn.contains("0 open"), "{drawn}");
}

#[test]
fn stopping_needs_confirmation_and_a_filter_narrows_the_list() {
    let mut screen = Screen::asking("Bash", json!({"command": "ls"}));
    assert_eq!(screen.press('s'), []);
    assert!(screen.text(80, 24).contains("Stop lead/parser and all below it? y / n"));
    assert_eq!(screen.press('n'), []);
    screen.press('s');
    screen.text(80, 24);
    let stopped = screen.press('y');
    assert!(matches!(&stopped[..], [Effect::Call { method: "claudecode.stop", .. }]), "{stopped:?}");
    screen.types("/doc\n");
    let drawn = screen.text(80, 24);
    assert!(drawn.contains("docs") && !drawn.contains("runs lead"), "{drawn}");
    let docs: SessionId = id(3).parse().unwrap();
    assert_eq!(screen.model.session, Some(docs));
}
