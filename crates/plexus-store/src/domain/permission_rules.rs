//! Creates and revokes permission rules. `plexus-policy` decides which calls they match.

use plexus_protocol::Decider;

use super::{Commit, audit_entries};
use crate::rows::Stored;
use crate::{NewRule, Refusal, RuleChange, RuleRow};

impl Commit<'_> {
    pub(super) fn create_rule(&mut self, rule: &NewRule) -> Stored<()> {
        let number = self.rows.insert_rule(rule, self.at)?;
        let row = RuleRow { number, rule: rule.clone(), created_at: self.at };
        self.published.rules.push(RuleChange::Created(row));
        self.audit(audit_entries::rule_created(self.at, number, rule))
    }

    pub(super) fn revoke_rule(&mut self, number: u64, by: &Decider) -> Stored<()> {
        if !self.rows.revoke_rule(number, self.at)? {
            return Err(Refusal::NoSuchRule(number).into());
        }
        self.published.rules.push(RuleChange::Revoked(number));
        self.audit(audit_entries::rule_revoked(self.at, number, by))
    }
}
