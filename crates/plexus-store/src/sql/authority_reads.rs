//! Reads permission rules, tokens and templates.

use std::ops::ControlFlow;

use plexus_protocol::{Decider, SessionId, TemplateName, TokenName, UnixSeconds};
use serde_json::Value;

use super::columns::{Json, Text, Word};
use super::{ColumnRef, Database, Row, statements};
use crate::domain::tokens::is_unexpired;
use crate::rows::Stored;
use crate::{NewRule, RuleAuthority, RuleRow, RulesInForce, StoreError, TemplateRow, TokenRow};

/// How many permission rules were created and revoked so far. No rule is ever deleted.
pub(crate) fn rules_version(database: &dyn Database) -> Stored<u64> {
    database.value(statements::RULES_VERSION, ())
}

pub(crate) fn rules(database: &dyn Database) -> Stored<RulesInForce> {
    let _snapshot = database.snapshot()?;
    Ok(RulesInForce { version: rules_version(database)?, rules: rules_in_force(database)? })
}

/// All rules. Unlike in other lists, none is left out: a missing rule could be a deny rule.
fn rules_in_force(database: &dyn Database) -> Stored<Vec<RuleRow>> {
    let mut rules = Vec::new();
    database.each(statements::RULES, (), |row| {
        let rule = rule_row(row);
        rules.push(match (&rule, row.get::<Option<Text<_>>>("session")) {
            (Err(StoreError::Unusable(why)), Ok(Some(Text(session)))) => {
                let number = row.get("number")?;
                tracing::error!(number, %session, why, "a permission rule cannot be read: it denies all calls of its session");
                unreadable_rule(number, session)
            }
            _ => rule?,
        });
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(rules)
}

fn rule_row(row: &Row<'_>) -> Stored<RuleRow> {
    Ok(RuleRow {
        number: row.get("number")?,
        rule: NewRule {
            session: row.get::<Option<Text<_>>>("session")?.map(|id| id.0),
            entry: row.get::<Json<_>>("entry")?.0,
            expires_at: row.get("expires_at")?,
            authority: row.get::<Word<_>>("authority")?.0,
            created_by: row.get::<Json<_>>("made_by")?.0,
        },
        created_at: row.get("created_at")?,
    })
}

/// A rule without a readable entry, which the policy cannot read either: it denies all calls of its session. It may have been a deny rule.
fn unreadable_rule(number: u64, session: SessionId) -> RuleRow {
    let rule = NewRule {
        session: Some(session),
        entry: Value::Null,
        expires_at: None,
        authority: RuleAuthority::Narrows,
        created_by: Decider::Hub,
    };
    RuleRow { number, rule, created_at: 0 }
}

pub(crate) fn token_of_hash(
    database: &dyn Database,
    hash: &str,
    now: UnixSeconds,
) -> Stored<Option<TokenRow>> {
    let found = database.one(statements::TOKEN_OF_HASH, [hash], token)?;
    Ok(found.filter(|token| is_unexpired(token, now)))
}

pub(crate) fn tokens(database: &dyn Database, now: UnixSeconds) -> Stored<Vec<TokenRow>> {
    let mut tokens = database.all(statements::TOKENS, (), token)?;
    tokens.retain(|token| is_unexpired(token, now));
    Ok(tokens)
}

pub(crate) fn token(row: &Row<'_>) -> Stored<TokenRow> {
    let name: String = row.get("name")?;
    Ok(TokenRow {
        name: TokenName::try_from(name).map_err(|why| ColumnRef::from("name").unreadable(&why))?,
        right: row.get::<Word<_>>("right")?.0,
        created_at: row.get("created_at")?,
        expires_at: row.get("expires_at")?,
    })
}

pub(crate) fn templates(database: &dyn Database) -> Stored<Vec<TemplateRow>> {
    database.all(statements::TEMPLATES, (), template_row)
}

pub(crate) fn template(database: &dyn Database, name: &TemplateName) -> Stored<Option<TemplateRow>> {
    database.one(statements::TEMPLATE, [name.as_str()], template_row)
}

fn template_row(row: &Row<'_>) -> Stored<TemplateRow> {
    Ok(TemplateRow {
        name: row.get::<Word<_>>("name")?.0,
        template: row.get::<Json<_>>("template")?.0,
        saved_at: row.get("saved_at")?,
    })
}
