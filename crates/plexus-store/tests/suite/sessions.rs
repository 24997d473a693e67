//! Sessions, their names and the conversation trees they stand in.

use std::sync::Arc;

use plexus_protocol::arbor::Role;
use plexus_protocol::{ApprovalKind, AskedOf, NodeId, SessionId};
use plexus_store::{CallInput, CallRow, Change, NewSession, NodeRow, Refusal, Store, TurnStatus, Verdict};
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
        commit(&*store, Change::AddNode(new.id, Arc::new(node))).await;
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
    let open: Vec<_> = second.open.iter().map(|open| (open.kind, open.tool_use_id.as_str())).collect();
    assert_eq!(open, [(ApprovalKind::Tool, "open"), (ApprovalKind::Plan, "plan")], "oldest first");
    assert!(second.open.iter().all(|open| open.tool_name == "Bash" && open.asked_of == AskedOf::Operator));
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

pub async fn the_first_prompt_becomes_the_title_until_another_is_set(store: Arc<dyn Store>) {
    let id = create(&*store, "a").await;
    let title = async || store.session(id).await.unwrap().unwrap().title;
    assert_eq!(title().await, None);
    let prompted = |turn, prompt: &str, woken_to| Change::StartTurn {
        session: id,
        turn,
        prompt: prompt.to_owned(),
        woken_to,
    };
    commit(&*store, prompted(1, "Sessions below you have requested approvals.", Some(1))).await;
    assert_eq!(title().await, None, "the hub's own prompt is no title");
    commit(&*store, ends(id, 1)).await;
    commit(&*store, prompted(2, "## Fix the parser\nIt fails.", None)).await;
    assert_eq!(title().await.as_deref(), Some("Fix the parser"));
    commit(&*store, ends(id, 2)).await;
    commit(&*store, prompted(3, "Now the tests", None)).await;
    assert_eq!(title().await.as_deref(), Some("Fix the parser"), "it is derived once");
    commit(&*store, Change::SetTitle(id, "Parser".to_owned())).await;
    assert_eq!(title().await.as_deref(), Some("Parser"));
    let listed = store.sessions_with_state().await.unwrap();
    assert_eq!(listed[0].row.title.as_deref(), Some("Parser"));
    let nobody = SessionId::random();
    let refusal = refused(&*store, Change::SetTitle(nobody, "x".to_owned())).await;
    assert!(matches!(refusal, Refusal::NoSuchSession(id) if id == nobody));
}

pub async fn a_session_is_archived_until_it_works_or_asks_again(store: Arc<dyn Store>) {
    let id = create(&*store, "a").await;
    start_run(&*store, id).await;
    let archived = async || store.session(id).await.unwrap().unwrap().archived_at;
    commit(&*store, Change::Archive(id)).await;
    assert_eq!(archived().await, Some(NOW));
    commit(&*store, Change::Unarchive(id)).await;
    assert_eq!(archived().await, None);
    commit(&*store, Change::Archive(id)).await;
    start_turn(&*store, id, 1).await;
    assert_eq!(archived().await, None, "it works");
    commit(&*store, ends(id, 1)).await;
    commit(&*store, Change::Archive(id)).await;
    ask(&*store, question(id, 0, "outside")).await;
    assert_eq!(archived().await, None, "it asks");
}

pub async fn a_busy_session_cannot_be_archived(store: Arc<dyn Store>) {
    let [works, asks] = [create(&*store, "works").await, create(&*store, "asks").await];
    start_run(&*store, asks).await;
    start_turn(&*store, works, 1).await;
    let approval = ask(&*store, question(asks, 0, "outside")).await;
    for id in [works, asks] {
        assert!(matches!(refused(&*store, Change::Archive(id)).await, Refusal::Busy(_)));
    }
    commit(&*store, ends(works, 1)).await;
    commit(&*store, allows(approval)).await;
    for id in [works, asks] {
        commit(&*store, Change::Archive(id)).await;
    }
}

pub async fn the_name_of_an_archived_session_is_taken(store: Arc<dyn Store>) {
    let id = create(&*store, "a").await;
    commit(&*store, Change::Archive(id)).await;
    let again = Change::CreateSession(Box::new(new_session("a")));
    let refusal = refused(&*store, again).await;
    assert!(matches!(&refusal, Refusal::ArchivedNameTaken(name) if name == "a"), "{refusal}");
    assert_eq!(session_named(&*store, "a").await.unwrap().id, id);
}

pub async fn a_session_is_listed_with_its_unfinished_calls_and_its_last_event(store: Arc<dyn Store>) {
    let id = create(&*store, "a").await;
    let key = start_run(&*store, id).await;
    let listed = async || store.sessions_with_state().await.unwrap().remove(0);
    assert_eq!(listed().await.last_event_at, None);
    start_turn(&*store, id, 1).await;
    let call = |turn, tool_use_id: &str| CallRow {
        key,
        turn,
        tool_use_id: tool_use_id.to_owned(),
        tool_name: "Bash".to_owned(),
        digest: String::new(),
        request_id: String::new(),
        verdict: Verdict::NoOpinion,
        summary: format!("run {tool_use_id}"),
    };
    let seen =
        |turn, tool_use_id: &str| Change::Call(Box::new(call(turn, tool_use_id)), CallInput::default());
    commit(&*store, seen(1, "lost")).await;
    commit(&*store, ends(id, 1)).await;
    assert!(listed().await.calls.is_empty(), "no turn runs");
    start_turn(&*store, id, 2).await;
    for n in 1..=25 {
        commit(&*store, seen(2, &n.to_string())).await;
    }
    commit(&*store, Change::ReleaseKeys(key, "24".to_owned())).await;
    let calls = listed().await.calls;
    assert_eq!(calls.len(), 20, "the number is limited");
    assert_eq!((calls[0].tool_use_id.as_str(), calls[1].summary.as_str()), ("25", "run 23"), "newest first");
    assert_eq!(listed().await.last_event_at, None);
    store.commit(NOW + 3, vec![says(id, 2, "a"), says(id, 2, "b")]).await.unwrap();
    store.commit(NOW + 7, vec![says(id, 2, "c")]).await.unwrap();
    assert_eq!(listed().await.last_event_at, Some(NOW + 7));
}

pub async fn the_newest_sessions_include_deleted_ones(store: Arc<dyn Store>) {
    let [a, b, c] = [create(&*store, "a").await, create(&*store, "b").await, create(&*store, "c").await];
    commit(&*store, Change::DeleteSession(b)).await;
    let newest = async |limit| -> Vec<SessionId> {
        store.newest_sessions(limit).await.unwrap().into_iter().map(|row| row.id).collect()
    };
    assert_eq!(newest(10).await, [c, b, a]);
    assert_eq!(newest(2).await, [c, b]);
}
