//! Templates that the operator saves and deletes. Each act has an audit entry, without prompts and secrets.

use plexus_protocol::template::Template;
use plexus_protocol::{Decider, TemplateName};

use super::{Commit, audit_entries};
use crate::rows::Stored;
use crate::{Refusal, TemplateRow};

/// How many templates can exist: a list contains all of them.
const MAX_TEMPLATES: u64 = 100;

impl Commit<'_> {
    pub(super) fn save_template(
        &mut self,
        name: &TemplateName,
        template: &Template,
        by: &Decider,
    ) -> Stored<()> {
        if !self.rows.template_exists(name)? && self.rows.template_count()? >= MAX_TEMPLATES {
            return Err(Refusal::TooManyTemplates(MAX_TEMPLATES).into());
        }
        let row = TemplateRow { name: name.clone(), template: template.clone(), saved_at: self.at };
        self.rows.put_template(&row)?;
        self.audit(audit_entries::template_saved(self.at, &row, by))
    }

    pub(super) fn delete_template(&mut self, name: &TemplateName, by: &Decider) -> Stored<()> {
        if !self.rows.delete_template(name)? {
            return Err(Refusal::NoSuchTemplate(name.clone()).into());
        }
        self.audit(audit_entries::template_deleted(self.at, name, by))
    }
}
