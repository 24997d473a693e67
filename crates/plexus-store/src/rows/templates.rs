//! The rows of templates.

use plexus_protocol::TemplateName;

use super::Stored;
use crate::TemplateRow;

/// Templates.
pub(crate) trait TemplateRows {
    /// Whether a template with this name exists.
    fn template_exists(&self, name: &TemplateName) -> Stored<bool>;
    /// How many templates exist.
    fn template_count(&self) -> Stored<u64>;
    /// Inserts or replaces a template.
    fn put_template(&mut self, row: &TemplateRow) -> Stored<()>;
    /// Deletes a template; returns whether it existed.
    fn delete_template(&mut self, name: &TemplateName) -> Stored<bool>;
}
