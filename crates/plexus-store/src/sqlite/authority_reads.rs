//! Reads permission rules, tokens and templates.

use plexus_protocol::{TemplateName, TokenName, UnixSeconds};
use rusqlite::types::FromSqlError;
use rusqlite::{Connection, Result, Row};

use super::columns::{Json, Text, Word};
use super::reads::{all, one};
use super::sql;
use crate::domain::tokens::is_unexpired;
use crate::{NewRule, RuleRow, TemplateRow, TokenRow};

pub(super) fn rules(connection: &Connection) -> Result<Vec<RuleRow>> {
    all(connection, sql::RULES, [], |row| {
        Ok(RuleRow {
            number: row.get("number")?,
            rule: NewRule {
                session: row.get::<_, Option<Text<_>>>("session")?.map(|id| id.0),
                entry: row.get::<_, Json<_>>("entry")?.0,
                expires_at: row.get("expires_at")?,
                authority: row.get::<_, Word<_>>("authority")?.0,
                created_by: row.get::<_, Json<_>>("made_by")?.0,
            },
            created_at: row.get("created_at")?,
        })
    })
}

pub(super) fn token_of_hash(
    connection: &Connection,
    hash: &str,
    now: UnixSeconds,
) -> Result<Option<TokenRow>> {
    let found = one(connection, sql::TOKEN_OF_HASH, [hash], token)?;
    Ok(found.filter(|token| is_unexpired(token, now)))
}

pub(super) fn tokens(connection: &Connection, now: UnixSeconds) -> Result<Vec<TokenRow>> {
    let mut tokens = all(connection, sql::TOKENS, [], token)?;
    tokens.retain(|token| is_unexpired(token, now));
    Ok(tokens)
}

pub(super) fn token(row: &Row<'_>) -> Result<TokenRow> {
    let name: String = row.get("name")?;
    Ok(TokenRow {
        name: TokenName::try_from(name).map_err(|why| FromSqlError::Other(why.into()))?,
        right: row.get::<_, Word<_>>("right")?.0,
        created_at: row.get("created_at")?,
        expires_at: row.get("expires_at")?,
    })
}

pub(super) fn templates(connection: &Connection) -> Result<Vec<TemplateRow>> {
    all(connection, sql::TEMPLATES, [], template_row)
}

pub(super) fn template(connection: &Connection, name: &TemplateName) -> Result<Option<TemplateRow>> {
    one(connection, sql::TEMPLATE, [name.as_str()], template_row)
}

fn template_row(row: &Row<'_>) -> Result<TemplateRow> {
    Ok(TemplateRow {
        name: row.get::<_, Word<_>>("name")?.0,
        template: row.get::<_, Json<_>>("template")?.0,
        saved_at: row.get("saved_at")?,
    })
}
