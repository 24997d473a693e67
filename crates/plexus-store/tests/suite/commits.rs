//! Commits are atomic, and the feed numbers what they publish.

use std::sync::Arc;

use plexus_protocol::{ApprovalStatus, SessionId};
use plexus_store::{Change, FeedEntry, FeedKind, OpenFilter, Store};
use serde_json::json;

use crate::common::*;

fn notice(to: &str, session: SessionId, text: &str) -> Change {
    Change::Notice { to: to.to_owned(), session, data: json!(text) }
}

pub async fn a_commit_is_applied_completely_or_not_at_all(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let id = ask(&*store, question(session, 1, "t")).await;
    commit(&*store, allows(id)).await;
    let (events, head) = (store.event_count(session, 1).await.unwrap(), store.feed_head().await.unwrap());
    let changes = vec![
        Change::CreateSession(Box::new(new_session("b"))),
        Change::RenameSession(session, name("c")),
        says(session, 1, "x"),
        notice("operator", session, "x"),
        Change::Ask(Box::new(question(session, 1, "u"))),
        denies(id),
    ];
    assert!(store.commit(NOW, changes).await.is_err());
    assert!(session_named(&*store, "b").await.is_none());
    assert_eq!(session_named(&*store, "a").await.unwrap().id, session);
    assert_eq!(store.event_count(session, 1).await.unwrap(), events);
    assert_eq!(store.feed_head().await.unwrap(), head);
    assert!(store.open_approvals(OpenFilter::All).await.unwrap().is_empty());
    // The rolled back number is used for the next entry.
    assert_eq!(commit(&*store, notice("operator", session, "y")).await.feed[0].number, head + 1);
}

pub async fn a_commit_returns_approvals_in_their_final_state(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let new = question(session, 1, "t");
    let id = new.approval.id;
    let changes = vec![Change::Ask(Box::new(new)), denies(id), Change::RenameSession(session, name("b"))];
    let made = store.commit(NOW, changes).await.unwrap();
    let [row] = &made.approvals[..] else { panic!("{made:?}") };
    assert_eq!((row.approval.status, &row.approval.session_name), (ApprovalStatus::Denied, &name("b")));
    assert_eq!((made.events.len(), made.feed.len()), (2, 2));
    let nothing = store.commit(NOW, Vec::new()).await.unwrap();
    assert!(nothing.events.is_empty() && nothing.feed.is_empty() && nothing.approvals.is_empty());
}

pub async fn feed_numbers_have_no_gaps_and_never_decrease(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let tasks: Vec<_> = (0..40)
        .map(|n| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let (to, text) = (format!("to-{}", n % 3), n.to_string());
                let mut changes = vec![notice(&to, session, &text)];
                if n % 5 == 0 {
                    changes.push(says(SessionId::random(), 1, "refused"));
                }
                store.commit(NOW, changes).await.ok().map(|made| made.feed[0].number)
            })
        })
        .collect();
    let mut numbers = Vec::new();
    for task in tasks {
        numbers.extend(task.await.unwrap());
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=32).collect::<Vec<u64>>());
    assert_eq!(store.feed_head().await.unwrap(), 32);
}

pub async fn each_addressee_reads_its_own_feed(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let to_x = |n: u32| notice("x", session, &n.to_string());
    let changes = vec![to_x(0), notice("y", session, "y"), to_x(1), to_x(2)];
    let made = store.commit(NOW, changes).await.unwrap();
    let numbers: Vec<_> = made.feed.iter().map(|entry| entry.number).collect();
    let texts = |after, limit| {
        let store = Arc::clone(&store);
        async move {
            let feed = store.feed("x", after, limit).await.unwrap();
            assert!(feed.iter().all(|entry| {
                (entry.to.as_str(), entry.kind(), entry.session) == ("x", FeedKind::Notice, session)
            }));
            feed.into_iter().map(|entry| (entry.number, entry.entry)).collect::<Vec<_>>()
        }
    };
    let [first, second, third] = [(numbers[0], "0"), (numbers[2], "1"), (numbers[3], "2")]
        .map(|(number, text)| (number, FeedEntry::Notice(json!(text))));
    assert_eq!(texts(0, 10).await, [first.clone(), second.clone(), third.clone()]);
    assert_eq!(texts(0, 2).await, [first, second.clone()]);
    assert_eq!(texts(numbers[0], 10).await, [second, third]);
    assert!(texts(numbers[3], 10).await.is_empty());
    assert!(store.feed("z", 0, 10).await.unwrap().is_empty());
}

pub async fn a_read_sees_every_commit_that_was_acknowledged(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let tasks: Vec<_> = (1..=8)
        .map(|turn| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for n in 1..=50 {
                    commit(&*store, says(session, turn, "x")).await;
                    assert_eq!(store.event_count(session, turn).await.unwrap(), n);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

pub async fn reads_accept_numbers_up_to_the_maximum(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    store.commit(NOW, vec![says(session, 1, "x"), notice("x", session, "x")]).await.unwrap();
    assert_eq!(store.events(session, 1, 0, u64::MAX).await.unwrap().len(), 1);
    assert!(store.events(session, 1, u64::MAX, u64::MAX).await.unwrap().is_empty());
    assert!(store.events(session, u64::MAX, 0, 1).await.unwrap().is_empty());
    assert_eq!(store.event_count(session, u64::MAX).await.unwrap(), 0);
    assert_eq!(store.feed("x", 0, u64::MAX).await.unwrap().len(), 1);
    assert!(store.feed("x", u64::MAX, 1).await.unwrap().is_empty());
    assert!(store.turn(session, u64::MAX).await.unwrap().is_none());
    let far = Change::Position { reader: "x".to_owned(), session, turn: 1, position: u64::MAX };
    commit(&*store, far).await;
    assert!(store.position("x", session, 1).await.unwrap() > u64::from(u32::MAX));
}

pub async fn an_observer_is_notified_before_the_caller_even_if_the_caller_is_dropped(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let (notify, mut notified) = tokio::sync::mpsc::unbounded_channel();
    store.observe(Box::new(move |committed| {
        let _ = notify.send(committed.events.len());
    }));
    assert!(store.commit(NOW, vec![says(SessionId::random(), 1, "refused")]).await.is_err());
    store.commit(NOW, vec![says(session, 1, "x"), says(session, 1, "y")]).await.unwrap();
    assert_eq!(notified.try_recv(), Ok(2), "the second commit only: the first was refused");
    // The caller drops its commit as soon as it is queued.
    let mut commit = store.commit(NOW, vec![says(session, 1, "z")]);
    assert!(polled_once(&mut commit).await.is_none_or(|done| done.is_ok()));
    drop(commit);
    assert_eq!(notified.recv().await, Some(1));
}

/// Polls a future once.
async fn polled_once<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(match std::pin::Pin::new(&mut *future).poll(context) {
            std::task::Poll::Ready(done) => Some(done),
            std::task::Poll::Pending => None,
        })
    })
    .await
}
