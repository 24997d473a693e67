//! Editing an input at the terminal: an editor, what changed, and a question. An edit alone answers nothing.

use plexus_protocol::Approval;

use super::Talk;
use super::answering::Asking;
use crate::approve::editable;
use crate::editor::{self, EditError, Edited};
use crate::error::ExpectedError;
use crate::review::{Row, Tone, change};
use crate::terminal::one_line;

impl Talk<'_> {
    /// Opens the input in an editor, and then shows what changed. Nothing is answered by that alone.
    pub(super) async fn edit(
        &mut self,
        approval: &Approval,
        text: Option<&str>,
    ) -> Result<(), ExpectedError> {
        let before = editable(approval);
        match editor::edit(&self.hub.dir, &before, text).await {
            Ok(Edited::Same) => self.cancel_edit("the input was not changed: "),
            Ok(Edited::Changed(input)) => {
                let mut rows = vec![Row::new(Tone::Strong, "This is what you changed:")];
                rows.extend(change::rows_of_edit(approval, &before, &input));
                self.typed.forget();
                self.show_pages(&rows, Asking::Changed(input));
            }
            Err(EditError::Invalid { why, text }) => {
                self.screen.say(&format!("plexus: this is not a JSON object: {}", one_line(&why, 200)));
                self.typed.forget();
                self.asking = Asking::Again(text);
            }
            Err(error) => self.cancel_edit(&format!("{error}: ")),
        }
        Ok(())
    }

    /// Nothing is answered, and the approval is shown again: the editor has had the screen.
    pub(super) fn cancel_edit(&mut self, why: &str) {
        self.screen.say(&format!("plexus: {why}nothing was answered; the approval stays open"));
        self.next_question();
    }
}
