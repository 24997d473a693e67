//! Creating, renaming, archiving, configuring and deleting sessions.

use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::{AskedOf, SessionId, SessionName};

use super::{Commit, audit_entries};
use crate::rows::{NewNode, SessionUpdate, Stored, TurnKey};
use crate::{
    AdoptedConversation, ConversationStart, NewSession, Refusal, SessionConfig, SessionRow, TurnStatus,
};

impl Commit<'_> {
    pub(super) fn create_session(&mut self, new: &NewSession) -> Stored<()> {
        self.check_name_is_free(&new.name, new.id, &new.answers_to)?;
        if let Some(host) = &new.host {
            self.check_takes_sessions(host)?;
        }
        // Deleting a session deletes its whole subtree: a session cannot be created below a deleted one.
        if let AskedOf::Session { id } = new.answers_to {
            self.existing_session(id)?;
            self.check_left(id, &[BudgetLimit::Children])?;
            self.spend(id, BudgetLimit::Children, 1)?;
        }
        match &new.start {
            ConversationStart::NewTree => self.rows.insert_tree(new.tree, new.head, self.at)?,
            ConversationStart::Forked => {}
            ConversationStart::Adopted(AdoptedConversation { session, root, messages }) => {
                self.rows.insert_tree(new.tree, *root, self.at)?;
                for row in messages {
                    self.rows.insert_node(&NewNode { row, session: *session, at: self.at })?;
                }
            }
        }
        self.rows.insert_session(&SessionRow {
            id: new.id,
            name: new.name.clone(),
            answers_to: new.answers_to.clone(),
            config: new.config.clone(),
            tree: new.tree,
            beginning: new.head,
            head: new.head,
            latest_turn: 0,
            latest_run: 0,
            created_at: self.at,
            deleted_at: None,
            cost_usd: 0.0,
            woken_to: 0,
            title: None,
            archived_at: None,
            host: new.host.clone(),
        })?;
        self.audit(audit_entries::session_created(self.at, new))
    }

    pub(super) fn rename_session(&mut self, id: SessionId, name: &SessionName) -> Stored<()> {
        let creator = self.existing_session(id)?.answers_to;
        self.check_name_is_free(name, id, &creator)?;
        self.identities.remove(&id);
        let approvals = self.published.approvals.iter_mut().map(|row| &mut row.approval);
        for approval in approvals.filter(|approval| approval.session_id == id) {
            approval.session_name = name.clone();
        }
        self.rows.update_session(id, SessionUpdate::Name(name))
    }

    pub(super) fn set_title(&mut self, id: SessionId, title: &str) -> Stored<()> {
        self.existing_session(id)?;
        self.rows.update_session(id, SessionUpdate::Title(title))
    }

    /// A session that works or waits for an answer must stay visible.
    pub(super) fn archive(&mut self, id: SessionId) -> Stored<()> {
        let row = self.existing_session(id)?;
        let latest = TurnKey { session: id, turn: row.latest_turn };
        let is_running = self.rows.turn(latest)?.is_some_and(|turn| turn.status == TurnStatus::Running);
        let outside_any = TurnKey { session: id, turn: 0 };
        if is_running
            || self.rows.has_pending_approval(latest)?
            || self.rows.has_pending_approval(outside_any)?
        {
            return Err(Refusal::Busy(row.name).into());
        }
        self.rows.update_session(id, SessionUpdate::ArchivedAt(Some(self.at)))
    }

    pub(super) fn unarchive(&mut self, id: SessionId) -> Stored<()> {
        self.existing_session(id)?;
        self.rows.update_session(id, SessionUpdate::ArchivedAt(None))
    }

    pub(super) fn configure(&mut self, id: SessionId, config: &SessionConfig) -> Stored<()> {
        self.existing_session(id)?;
        self.rows.update_session(id, SessionUpdate::Config(config))
    }

    /// The secrets in its configuration are deleted with it; its processes have them for as long as they run.
    pub(super) fn delete_session(&mut self, id: SessionId) -> Stored<()> {
        self.return_unused_budget(id)?;
        let mut config = self.existing_session(id)?.config;
        config.mcp_servers.clear();
        config.project = None;
        config.imported = None;
        config.hooks = None;
        self.rows.update_session(id, SessionUpdate::Deleted { at: self.at, config: &config })
    }

    /// A name is unique among the sessions of one creator.
    fn check_name_is_free(&self, name: &SessionName, own: SessionId, creator: &AskedOf) -> Stored<()> {
        let others = self.rows.sessions_named(name.as_str())?;
        match others.iter().find(|other| other.id != own && other.answers_to == *creator) {
            None => Ok(()),
            Some(SessionRow { archived_at: Some(_), .. }) => {
                Err(Refusal::ArchivedNameTaken(name.to_string()).into())
            }
            Some(_) => Err(Refusal::NameTaken(name.to_string()).into()),
        }
    }
}
