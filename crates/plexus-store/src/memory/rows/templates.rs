//! Templates in memory.

use plexus_protocol::TemplateName;

use super::super::tables::Tables;
use crate::TemplateRow;
use crate::rows::{Stored, TemplateRows};

impl TemplateRows for Tables {
    fn template_exists(&self, name: &TemplateName) -> Stored<bool> {
        Ok(self.templates.get(name).is_some())
    }

    fn template_count(&self) -> Stored<u64> {
        Ok(self.templates.len() as u64)
    }

    fn put_template(&mut self, row: &TemplateRow) -> Stored<()> {
        self.templates.put(row.name.clone(), row.clone());
        Ok(())
    }

    fn delete_template(&mut self, name: &TemplateName) -> Stored<bool> {
        Ok(self.templates.delete(name))
    }
}
