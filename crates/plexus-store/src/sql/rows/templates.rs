//! Templates in SQL.

use plexus_protocol::TemplateName;

use super::super::columns::Json;
use super::super::statements;
use super::SqlRows;
use crate::TemplateRow;
use crate::rows::{Stored, TemplateRows};

impl TemplateRows for SqlRows<'_> {
    fn template_exists(&self, name: &TemplateName) -> Stored<bool> {
        self.value(statements::TEMPLATE_EXISTS, [name.as_str()])
    }

    fn template_count(&self) -> Stored<u64> {
        self.value("SELECT count(*) FROM templates", ())
    }

    fn put_template(&mut self, row: &TemplateRow) -> Stored<()> {
        let TemplateRow { name, template, saved_at } = row;
        self.write(
            "INSERT INTO templates (name, template, saved_at) VALUES (?1, ?2, ?3) \
             ON CONFLICT (name) DO UPDATE SET template = excluded.template, saved_at = excluded.saved_at",
            (name.as_str(), Json(template), saved_at),
        )
    }

    fn delete_template(&mut self, name: &TemplateName) -> Stored<bool> {
        Ok(self.execute("DELETE FROM templates WHERE name = ?1", [name.as_str()])? > 0)
    }
}
