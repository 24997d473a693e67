//! Values between the store and PostgreSQL, by the type of the column.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use bytes::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::text;
use crate::rows::Stored;
use crate::sql::columns::{Column, Param, ToColumn};
use crate::sql::{ColumnRef, Columns};

/// A value for a column, which does not depend on its origin.
pub(super) struct Encoded(Param<'static>);

/// Shows the kind of value only: parameters get into logs and errors.
impl fmt::Debug for Encoded {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self.0 {
            Param::Null => "null",
            Param::Bool(_) => "a boolean",
            Param::Int(_) => "an integer",
            Param::Real(_) => "a number",
            Param::Text(_) => "a text",
        })
    }
}

impl Encoded {
    pub(super) fn all(params: &[&dyn ToColumn]) -> Stored<Vec<Self>> {
        let encode = |param: &&dyn ToColumn| param.to_column().map(Self::new);
        params.iter().map(encode).collect()
    }

    fn new(param: Param<'_>) -> Self {
        Self(match param {
            Param::Text(text) => match text::encode(&text) {
                Cow::Borrowed(_) => Param::Text(Cow::Owned(text.into_owned())),
                Cow::Owned(encoded) => Param::Text(Cow::Owned(encoded)),
            },
            Param::Null => Param::Null,
            Param::Bool(value) => Param::Bool(value),
            Param::Int(value) => Param::Int(value),
            Param::Real(value) => Param::Real(value),
        })
    }
}

impl ToSql for Encoded {
    fn to_sql(&self, column: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match (&self.0, column) {
            (Param::Null, _) => Ok(IsNull::Yes),
            (Param::Bool(value), &Type::BOOL) => value.to_sql(column, out),
            (Param::Int(value), &Type::INT8) => value.to_sql(column, out),
            (Param::Int(value), &Type::FLOAT8) => (*value as f64).to_sql(column, out),
            (Param::Real(value), &Type::FLOAT8) => value.to_sql(column, out),
            (Param::Text(value), &Type::TEXT) => value.as_ref().to_sql(column, out),
            _ => Err(format!("{self:?} is not a value for a column of type {column}").into()),
        }
    }

    fn accepts(_: &Type) -> bool {
        // `to_sql` refuses what does not fit.
        true
    }

    to_sql_checked!();
}

/// A row of a result.
pub(super) struct PgRow(pub(super) tokio_postgres::Row);

impl Columns for PgRow {
    fn column(&self, column: ColumnRef<'_>) -> Stored<Column<'_>> {
        let value = match column {
            ColumnRef::Index(position) => self.0.try_get::<_, Value<'_>>(position),
            ColumnRef::Named(name) => self.0.try_get::<_, Value<'_>>(name),
        };
        value.map(|Value(value)| value).map_err(|error| column.unreadable(&error.to_string()))
    }
}

/// A value in a column.
struct Value<'a>(Column<'a>);

impl<'a> FromSql<'a> for Value<'a> {
    fn from_sql(column: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(match *column {
            Type::BOOL => Column::Int(bool::from_sql(column, raw)?.into()),
            Type::INT4 => Column::Int(i32::from_sql(column, raw)?.into()),
            Type::INT8 => Column::Int(i64::from_sql(column, raw)?),
            Type::FLOAT8 => Column::Real(f64::from_sql(column, raw)?),
            _ => Column::Text(text::decode(<&str>::from_sql(column, raw)?)),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(Column::Null))
    }

    fn accepts(column: &Type) -> bool {
        [Type::BOOL, Type::INT4, Type::INT8, Type::FLOAT8, Type::TEXT].contains(column)
    }
}
