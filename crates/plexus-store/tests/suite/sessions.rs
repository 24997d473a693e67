//! Sessions, their names and the conversation trees they stand in.

use std::sync::Arc;

use plexus_protocol::arbor::Role;
use plexus_protocol::{ApprovalKind, AskedOf, NodeId, SessionId};
use plexus_store::{Change, NewSession, NodeRow, Refusal, Store, TurnStatus};
use serde_json::json;

use crate::common::*;

pub async fn a_session_is_read_as_it_was_created(store: Arc<dyn Store>) {
    let mut new = new_session("a");
    new.answers_to = AskedOf::Parent { id: "outside".to_owned() };
    commit(&*store, Change::CreateSession(Box::new(new.clone()))).await;
    let by_id = store.session(new.id).await.unwrap().unwrap();
    let by_name = session_named(&*store, "a").await.unwrap();
    for row in [by_id, by_name] {
        assert_eq!(row.id, new.id);
        assert_eq!(row.name, new.name);
        assert_eq!(row.answers_to, new.answers_to);
        assert_eq!(row.config, new.config);
        assert_eq!((row.tree, row.head), (new.tree, new.head));
        assert_eq!((row.latest_turn, row.latest_run), (0, 0));
        assert_eq!((row.created_at, row.deleted_at), (NOW, None));
    }
}

pub async fn a_name_is_free_below_another_creator(store: Arc<dyn Store>) {
    let below = |parent: &AskedOf, text: &str| NewSession { answers_to: parent.clone(), ..new_session(text) };
    let one = AskedOf::Session { id: create(&*store, "one").await };
    let other = AskedOf::Session { id: create(&*store, "other").await };
    let outside = ["x", "y"].map(|id| AskedOf::Parent { id: id.to_owned() });
    let creators = [vec![AskedOf::Operator, one.clone(), other], outside.to_vec()].concat();
    for creator in &creators {
        commit(&*store, Change::CreateSession(Box::new(below(creator, "worker")))).await;
        let again = Change::CreateSession(Box::new(below(creator, "worker")));
        assert!(matches!(refused(&*store, again).await, Refusal::NameTaken(name) if name == "worker"));
    }
    assert_eq!(store.sessions_named("worker").await.unwrap().len(), creators.len());

    let spare = below(&one, "spare");
    let id = spare.id;
    commit(&*store, Change::CreateSession(Box::new(spare))).await;
    let rename = Change::RenameSession(id, name("worker"));
    assert!(matches!(refused(&*store, rename).await, Refusal::NameTaken(_)), "its sibling has that name");
    commit(&*store, Change::RenameSession(id, name("other"))).await;
}

pub async fn names_are_unique_among_sessions_that_are_not_deleted(store: Arc<dyn Store>) {
    let a = create(&*store, "a").await;
    let b = create(&*store, "b").await;
    let again = Change::CreateSession(Box::new(new_session("a")));
    assert!(matches!(refused(&*store, again).await, Refusal::NameTaken(name) if name == "a"));
    let rename = Change::RenameSession(b, name("a"));
    assert!(matches!(refused(&*store, rename).await, Refusal::NameTaken(name) if name == "a"));
    commit(&*store, Change::RenameSession(a, name("a"))).await;
    commit(&*store, Change::RenameSession(a, name("c"))).await;
    commit(&*store, Change::RenameSession(b, name("a"))).await;
    assert_eq!(session_named(&*store, "a").await.unwrap().id, b);
    assert_eq!(session_named(&*store, "c").await.unwrap().id, a);
    assert!(session_named(&*store, "b").await.is_none());
}

pub async fn a_deleted_session_frees_its_name_and_can_still_be_read(store: Arc<dyn Store>) {
    let old = create(&*store, "a").await;
    start_turn(&*store, old, 1).await;
    store.commit(NOW + 5, vec![Change::DeleteSession(old)]).await.unwrap();
    assert_eq!(store.session(old).await.unwrap().unwrap().deleted_at, Some(NOW + 5));
    assert!(session_named(&*store, "a").await.is_none());
    assert!(store.sessions().await.unwrap().is_empty());
    let new = create(&*store, "a").await;
    assert_eq!(session_named(&*store, "a").await.unwrap().id, new);

    for change in [
        Change::DeleteSession(old),
        Change::RenameSession(old, name("b")),
        Change::StartTurn { session: old, turn: 2, prompt: String::new(), woken_to: None },
    ] {
        assert!(matches!(refused(&*store, change).await, Refusal::NoSuchSession(id) if id == old));
    }
    // Its child may still work for a moment. That work is not lost.
    commit(&*store, says(old, 1, "last words")).await;
    assert_eq!(store.event_count(old, 1).await.unwrap(), 1);
}

