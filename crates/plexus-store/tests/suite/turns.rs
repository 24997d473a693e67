//! Turns, their events, and how far each reader has read them.

use std::sync::Arc;

use plexus_protocol::{AskedOf, Event, SessionId};
use plexus_store::{Change, FeedEntry, Refusal, Store, TurnStatus};
use serde_json::{Value, json};

use crate::common::*;

fn end(session: SessionId, turn: u64, status: TurnStatus, summary: &str) -> Change {
    Change::EndTurn {
        session,
        turn,
        status,
        last: Box::new(said("the last")),
        summary: Some(summary.to_owned()),
        cost_usd: 0.5,
    }
}

pub async fn turns_are_numbered_in_order_and_never_overlap(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let begin = |turn| Change::StartTurn { session, turn, prompt: format!("prompt {turn}"), woken_to: None };
    assert!(matches!(refused(&*store, begin(2)).await, Refusal::TurnInProgress(_)));
    commit(&*store, begin(1)).await;
    assert_eq!(store.session(session).await.unwrap().unwrap().latest_turn, 1);
    for turn in [0, 1, 2, 3] {
        assert!(matches!(refused(&*store, begin(turn)).await, Refusal::TurnInProgress(1)));
    }
    commit(&*store, end(session, 1, TurnStatus::Complete, "done")).await;
    assert!(matches!(refused(&*store, begin(3)).await, Refusal::TurnInProgress(_)));
    commit(&*store, begin(2)).await;
    assert_eq!(store.turn(session, 2).await.unwrap().unwrap().prompt, "prompt 2");
    assert_eq!(store.session(session).await.unwrap().unwrap().latest_turn, 2);
}

pub async fn a_turn_stores_the_progress_of_its_owner(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    start_turn(&*store, session, 1).await;
    let turn = store.turn(session, 1).await.unwrap().unwrap();
    assert_eq!((turn.session, turn.turn, turn.status), (session, 1, TurnStatus::Running));
    assert_eq!((turn.run, turn.prompt.as_str(), turn.prompt_uuid.as_str()), (None, "prompt 1", ""));
    assert_eq!((turn.progress, turn.started_at, turn.ended_at), (Value::Null, NOW, None));

    let bind = Change::BindTurn { session, turn: 1, run: 4, prompt_uuid: "uuid".to_owned() };
    let progress = Change::Progress(session, 1, json!({"result": [1, 2]}));
    store.commit(NOW, vec![bind, progress]).await.unwrap();
    let turn = store.turn(session, 1).await.unwrap().unwrap();
    assert_eq!((turn.run, turn.prompt_uuid.as_str()), (Some(4), "uuid"));
    assert_eq!(turn.progress, json!({"result": [1, 2]}));
    let unknown = Change::BindTurn { session, turn: 2, run: 4, prompt_uuid: String::new() };
    assert!(matches!(refused(&*store, unknown).await, Refusal::NoSuchSession(_)));
}

pub async fn a_turn_ends_once(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    start_turn(&*store, session, 1).await;
    let ended = store.commit(NOW + 9, vec![end(session, 1, TurnStatus::Failed, "no luck")]).await.unwrap();
    assert_eq!(ended.events.len(), 1);
    assert_eq!(ended.events[0].event.value(), serde_json::to_value(said("the last")).unwrap());
    let [feed] = &ended.feed[..] else { panic!("{ended:?}") };
    assert_eq!((feed.to.as_str(), feed.session), ("operator", session));
    let (status, summary) = (TurnStatus::Failed, Some("no luck".to_owned()));
    assert_eq!(feed.entry, FeedEntry::Finished { turn: 1, status, summary });
    let turn = store.turn(session, 1).await.unwrap().unwrap();
    assert_eq!((turn.status, turn.ended_at), (TurnStatus::Failed, Some(NOW + 9)));

    for turn in [1, 7] {
        let again = commit(&*store, end(session, turn, TurnStatus::Complete, "late")).await;
        assert!(again.events.is_empty() && again.feed.is_empty(), "{again:?}");
    }
    assert_eq!(store.turn(session, 1).await.unwrap().unwrap().status, TurnStatus::Failed);
    assert_eq!(store.event_count(session, 1).await.unwrap(), 1);
    assert_eq!(store.feed_head().await.unwrap(), feed.number);
}

/// A session that this one created, or an agent outside.
async fn create_below(store: &dyn Store, text: &str, answers_to: AskedOf) -> SessionId {
    let mut new = new_session(text);
    new.answers_to = answers_to;
    let id = new.id;
    commit(store, Change::CreateSession(Box::new(new))).await;
    id
}

