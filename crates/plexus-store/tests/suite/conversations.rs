//! Conversation trees: forks, pages from any depth, long texts, searches and removal.

use std::sync::Arc;

use plexus_protocol::arbor::Role;
use plexus_protocol::{NodeId, SessionId, TreeId};
use plexus_store::{
    Change, ConversationStart, NewSession, NodeRow, Refusal, Removable, ResumePoint, SessionRow, Store,
};
use serde_json::{Value, json};

use crate::common::*;

async fn row(store: &dyn Store, id: SessionId) -> SessionRow {
    store.session(id).await.unwrap().unwrap()
}

fn said(tree: TreeId, parent: NodeId, text: &str) -> NodeRow {
    let content = json!([{"type": "text", "text": text}]);
    let id = NodeId::random();
    NodeRow {
        id,
        tree,
        parent,
        role: Role::Assistant,
        content,
        turn: 1,
        uuid: Some(format!("uuid of {text}")),
    }
}

/// Adds a node for each of `texts`, each below the one before; returns their ids.
async fn says_all(store: &dyn Store, session: SessionId, texts: &[&str]) -> Vec<NodeId> {
    let (mut ids, mut changes) = (Vec::new(), Vec::new());
    let SessionRow { tree, mut head, .. } = row(store, session).await;
    for text in texts {
        let node = said(tree, head, text);
        head = node.id;
        ids.push(node.id);
        changes.push(Change::AddNode(session, Arc::new(node)));
    }
    store.commit(NOW, changes).await.unwrap();
    ids
}

/// A session that continues from a node of another one.
async fn fork(store: &dyn Store, original: SessionId, named: &str, at: NodeId) -> SessionId {
    let SessionRow { tree, config, answers_to, .. } = row(store, original).await;
    let id = SessionId::random();
    let new = NewSession {
        id,
        name: name(named),
        answers_to,
        config,
        tree,
        head: at,
        start: ConversationStart::Forked,
        host: None,
    };
    commit(store, Change::CreateSession(Box::new(new))).await;
    id
}

async fn texts(store: &dyn Store, head: NodeId, from: u64, limit: u64) -> Vec<String> {
    let path = store.path(head, from, limit).await.unwrap();
    path.iter().map(|node| node.content[0]["text"].as_str().unwrap_or("root").to_owned()).collect()
}

pub async fn a_fork_shares_the_nodes_above_it_and_grows_independently(store: Arc<dyn Store>) {
    let one = create(&*store, "one").await;
    let nodes = says_all(&*store, one, &["a", "b", "c"]).await;
    let two = fork(&*store, one, "two", nodes[1]).await;
    says_all(&*store, two, &["d"]).await;
    let (one, two) = (row(&*store, one).await, row(&*store, two).await);
    assert_eq!(texts(&*store, one.head, 0, 100).await, ["root", "a", "b", "c"]);
    assert_eq!(texts(&*store, two.head, 0, 100).await, ["root", "a", "b", "d"]);
    assert_eq!((two.tree, two.beginning), (one.tree, nodes[1]));

    let tree = store.tree(one.tree).await.unwrap().unwrap();
    assert_eq!((tree.nodes, tree.root, tree.sessions.len()), (5, one.beginning, 2));
    assert_eq!(store.trees(None, 10).await.unwrap(), [tree]);
    let children = store.children(nodes[1], None, 10).await.unwrap();
    assert_eq!(children.iter().map(|node| node.id).collect::<Vec<_>>(), [one.head, two.head]);
    let leaves = store.leaves(one.tree, None, 10).await.unwrap();
    assert_eq!(leaves.iter().map(|node| node.id).collect::<Vec<_>>(), [one.head, two.head]);
    let first = store.nodes(one.tree, None, 3).await.unwrap();
    let rest = store.nodes(one.tree, Some(first[2].id), 3).await.unwrap();
    assert_eq!((first.len(), rest.len(), rest[0].preview.as_str()), (3, 2, "c"));
    assert_eq!((first[2].children, first[2].depth, first[2].turn), (2, 2, Some(1)));

    // Claude Code resumes at the last message of any agent, or at one above it.
    let point = |uuid: &str| ResumePoint { session: one.id, uuid: uuid.to_owned() };
    assert_eq!(store.resume_points(nodes[1], 1).await.unwrap(), [point("uuid of b")]);
    assert_eq!(store.resume_points(nodes[1], 9).await.unwrap(), [point("uuid of b"), point("uuid of a")]);
    assert_eq!(store.resume_points(one.beginning, 9).await.unwrap(), []);
    let stray = said(one.tree, NodeId::random(), "of nobody");
    assert!(matches!(
        refused(&*store, Change::AddNode(one.id, Arc::new(stray))).await,
        Refusal::NoSuchNode(_)
    ));
}

