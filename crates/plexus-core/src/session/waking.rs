//! A turn of the hub's own for a session that has none while those below it wait for its answer: once for all that is
//! open then, and again only for what is asked later.

use std::sync::Arc;

use plexus_protocol::{AskedOf, ErrorKind, SessionName};
use plexus_store::Open;

use super::commands::Begun;
use super::owner::{Closing, LONGEST_PAUSE, Owner};
use super::{Prompt, Reading};
use crate::kill_point::kill_point;

impl Owner {
    /// Begins a turn if there is something to wake it for.
    pub(super) async fn wake(&mut self) -> Result<(), Closing> {
        let me = AskedOf::Session { id: self.row.id }.key();
        let hub = Arc::clone(&self.hub);
        let open = hub.book().held(|| hub.store().open_approvals(Open::AskedOf(me.clone()))).await;
        let Some(to) = open.last().map(|row| row.number).filter(|newest| *newest > self.row.woken_to) else {
            return Ok(());
        };
        let mut askers: Vec<&SessionName> = open.iter().map(|row| &row.approval.session_name).collect();
        askers.dedup();
        kill_point("wake", "asked");
        self.renew_for_cost().await?;
        match self
            .begin_turn(
                Prompt { text: prompt(open.len(), &askers), reading: Reading::Plain },
                Begun::Woken { to },
            )
            .await
        {
            Ok(_) => {
                kill_point("wake", "turn begun");
                self.ensure_run().await?;
                self.send_prompt().await
            }
            Err(error) if error.kind == ErrorKind::StoreUnavailable => {
                self.asked_for = true;
                tokio::time::sleep(LONGEST_PAUSE).await;
                Ok(())
            }
            Err(error) => {
                // The question goes on by itself.
                tracing::warn!(session = %self.row.id, %error, "a session could not be woken");
                Ok(())
            }
        }
    }
}

/// What a session that is woken reads. Nothing in it was written by those below.
fn prompt(open: usize, askers: &[&SessionName]) -> String {
    let askers: Vec<&str> = askers.iter().map(|name| name.as_str()).collect();
    format!(
        "Plexus: {open} approval(s) asked by {} wait for your answer. Call loopback_wait without a cursor to see them, \
         then loopback_respond or loopback_escalate; unanswered, they go on to whoever is above you.",
        askers.join(", ")
    )
}