pub async fn the_end_of_a_turn_is_reported_to_every_agent_above(store: Arc<dyn Store>) {
    for above in [AskedOf::Operator, AskedOf::Parent { id: "outside".to_owned() }] {
        let names = ["top", "middle", "leaf"].map(|name| format!("{name}-{}", above.key().replace(':', "-")));
        let top = create_below(&*store, &names[0], above.clone()).await;
        let middle = create_below(&*store, &names[1], AskedOf::Session { id: top }).await;
        let leaf = create_below(&*store, &names[2], AskedOf::Session { id: middle }).await;
        start_turn(&*store, leaf, 1).await;
        let ended = commit(&*store, end(leaf, 1, TurnStatus::Complete, "done")).await;
        let notified: Vec<_> = ended.feed.iter().map(|entry| entry.to.clone()).collect();
        let mut expected = vec![format!("session:{middle}"), format!("session:{top}")];
        // The operator is notified about sessions that answer to it directly.
        expected.extend((above != AskedOf::Operator).then(|| above.key()));
        assert_eq!(notified, expected);
        let of_first_turn = |entry: &FeedEntry| matches!(entry, FeedEntry::Finished { turn: 1, .. });
        assert!(ended.feed.iter().all(|row| row.session == leaf && of_first_turn(&row.entry)));
        start_turn(&*store, top, 1).await;
        let ended = commit(&*store, end(top, 1, TurnStatus::Complete, "done")).await;
        assert_eq!(ended.feed.iter().map(|entry| entry.to.clone()).collect::<Vec<_>>(), [above.key()]);
    }
}

pub async fn the_costs_of_turns_are_added_up(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    for turn in 1..=3 {
        start_turn(&*store, session, turn).await;
        commit(&*store, end(session, turn, TurnStatus::Interrupted, "")).await;
        commit(&*store, end(session, turn, TurnStatus::Interrupted, "again")).await;
    }
    assert_eq!(store.session(session).await.unwrap().unwrap().cost_usd, 1.5);
}

pub async fn events_are_numbered_from_zero_in_each_turn(store: Arc<dyn Store>) {
    let [a, b] = [create(&*store, "a").await, create(&*store, "b").await];
    let at = |made: &plexus_store::Committed| {
        made.events.iter().map(|event| (event.session, event.turn, event.seq)).collect::<Vec<_>>()
    };
    let changes = vec![says(a, 1, "0"), says(b, 1, "0"), says(a, 1, "1"), says(a, 2, "0")];
    let made = store.commit(NOW, changes).await.unwrap();
    assert_eq!(at(&made), [(a, 1, 0), (b, 1, 0), (a, 1, 1), (a, 2, 0)]);
    assert_eq!(at(&commit(&*store, says(a, 1, "2")).await), [(a, 1, 2)]);
    assert_eq!(store.event_count(a, 1).await.unwrap(), 3);
    assert_eq!(store.events(a, 2, 0, 10).await.unwrap(), made.events[3..]);
}

pub async fn events_are_read_in_pages(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    store.commit(NOW, (0..25).map(|n| says(session, 1, &n.to_string())).collect()).await.unwrap();
    for (from, limit, expected) in
        [(0, 10, 0..10), (10, 10, 10..20), (20, 10, 20..25), (25, 10, 25..25), (3, 0, 3..3)]
    {
        let page = store.events(session, 1, from, limit).await.unwrap();
        let seqs: Vec<u64> = page.iter().map(|event| event.seq).collect();
        assert_eq!(seqs, expected.collect::<Vec<_>>());
        for event in page {
            assert_eq!(event.event.value(), serde_json::to_value(said(&event.seq.to_string())).unwrap());
            assert_eq!(event.at, NOW);
        }
    }
}

pub async fn an_event_is_read_exactly_as_it_was_written(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    // As deep as the parser lets a child's line be; as an event it is wrapped once more.
    let deep = (0..126).fold(json!("deep"), |inner, _| json!({ "in": inner }));
    let data = object(json!({
        "z first": 1, "a last": 51.248_178_375_505_404, "large": u64::MAX, "small": i64::MIN,
        "float": 5e-324, "text": "nul \u{0} line\u{2028} 𝄞 \u{202e}", "deep": deep,
    }));
    let event = Event::System { subtype: "odd".to_owned(), data };
    let made = commit(&*store, Change::Event(session, 1, Arc::new(event.clone()))).await;
    let read = store.events(session, 1, 0, 1).await.unwrap();
    assert_eq!(read, made.events);
    let (read, written) = (read[0].event.as_str().to_owned(), serde_json::to_string(&event).unwrap());
    assert_eq!(read, written);
}

pub async fn positions_belong_to_one_reader_and_one_turn(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let moved = |reader: &str, turn, position| Change::Position {
        reader: reader.to_owned(),
        session,
        turn,
        position,
    };
    store.commit(NOW, vec![moved("x", 1, 5), moved("y", 1, 7), moved("x", 2, 1)]).await.unwrap();
    commit(&*store, moved("x", 1, 3)).await;
    for (reader, turn, expected) in [("x", 1, 3), ("y", 1, 7), ("x", 2, 1), ("y", 2, 0), ("z", 1, 0)] {
        assert_eq!(store.position(reader, session, turn).await.unwrap(), expected, "{reader} {turn}");
    }
}

pub async fn a_page_of_large_events_ends_early(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    start_turn(&*store, session, 1).await;
    let large = "x".repeat(700_000);
    for text in [&large, &large, &"small".to_owned(), &"x".repeat(3_000_000)] {
        commit(&*store, says(session, 1, text)).await;
    }
    for (from, seen) in [(0, vec![0]), (1, vec![1, 2]), (2, vec![2]), (3, vec![3]), (4, vec![])] {
        let page = store.events(session, 1, from, 10).await.unwrap();
        assert_eq!(page.iter().map(|row| row.seq).collect::<Vec<_>>(), seen, "from {from}");
    }
}