pub async fn rows_that_do_not_exist_are_not_found(store: Arc<dyn Store>) {
    let nobody = SessionId::random();
    assert!(store.session(nobody).await.unwrap().is_none());
    assert!(session_named(&*store, "nobody").await.is_none());
    assert!(store.turn(nobody, 1).await.unwrap().is_none());
    assert_eq!(store.event_count(nobody, 1).await.unwrap(), 0);
    assert_eq!(store.position("operator", nobody, 1).await.unwrap(), 0);
    assert_eq!(store.feed_head().await.unwrap(), 0);
    for change in [
        Change::DeleteSession(nobody),
        Change::RenameSession(nobody, name("a")),
        Change::StartTurn { session: nobody, turn: 1, prompt: String::new(), woken_to: None },
        Change::Progress(nobody, 1, json!({})),
        says(nobody, 1, "hello"),
        Change::Ask(Box::new(question(nobody, 1, "t"))),
        Change::Notice { to: "operator".to_owned(), session: nobody, data: json!({}) },
        Change::Position { reader: "operator".to_owned(), session: nobody, turn: 1, position: 1 },
    ] {
        let shown = format!("{change:?}");
        assert!(
            matches!(refused(&*store, change).await, Refusal::NoSuchSession(id) if id == nobody),
            "{shown}"
        );
    }
}

pub async fn sessions_are_listed_oldest_first(store: Arc<dyn Store>) {
    let mut expected = Vec::new();
    for name in ["z", "m", "a", "q"] {
        expected.push(create(&*store, name).await);
    }
    commit(&*store, Change::DeleteSession(expected.remove(1))).await;
    let listed: Vec<_> = store.sessions().await.unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(listed, expected);
}

pub async fn the_secrets_of_a_session_are_deleted_with_it(store: Arc<dyn Store>) {
    let id = create(&*store, "a").await;
    let config = async || store.session(id).await.unwrap().unwrap().config;
    assert!(serde_json::to_string(&config().await).unwrap().contains("A-SECRET"));
    commit(&*store, Change::DeleteSession(id)).await;
    let left = config().await;
    assert!(!serde_json::to_string(&left).unwrap().contains("A-SECRET"));
    assert_eq!(left.working_dir, "/work/here", "the rest stays");
}

pub async fn a_node_becomes_the_head(store: Arc<dyn Store>) {
    let new = new_session("a");
    commit(&*store, Change::CreateSession(Box::new(new.clone()))).await;
    let mut parent = new.head;
    for role in [Role::User, Role::Assistant] {
        let node = NodeRow {
            id: NodeId::random(),
            tree: new.tree,
            parent,
            role,
            turn: 1,
            uuid: None,
            content: json!([{"type": "text"}]),
        };
        parent = node.id;
        commit(&*store, Change::AddNode(new.id, Box::new(node))).await;
        assert_eq!(store.session(new.id).await.unwrap().unwrap().head, parent);
    }
}

pub async fn a_session_is_listed_with_its_turn_and_its_pending_approvals(store: Arc<dyn Store>) {
    let [gone, quiet, busy] =
        [create(&*store, "gone").await, create(&*store, "quiet").await, create(&*store, "busy").await];
    commit(&*store, Change::DeleteSession(gone)).await;
    start_run(&*store, busy).await;
    start_turn(&*store, busy, 1).await;
    commit(&*store, Change::Progress(busy, 1, json!({"n": 1}))).await;
    let mut plan = question(busy, 1, "plan");
    plan.approval.kind = ApprovalKind::Plan;
    let answered = ask(&*store, question(busy, 1, "answered")).await;
    ask(&*store, question(busy, 1, "open")).await;
    ask(&*store, plan).await;
    commit(&*store, allows(answered)).await;

    let sessions_with_state = store.sessions_with_state().await.unwrap();
    let [first, second] = &sessions_with_state[..] else { panic!("{sessions_with_state:?}") };
    assert_eq!((first.row.id, second.row.id), (quiet, busy));
    assert!(first.turn.is_none() && first.open.is_empty(), "{first:?}");
    let turn = second.turn.as_ref().unwrap();
    assert_eq!((turn.status, &turn.progress, turn.started_at), (TurnStatus::Running, &json!({"n": 1}), NOW));
    let mut open = second.open.clone();
    open.sort_by_key(|kind| format!("{kind:?}"));
    assert_eq!(open, [ApprovalKind::Plan, ApprovalKind::Tool]);
}

pub async fn nothing_is_created_below_a_deleted_session(store: Arc<dyn Store>) {
    let [gone, never] = [create(&*store, "gone").await, SessionId::random()];
    commit(&*store, Change::DeleteSession(gone)).await;
    for id in [gone, never] {
        let mut new = new_session("orphan");
        new.answers_to = AskedOf::Session { id };
        let refusal = refused(&*store, Change::CreateSession(Box::new(new))).await;
        assert!(matches!(refusal, Refusal::NoSuchSession(who) if who == id), "{refusal:?}");
    }
    assert!(store.sessions_with_state().await.unwrap().is_empty());
}
