//! Edits an input at the terminal: opens an editor, shows the changes, and asks for confirmation. An edit alone answers nothing.

use plexus_protocol::Approval;

use super::TerminalSession;
use super::answering::Awaiting;
use crate::editor::{self, EditError, Editable, Edited};
use crate::error::ExpectedError;
use crate::review::{Row, Tone, change};
use crate::terminal::one_line;

impl TerminalSession<'_> {
    /// Opens the input in an editor and then shows the changes.
    pub(super) async fn edit(
        &mut self,
        approval: &Approval,
        text: Option<&str>,
    ) -> Result<(), ExpectedError> {
        let before = Editable::of(approval);
        match editor::edit(&self.hub.dir, &before, text).await {
            Ok(Edited::Same) => self.cancel_edit("the input was not changed: "),
            Ok(Edited::Changed(input)) => {
                let mut rows = vec![Row::new(Tone::Strong, "Your changes:")];
                rows.extend(change::rows_of_edit(approval, &before.input, &input));
                self.typed.discard();
                self.show_pages(&rows, Awaiting::Changed(input));
            }
            Err(EditError::Invalid { why, text }) => {
                self.screen.say(&format!("plexus: {}", one_line(&why, 200)));
                self.typed.discard();
                self.awaiting = Awaiting::Again(text);
            }
            Err(error) => self.cancel_edit(&format!("{error}: ")),
        }
        Ok(())
    }

    /// Cancels the edit and shows the approval again, because the editor has used the screen.
    pub(super) fn cancel_edit(&mut self, why: &str) {
        self.screen.say(&format!("plexus: {why}nothing was answered; the approval stays open"));
        self.show_next();
    }
}
