//! Handles a disconnected hub: reports it, and continues after the reconnect. Approvals that could not be read are read then. Lines typed
//! meanwhile are ignored.

use std::time::Duration;

use plexus_protocol::ApprovalStatus;
use tokio::time::Instant;

use super::screen::Bottom;
use super::{Connection, TerminalSession};
use crate::answer_confirmation;
use crate::error::ExpectedError;

/// How long a probe of a disconnected hub may take; Ctrl-C waits for as long.
const PROBE: Duration = Duration::from_secs(2);

impl TerminalSession<'_> {
    /// Reads an approval and shows it, now or after the reconnect.
    pub(super) async fn fetch_approval(&mut self, id: String) -> Result<(), ExpectedError> {
        if !self.unread.contains(&id) {
            self.unread.push_back(id);
        }
        self.read_unread().await
    }

    /// Reads the approvals that have not been read yet.
    pub(super) async fn read_unread(&mut self) -> Result<(), ExpectedError> {
        while let Some(id) = self.unread.front().cloned() {
            match self.hub.review(&id).await {
                Ok(reviewed) => self.add_approval(reviewed),
                Err(error @ (ExpectedError::Lost(_) | ExpectedError::NoHub(_))) => {
                    self.disconnected(&error);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
            self.unread.pop_front();
        }
        Ok(())
    }

    /// Marks the hub as disconnected. Until it responds, no approval can be answered.
    pub(super) fn disconnected(&mut self, why: &ExpectedError) {
        if self.connection == Connection::Lost {
            return;
        }
        self.connection = Connection::Lost;
        self.disconnected_at = Instant::now();
        self.screen.set_bottom(Bottom::Empty);
        self.screen.say(&format!("plexus: Disconnected ({why}). Reconnecting…"));
    }

    /// Probes the hub, and after the reconnect shows the open approvals again.
    pub(super) async fn reconnect(&mut self) -> Result<(), ExpectedError> {
        let found = async {
            match self.open.front() {
                Some(open) => self.hub.review(&open.approval.id.to_string()).await.map(Some),
                None => self.hub.sessions().await.map(|_| None),
            }
        };
        let found = match tokio::time::timeout(PROBE, found).await {
            Err(_) | Ok(Err(ExpectedError::Lost(_) | ExpectedError::NoHub(_))) => return Ok(()),
            Ok(found) => found?,
        };
        self.connection = Connection::Live;
        self.screen.say("plexus: Reconnected.");
        match found {
            Some(found) if found.approval.status != ApprovalStatus::Pending => {
                self.screen.say(&format!("plexus: {}", answer_confirmation::ending(&found.approval)));
                self.open.pop_front();
                self.show_next();
            }
            Some(found) => {
                if let Some(front) = self.open.front_mut() {
                    *front = found;
                }
                self.show_next();
            }
            None => {}
        }
        self.read_unread().await
    }
}
