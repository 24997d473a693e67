//! Permission rules, tokens and the audit log in SQL.

use plexus_protocol::audit::AuditHead;
use plexus_protocol::{TokenName, UnixSeconds};

use super::super::columns::{Json, Text, Word, int};
use super::super::{audit, authority_reads, statements};
use super::SqlRows;
use crate::rows::{AuthorityRows, LogEntry, Stored};
use crate::{NewRule, TokenRow};

impl AuthorityRows for SqlRows<'_> {
    fn insert_rule(&mut self, rule: &NewRule, at: UnixSeconds) -> Stored<u64> {
        let NewRule { session, entry, expires_at, authority, created_by } = rule;
        self.known.rules_version = None;
        self.value(
            "INSERT INTO rules (session, entry, expires_at, authority, made_by, created_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING number",
            (session.map(Text), Json(entry), expires_at.map(int), Word(authority), Json(created_by), at),
        )
    }

    fn rules_version(&mut self) -> Stored<u64> {
        if let Some(version) = self.known.rules_version {
            return Ok(version);
        }
        let version = authority_reads::rules_version(self.database)?;
        self.known.rules_version = Some(version);
        Ok(version)
    }

    fn rule_is_in_force(&self, number: u64) -> Stored<bool> {
        self.value(statements::RULE_IS_IN_FORCE, [int(number)])
    }

    fn revoke_rule(&mut self, number: u64, at: UnixSeconds) -> Stored<bool> {
        self.known.rules_version = None;
        let sql = "UPDATE rules SET revoked_at = ?2 WHERE number = ?1 AND revoked_at IS NULL";
        Ok(self.execute(sql, (int(number), at))? > 0)
    }

    fn tokens_named(&self, name: &TokenName) -> Stored<Vec<TokenRow>> {
        self.database.all(statements::TOKENS_NAMED, [name.as_str()], authority_reads::token)
    }

    fn insert_token(&mut self, token: &TokenRow, hash: &str, at: UnixSeconds) -> Stored<()> {
        self.write(
            "INSERT INTO tokens (name, hash, \"right\", created_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)",
            (token.name.as_str(), hash, Word(token.right), at, token.expires_at.map(int)),
        )
    }

    fn revoke_tokens(&mut self, name: &TokenName, at: UnixSeconds) -> Stored<()> {
        self.write(
            "UPDATE tokens SET revoked_at = ?2 WHERE name = ?1 AND revoked_at IS NULL",
            (name.as_str(), at),
        )
    }

    fn audit_head(&self) -> Stored<AuditHead> {
        match &self.known.audit_head {
            Some(head) => Ok(head.clone()),
            None => Ok(audit::head(self.database)?),
        }
    }

    fn append_audit_entry(&mut self, entry: &LogEntry<'_>) -> Stored<()> {
        let LogEntry { head, entry, text } = entry;
        self.write(
            "INSERT INTO audit (number, hash, at, kind, who, session, tool_name, entry) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            (
                head.number,
                &head.hash,
                entry.at,
                Word(entry.kind),
                entry.by.key(),
                entry.session_id.map(Text),
                &entry.tool_name,
                text,
            ),
        )?;
        self.known.audit_head = Some(AuditHead::clone(head));
        Ok(())
    }
}
