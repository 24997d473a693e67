//! Rules for tool calls: made, revoked, listed. What they mean is for others to say.

use plexus_protocol::Decider;
use rusqlite::{Connection, Result, Row};

use super::changes::Applying;
use super::columns::{Json, Text, Word, int};
use crate::{NewRule, Refusal, RuleChange, RuleRow, StoreError};

pub(super) fn in_force(connection: &Connection) -> Result<Vec<RuleRow>> {
    connection
        .prepare_cached("SELECT * FROM rules WHERE revoked_at IS NULL ORDER BY number")?
        .query_map([], row)?
        .collect()
}

fn row(row: &Row<'_>) -> Result<RuleRow> {
    Ok(RuleRow {
        number: row.get("number")?,
        rule: NewRule {
            session: row.get::<_, Option<Text<_>>>("session")?.map(|id| id.0),
            entry: row.get::<_, Json<_>>("entry")?.0,
            expires_at: row.get("expires_at")?,
            authority: row.get::<_, Word<_>>("authority")?.0,
            made_by: row.get::<_, Json<_>>("made_by")?.0,
        },
        created_at: row.get("created_at")?,
    })
}

impl Applying<'_> {
    pub(super) fn make_rule(&mut self, rule: &NewRule) -> Result<(), StoreError> {
        let number = self
            .connection
            .prepare_cached(
                "INSERT INTO rules (session, entry, expires_at, authority, made_by, created_at) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING number",
            )?
            .query_row(
                (
                    rule.session.map(Text),
                    Json(&rule.entry),
                    rule.expires_at.map(int),
                    Word(rule.authority),
                    Json(&rule.made_by),
                    self.at,
                ),
                |row| row.get(0),
            )?;
        self.changed_rule(RuleChange::Made(RuleRow { number, rule: rule.clone(), created_at: self.at }));
        self.rule_made(number, rule)
    }

    pub(super) fn revoke_rule(&mut self, number: u64, by: &Decider) -> Result<(), StoreError> {
        let revoked = self.execute(
            "UPDATE rules SET revoked_at = ?2 WHERE number = ?1 AND revoked_at IS NULL",
            (int(number), self.at),
        )?;
        if revoked == 0 {
            return Err(Refusal::NoSuchRule(number).into());
        }
        self.changed_rule(RuleChange::Revoked(number));
        self.rule_revoked(number, by)
    }
}
