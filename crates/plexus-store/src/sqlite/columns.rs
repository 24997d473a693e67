//! How domain values stand in columns: ids as their text, enums as their word, everything else as JSON text.

use std::fmt::Display;
use std::str::FromStr;

use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// An id, or anything else that is its own text.
pub(super) struct Text<T>(pub T);

/// An enum without data, kept as the word it has on the wire.
pub(super) struct Word<T>(pub T);

/// Anything that serde knows, kept as JSON text.
pub(super) struct Json<T>(pub T);

impl<T: Display> ToSql for Text<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.0.to_string().into())
    }
}

impl<T: FromStr<Err: std::error::Error + Send + Sync + 'static>> FromSql for Text<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str()?.parse().map(Self).map_err(FromSqlError::other)
    }
}

impl<T: Serialize> ToSql for Word<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match serde_json::to_value(&self.0).map_err(unwritable)? {
            Value::String(word) => Ok(word.into()),
            other => Err(rusqlite::Error::ToSqlConversionFailure(format!("{other} is not a word").into())),
        }
    }
}

impl<T: DeserializeOwned> FromSql for Word<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let word = Value::from(value.as_str()?);
        serde_json::from_value(word).map(Self).map_err(FromSqlError::other)
    }
}

impl<T: Serialize> ToSql for Json<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(serde_json::to_string(&self.0).map_err(unwritable)?.into())
    }
}

impl<T: DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let mut json = serde_json::Deserializer::from_str(value.as_str()?);
        // What a child sent was parsed with a limit on its depth, and is wrapped in a few more levels here: with
        // the same limit again a hostile line could be written but never read.
        json.disable_recursion_limit();
        T::deserialize(&mut json).map(Self).map_err(FromSqlError::other)
    }
}

fn unwritable(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(error.into())
}

/// A number for a column. Callers may ask for any `u64`; there is nothing beyond what SQLite can count to.
pub(super) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
