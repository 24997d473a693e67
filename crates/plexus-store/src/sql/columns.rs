//! How domain values are stored in columns: ids as text, enums without data as their wire name, everything else as JSON.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::StoreError;
use crate::rows::Stored;

/// A value that was read from a column. A boolean is 0 or 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Column<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(Cow<'a, str>),
}

/// A value for a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Param<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Real(f64),
    Text(Cow<'a, str>),
}

impl<'a> From<Column<'a>> for Param<'a> {
    fn from(column: Column<'a>) -> Self {
        match column {
            Column::Null => Self::Null,
            Column::Int(value) => Self::Int(value),
            Column::Real(value) => Self::Real(value),
            Column::Text(text) => Self::Text(text),
        }
    }
}

/// A type that can be stored in a column.
pub(crate) trait ToColumn {
    fn to_column(&self) -> Stored<Param<'_>>;
}

/// A type that can be read from a column.
pub(crate) trait FromColumn: Sized {
    fn from_column(column: Column<'_>) -> Result<Self, Unreadable>;
}

/// Why a column cannot be read.
pub(crate) type Unreadable = Box<dyn std::error::Error + Send + Sync>;

/// An id, or another value with a text form.
pub(crate) struct Text<T>(pub T);

/// An enum without data, stored as its wire name.
pub(crate) struct Word<T>(pub T);

/// A value that serde can write, stored as JSON.
pub(crate) struct Json<T>(pub T);

impl<T: Display> ToColumn for Text<T> {
    fn to_column(&self) -> Stored<Param<'_>> {
        Ok(Param::Text(self.0.to_string().into()))
    }
}

impl<T: FromStr<Err: std::error::Error + Send + Sync + 'static>> FromColumn for Text<T> {
    fn from_column(column: Column<'_>) -> Result<Self, Unreadable> {
        Ok(Self(text(column)?.parse()?))
    }
}

impl<T: Serialize> ToColumn for Word<T> {
    fn to_column(&self) -> Stored<Param<'_>> {
        match serde_json::to_value(&self.0).map_err(|error| unwritable(&error))? {
            Value::String(word) => Ok(Param::Text(word.into())),
            other => Err(unwritable(&format!("{other} is not a string"))),
        }
    }
}

impl<T: DeserializeOwned> FromColumn for Word<T> {
    fn from_column(column: Column<'_>) -> Result<Self, Unreadable> {
        let word = Value::from(text(column)?.into_owned());
        Ok(Self(serde_json::from_value(word)?))
    }
}

impl<T: Serialize> ToColumn for Json<T> {
    fn to_column(&self) -> Stored<Param<'_>> {
        let text = serde_json::to_string(&self.0).map_err(|error| unwritable(&error))?;
        Ok(Param::Text(text.into()))
    }
}

impl<T: DeserializeOwned> FromColumn for Json<T> {
    fn from_column(column: Column<'_>) -> Result<Self, Unreadable> {
        let text = text(column)?;
        let mut json = serde_json::Deserializer::from_str(&text);
        // A child's message was parsed with a depth limit and is nested a few levels deeper here. With the same limit, a
        // hostile message could be written but never read.
        json.disable_recursion_limit();
        Ok(Self(T::deserialize(&mut json)?))
    }
}

fn unwritable(why: &dyn Display) -> StoreError {
    StoreError::Unavailable(format!("cannot be stored: {why}"))
}

fn text(column: Column<'_>) -> Result<Cow<'_, str>, Unreadable> {
    match column {
        Column::Text(text) => Ok(text),
        other => Err(unexpected("a text", &other)),
    }
}

fn unexpected(wanted: &str, column: &Column<'_>) -> Unreadable {
    format!("{column:?} is not {wanted}").into()
}

impl ToColumn for str {
    fn to_column(&self) -> Stored<Param<'_>> {
        Ok(Param::Text(self.into()))
    }
}

impl ToColumn for String {
    fn to_column(&self) -> Stored<Param<'_>> {
        self.as_str().to_column()
    }
}

impl FromColumn for String {
    fn from_column(column: Column<'_>) -> Result<Self, Unreadable> {
        Ok(text(column)?.into_owned())
    }
}

impl ToColumn for bool {
    fn to_column(&self) -> Stored<Param<'_>> {
        Ok(Param::Bool(*self))
    }
}

impl FromColumn for bool {
    fn from_column(column: Column<'_>) -> Result<Self, Unreadable> {
        match column {
            Column::Int(value) => Ok(value != 0),
            other => Err(unexpected("a boolean", &other)),
        }
    }
}

impl ToColumn for f64 {
    fn to_column(&self) -> Stored<Param<'_>> {
        Ok(Param::Real(*self))
    }
}

impl FromColumn for f64 {
    fn from_column(column: Column<'_>) -> Result<Self, Unreadable> {
        match column {
            Column::Real(value) => Ok(value),
            Column::Int(value) => Ok(value as Self),
            other => Err(unexpected("a number", &other)),
        }
    }
}

macro_rules! integers {
    ($($name:ty)+) => {$(
        impl ToColumn for $name {
            fn to_column(&self) -> Stored<Param<'_>> {
                i64::try_from(*self).map(Param::Int).map_err(|error| unwritable(&error))
            }
        }

        impl FromColumn for $name {
            fn from_column(column: Column<'_>) -> Result<Self, Unreadable> {
                match column {
                    Column::Int(value) => Ok(Self::try_from(value)?),
                    other => Err(unexpected("an integer", &other)),
                }
            }
        }
    )+};
}

integers!(i64 u32 u64 usize);

impl<T: ToColumn> ToColumn for Option<T> {
    fn to_column(&self) -> Stored<Param<'_>> {
        self.as_ref().map_or(Ok(Param::Null), ToColumn::to_column)
    }
}

impl<T: FromColumn> FromColumn for Option<T> {
    fn from_column(column: Column<'_>) -> Result<Self, Unreadable> {
        match column {
            Column::Null => Ok(None),
            column => T::from_column(column).map(Some),
        }
    }
}

impl<T: ToColumn + ?Sized> ToColumn for &T {
    fn to_column(&self) -> Stored<Param<'_>> {
        (**self).to_column()
    }
}

impl<T: ToColumn + ToOwned + ?Sized> ToColumn for Cow<'_, T> {
    fn to_column(&self) -> Stored<Param<'_>> {
        (**self).to_column()
    }
}

/// A number for a column. Callers may pass any `u64`; databases store none above `i64::MAX`.
pub(crate) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
