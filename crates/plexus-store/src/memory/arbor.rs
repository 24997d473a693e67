//! The reads of conversation trees in memory. A search folds case, but not diacritics.

use async_trait::async_trait;
use plexus_protocol::arbor::{Node, NodeSummary, TreeSession, TreeSummary};
use plexus_protocol::{NodeId, TreeId};

use super::MemoryStore;
use super::reads::count;
use super::tables::{StoredNode, Tables};
use crate::node_text::{searchable, spaced, tokens};
use crate::page::Page;
use crate::{Arbor, ResumePoint, SearchHit, StoreError};

impl Tables {
    fn tree_summary(&self, id: TreeId) -> Option<TreeSummary> {
        let tree = self.trees.get(&id)?;
        let mut sessions: Vec<_> = self.sessions.values().filter(|session| session.row.tree == id).collect();
        sessions.sort_by_key(|session| session.ordinal);
        let sessions = sessions.into_iter().map(|session| TreeSession {
            id: session.row.id,
            name: session.row.name.clone(),
            head: session.row.head,
            deleted: session.row.deleted_at.is_some(),
        });
        Some(TreeSummary {
            id,
            root: tree.root,
            nodes: self.nodes_in_order().filter(|node| node.tree == id).count() as u64,
            sessions: sessions.collect(),
            created_at: tree.created_at,
        })
    }

    /// The nodes after `after`, oldest first.
    fn summaries(
        &self,
        after: Option<NodeId>,
        limit: u64,
        matches: impl Fn(&StoredNode) -> bool,
    ) -> Vec<NodeSummary> {
        let after = after.and_then(|id| self.nodes.get(&id)).map_or(0, |node| node.ordinal);
        let found = self.nodes_in_order().filter(|node| node.ordinal > after && matches(node));
        found.take(count(limit)).map(|node| node.summary.clone()).collect()
    }

    /// A node and all nodes above it, up to the root.
    fn path_up(&self, from: NodeId) -> impl Iterator<Item = &StoredNode> {
        std::iter::successors(self.nodes.get(&from), |node| self.nodes.get(&node.summary.parent_id?))
    }

    fn path_page(&self, head: NodeId, from: u64, limit: u64) -> Vec<Node> {
        let end = from.saturating_add(limit);
        let on_page = |node: &&StoredNode| (from..end).contains(&node.summary.depth);
        let mut nodes: Vec<_> = self.path_up(head).filter(on_page).collect();
        nodes.reverse();
        let mut page = Page::new();
        for node in nodes {
            if !page.has_room_for(node.content.to_string().len()) {
                break;
            }
            page.push(node.whole());
        }
        page.rows()
    }

    fn search(&self, words: &str, tree: Option<TreeId>, before: Option<NodeId>) -> Vec<SearchHit> {
        let before = before.and_then(|id| self.nodes.get(&id)).map_or(u64::MAX, |node| node.ordinal);
        let phrases: Vec<Vec<String>> = words.split_whitespace().map(|word| tokens(&spaced(word))).collect();
        let contains_all = |node: &&StoredNode| {
            let words_of_node = tokens(&searchable(&node.content));
            let contains_phrase = |phrase: &Vec<String>| {
                phrase.is_empty() || words_of_node.windows(phrase.len()).any(|tokens| tokens == &phrase[..])
            };
            phrases.iter().all(contains_phrase)
        };
        let newest = self.nodes_in_order().rev();
        let found = newest.filter(|node| node.ordinal < before && tree.is_none_or(|tree| node.tree == tree));
        found
            .filter(contains_all)
            .map(|node| SearchHit { tree: node.tree, node: node.summary.clone() })
            .collect()
    }
}

impl StoredNode {
    fn whole(&self) -> Node {
        Node { summary: self.summary.clone(), tree_id: self.tree, content: self.content.clone() }
    }
}

#[async_trait]
impl Arbor for MemoryStore {
    async fn tree(&self, id: TreeId) -> Result<Option<TreeSummary>, StoreError> {
        Ok(self.tables().tree_summary(id))
    }

    async fn trees(&self, after: Option<TreeId>, limit: u64) -> Result<Vec<TreeSummary>, StoreError> {
        let tables = self.tables();
        let after = after.and_then(|id| tables.trees.get(&id)).map(|tree| tree.ordinal);
        let mut trees: Vec<_> =
            tables.trees.iter().filter(|(_, tree)| after.is_none_or(|after| tree.ordinal > after)).collect();
        trees.sort_by_key(|(_, tree)| tree.ordinal);
        Ok(trees.into_iter().take(count(limit)).filter_map(|(id, _)| tables.tree_summary(*id)).collect())
    }

    async fn nodes(
        &self,
        tree: TreeId,
        after: Option<NodeId>,
        limit: u64,
    ) -> Result<Vec<NodeSummary>, StoreError> {
        Ok(self.tables().summaries(after, limit, |node| node.tree == tree))
    }

    async fn leaves(
        &self,
        tree: TreeId,
        after: Option<NodeId>,
        limit: u64,
    ) -> Result<Vec<NodeSummary>, StoreError> {
        Ok(self.tables().summaries(after, limit, |node| node.tree == tree && node.summary.children == 0))
    }

    async fn node(&self, id: NodeId) -> Result<Option<Node>, StoreError> {
        Ok(self.tables().nodes.get(&id).map(StoredNode::whole))
    }

    async fn children(
        &self,
        of: NodeId,
        after: Option<NodeId>,
        limit: u64,
    ) -> Result<Vec<NodeSummary>, StoreError> {
        Ok(self.tables().summaries(after, limit, |node| node.summary.parent_id == Some(of)))
    }

    async fn path(&self, head: NodeId, from: u64, limit: u64) -> Result<Vec<Node>, StoreError> {
        Ok(self.tables().path_page(head, from, limit))
    }

    async fn resume_points(&self, node: NodeId, limit: usize) -> Result<Vec<ResumePoint>, StoreError> {
        let tables = self.tables();
        let points = tables.path_up(node).filter_map(|node| {
            let (session, uuid) = (node.summary.session_id?, node.uuid.clone()?);
            Some(ResumePoint { session, uuid })
        });
        Ok(points.take(limit).collect())
    }

    async fn search(
        &self,
        words: &str,
        tree: Option<TreeId>,
        before: Option<NodeId>,
        limit: u64,
    ) -> Result<Vec<SearchHit>, StoreError> {
        let mut found = self.tables().search(words, tree, before);
        found.truncate(count(limit));
        Ok(found)
    }
}
