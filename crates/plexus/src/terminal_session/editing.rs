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
        self.keyboard.lend();
        let edited = editor::edit(&self.hub.dir, &before, text).await;
        self.keyboard.take();
        // Input typed for the editor answers nothing.
        let _ = self.keyboard.drain();
        match edited {
            Ok(Edited::Same) => self.cancel_edit("the input was not changed: "),
            Ok(Edited::Changed(input)) => {
                let mut rows = vec![Row::new(Tone::Strong, "Your changes:")];
                rows.extend(change::rows_of_edit(approval, &before.input, &input));
                self.show_pages(&rows, Awaiting::Changed(input));
            }
            Err(EditError::Invalid { why, text }) => {
                self.screen.say(&format!("plexus: {}", one_line(&why, 200)));
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
