//! The tokens that the operator handed out: made, taken back, found again. One that has expired is in use no more.

use plexus_protocol::{Decider, TokenName, UnixSeconds};
use rusqlite::types::FromSqlError;
use rusqlite::{Connection, OptionalExtension, Result, Row};

use super::changes::Applying;
use super::columns::{Word, int};
use crate::{Refusal, StoreError, TokenRow};

const IN_USE: &str = "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)";

pub(super) fn of_hash(connection: &Connection, hash: &str, now: UnixSeconds) -> Result<Option<TokenRow>> {
    connection
        .prepare_cached(&format!("SELECT * FROM tokens WHERE hash = :hash AND {IN_USE}"))?
        .query_row(rusqlite::named_params! {":hash": hash, ":now": int(now)}, row)
        .optional()
}

pub(super) fn in_use(connection: &Connection, now: UnixSeconds) -> Result<Vec<TokenRow>> {
    connection
        .prepare_cached(&format!("SELECT * FROM tokens WHERE {IN_USE} ORDER BY number"))?
        .query_map(rusqlite::named_params! {":now": int(now)}, row)?
        .collect()
}

fn row(row: &Row<'_>) -> Result<TokenRow> {
    let name: String = row.get("name")?;
    Ok(TokenRow {
        name: TokenName::try_from(name).map_err(|why| FromSqlError::Other(why.into()))?,
        right: row.get::<_, Word<_>>("right")?.0,
        created_at: row.get("created_at")?,
        expires_at: row.get("expires_at")?,
    })
}

impl Applying<'_> {
    pub(super) fn make_token(
        &mut self,
        token: &TokenRow,
        hash: &str,
        by: &Decider,
    ) -> Result<(), StoreError> {
        if in_use(self.connection, self.at)?.iter().any(|other| other.name == token.name) {
            return Err(Refusal::TokenNameTaken(token.name.clone()).into());
        }
        self.execute(
            "INSERT INTO tokens (name, hash, right, created_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)",
            (token.name.as_str(), hash, Word(token.right), self.at, token.expires_at.map(int)),
        )?;
        self.token_made(token, by)
    }

    pub(super) fn revoke_token(&mut self, name: &TokenName, by: &Decider) -> Result<(), StoreError> {
        if !in_use(self.connection, self.at)?.iter().any(|token| token.name == *name) {
            return Err(Refusal::NoSuchToken(name.clone()).into());
        }
        self.execute(
            "UPDATE tokens SET revoked_at = ?2 WHERE name = ?1 AND revoked_at IS NULL",
            (name.as_str(), self.at),
        )?;
        self.ended_token(format!("token:{name}"));
        self.token_revoked(name, by)
    }
}
