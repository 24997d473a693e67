//! Permission rules, tokens and the audit log in memory.

use plexus_protocol::audit::AuditHead;
use plexus_protocol::{TokenName, UnixSeconds};

use super::super::tables::{Entry, Rule, Tables, Token};
use crate::rows::{AuthorityRows, LogEntry, Stored};
use crate::{NewRule, RuleRow, TokenRow};

impl AuthorityRows for Tables {
    fn insert_rule(&mut self, rule: &NewRule, at: UnixSeconds) -> Stored<u64> {
        let row = RuleRow { number: self.rules.next_number(), rule: rule.clone(), created_at: at };
        Ok(self.rules.append(Rule { row, revoked_at: None }))
    }

    fn rules_version(&mut self) -> Stored<u64> {
        Ok(self.count_rule_changes())
    }

    fn rule_is_in_force(&self, number: u64) -> Stored<bool> {
        Ok(self.rules.get(&number).is_some_and(|rule| rule.revoked_at.is_none()))
    }

    fn revoke_rule(&mut self, number: u64, at: UnixSeconds) -> Stored<bool> {
        let is_in_force = self.rules.get(&number).is_some_and(|rule| rule.revoked_at.is_none());
        Ok(is_in_force && self.rules.update(&number, |rule| rule.revoked_at = Some(at)))
    }

    fn tokens_named(&self, name: &TokenName) -> Stored<Vec<TokenRow>> {
        Ok(self
            .unrevoked_tokens()
            .filter(|token| token.row.name == *name)
            .map(|token| token.row.clone())
            .collect())
    }

    fn insert_token(&mut self, token: &TokenRow, hash: &str, at: UnixSeconds) -> Stored<()> {
        let row = TokenRow { created_at: at, ..token.clone() };
        self.tokens.append(Token { row, hash: hash.to_owned(), revoked_at: None });
        Ok(())
    }

    fn revoke_tokens(&mut self, name: &TokenName, at: UnixSeconds) -> Stored<()> {
        let is_in_use = |token: &Token| token.row.name == *name && token.revoked_at.is_none();
        self.tokens.update_where(is_in_use, |token| token.revoked_at = Some(at));
        Ok(())
    }

    fn audit_head(&self) -> Stored<AuditHead> {
        let last = self.audit.iter().next_back();
        Ok(last.map_or_else(AuditHead::start, |(number, entry)| AuditHead {
            number: *number,
            hash: entry.hash.clone(),
        }))
    }

    fn append_audit_entry(&mut self, entry: &LogEntry<'_>) -> Stored<()> {
        let LogEntry { head, entry, text } = *entry;
        let stored = Entry { hash: head.hash.clone(), entry: entry.clone(), text: text.to_owned() };
        self.audit.put(head.number, stored);
        Ok(())
    }
}

impl Tables {
    pub(in crate::memory) fn unrevoked_tokens(&self) -> impl Iterator<Item = &Token> {
        self.tokens.values().filter(|token| token.revoked_at.is_none())
    }
}