pub async fn a_page_of_a_long_path_is_found_from_its_end(store: Arc<dyn Store>) {
    let session = create(&*store, "long").await;
    let said: Vec<String> = (1..=3000).map(|n| n.to_string()).collect();
    for part in said.chunks(500) {
        says_all(&*store, session, &part.iter().map(String::as_str).collect::<Vec<_>>()).await;
    }
    let head = row(&*store, session).await.head;
    for from in [0, 1, 7, 1499, 2047, 2048, 2049, 2990, 3000] {
        let page = texts(&*store, head, from, 5).await;
        let expected: Vec<String> = (from..(from + 5).min(3001))
            .map(|n| if n == 0 { "root".to_owned() } else { n.to_string() })
            .collect();
        assert_eq!(page, expected, "from {from}");
    }
    assert!(texts(&*store, head, 3001, 5).await.is_empty());
    assert!(store.path(NodeId::random(), 0, 5).await.unwrap().is_empty());
}

pub async fn long_texts_are_read_back_whole(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let long = "wörter ".repeat(2000);
    let blocks = json!([
        {"type": "text", "text": "short"},
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": long}], "odd/key~": long},
    ]);
    let SessionRow { tree, head, .. } = row(&*store, session).await;
    let mut node = said(tree, head, "");
    node.content = blocks.clone();
    let id = node.id;
    commit(&*store, Change::AddNode(session, Arc::new(node))).await;
    let more = json!({"type": "text", "text": long});
    let uuid = Some("later".to_owned());
    commit(&*store, Change::ExtendNode { node: id, blocks: vec![more.clone()], uuid }).await;
    let mut expected = blocks.as_array().unwrap().clone();
    expected.push(more);
    let read = store.node(id).await.unwrap().unwrap();
    assert_eq!(read.content, Value::Array(expected));
    let preview = read.summary.preview;
    assert!(preview.starts_with("short wörter ") && preview.chars().count() == 120, "{preview}");
    assert_eq!(store.resume_points(id, 1).await.unwrap()[0].uuid, "later");
}

pub async fn words_are_found_in_any_script(store: Arc<dyn Store>) {
    let (one, two) = (create(&*store, "one").await, create(&*store, "two").await);
    let nodes =
        says_all(&*store, one, &["Größe und Straße", "读取文件内容", "fn main() { println!() }"]).await;
    let other = says_all(&*store, two, &["the GROSSE size of strasse"]).await;
    let found = async |words: &str, tree: Option<TreeId>| -> Vec<NodeId> {
        let found = store.search(words, tree, None, 10).await.unwrap();
        found.into_iter().map(|found| found.node.id).collect()
    };
    assert_eq!(found("größe", None).await, [nodes[0]]);
    assert_eq!(found("grosse", None).await, [other[0]]);
    assert_eq!(found("文件", None).await, [nodes[1]]);
    assert_eq!(found("文内", None).await, []);
    assert_eq!(found("println", None).await, [nodes[2]]);
    assert_eq!(found("main println", None).await, [nodes[2]]);
    assert_eq!(found("main nothing", None).await, []);
    assert_eq!(found("\"unbalanced OR * NEAR(", None).await, []);
    let tree = row(&*store, two).await.tree;
    assert_eq!(found("println", Some(tree)).await, []);
    let newest = store.search("und", None, Some(nodes[0]), 10).await.unwrap();
    assert!(newest.is_empty(), "nothing is older: {newest:?}");
}

pub async fn a_tree_is_removed_once_its_sessions_are_deleted(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let long = "word ".repeat(2000);
    says_all(&*store, session, &vec![long.as_str(); 250]).await;
    let (tree, root) = (row(&*store, session).await.tree, row(&*store, session).await.beginning);
    let remove = || commit(&*store, Change::Remove(Removable::Tree(tree)));
    assert_eq!(remove().await.removed, 0, "a session uses it");
    commit(&*store, Change::DeleteSession(session)).await;
    let mut steps = Vec::new();
    loop {
        match remove().await.removed {
            0 => break,
            removed => steps.push(removed),
        }
    }
    assert_eq!(steps, [100, 100, 50]);
    assert_eq!(store.tree(tree).await.unwrap().unwrap().nodes, 1);
    assert_eq!(row(&*store, session).await.head, root);
    assert!(store.search("word", None, None, 10).await.unwrap().is_empty());
    assert_eq!(store.leaves(tree, None, 10).await.unwrap().len(), 1);
}
