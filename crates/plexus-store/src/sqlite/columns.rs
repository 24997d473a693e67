//! How domain values are stored in columns: ids as text, enums without data as their wire name, everything else as JSON.

use std::fmt::Display;
use std::str::FromStr;

use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// An id, or another value with a text form.
pub(super) struct Text<T>(pub T);

/// An enum without data, stored as its wire name.
pub(super) struct Word<T>(pub T);

/// A value that serde can write, stored as JSON.
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
            other => Err(rusqlite::Error::ToSqlConversionFailure(format!("{other} is not a string").into())),
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
        // A child's message was parsed with a depth limit and is nested a few levels deeper here. With the same limit, a
        // hostile message could be written but never read.
        json.disable_recursion_limit();
        T::deserialize(&mut json).map(Self).map_err(FromSqlError::other)
    }
}

fn unwritable(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(error.into())
}

/// A number for a column. Callers may pass any `u64`; SQLite stores none above `i64::MAX`.
pub(super) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
