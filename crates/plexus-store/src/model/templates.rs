//! Templates for new sessions.

use plexus_protocol::template::Template;
use plexus_protocol::{TemplateName, UnixSeconds};

/// A stored template.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplateRow {
    /// Its name.
    pub name: TemplateName,
    /// Its content, with the secrets of its MCP servers.
    pub template: Template,
    /// When it was last saved.
    pub saved_at: UnixSeconds,
}
