//! Arguments on their way into PostgreSQL's binary format and values on their way out. Strict: what does not fit is an
//! error that names the types, never the value.

use std::{error::Error as StdError, fmt};

use bytes::BytesMut;
use kernel::{Error, Result};
use tokio_postgres::{
    row::RowIndex,
    types::{FromSql, IsNull, ToSql, Type},
};

use crate::{Arg, ColumnType, row::Value};

type AnyError = Box<dyn StdError + Sync + Send>;

/// An argument as the driver wants it. The driver's debug log prints parameters, hence the silent `Debug`.
pub(super) struct PgArg<'a>(pub(super) &'a Arg<'a>);

impl fmt::Debug for PgArg<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl ToSql for PgArg<'_> {
    fn to_sql(&self, wanted: &Type, out: &mut BytesMut) -> Result<IsNull, AnyError> {
        match (self.0, wanted) {
            (Arg::Null, _) => Ok(IsNull::Yes),
            (Arg::Int(value), &Type::INT8) => value.to_sql(wanted, out),
            (Arg::Int(value), &Type::INT4) => i32::try_from(*value)?.to_sql(wanted, out),
            (Arg::Int(value), &Type::INT2) => i16::try_from(*value)?.to_sql(wanted, out),
            (Arg::Real(value), &Type::FLOAT8) => value.to_sql(wanted, out),
            (Arg::Bool(value), &Type::BOOL) => value.to_sql(wanted, out),
            (Arg::Text(value), wanted) if is_text(wanted) => (&**value).to_sql(wanted, out),
            (Arg::Bytes(value), &Type::BYTEA) => (&**value).to_sql(wanted, out),
            (Arg::TextList(values), &Type::TEXT_ARRAY | &Type::VARCHAR_ARRAY) => {
                values.iter().map(|text| &**text).collect::<Vec<&str>>().to_sql(wanted, out)
            }
            (Arg::IntList(values), &Type::INT8_ARRAY) => values.to_sql(wanted, out),
            (arg, wanted) => Err(format!("{} was bound where PostgreSQL wants {wanted}: CAST it", name(arg)).into()),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn to_sql_checked(&self, wanted: &Type, out: &mut BytesMut) -> Result<IsNull, AnyError> {
        self.to_sql(wanted, out)
    }
}

fn is_text(column: &Type) -> bool {
    matches!(*column, Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN)
}

fn name(arg: &Arg<'_>) -> &'static str {
    match arg {
        Arg::Null => "NULL",
        Arg::Int(_) => "an integer",
        Arg::Real(_) => "a real",
        Arg::Bool(_) => "a boolean",
        Arg::Text(_) => "a text",
        Arg::Bytes(_) => "bytes",
        Arg::TextList(_) => "a list of texts",
        Arg::IntList(_) => "a list of integers",
    }
}

/// The column's value in the types that both engines share.
pub(crate) fn value<'a, I>(row: &'a tokio_postgres::Row, index: I) -> Result<Value<'a>>
where
    I: RowIndex + fmt::Display,
{
    row.try_get::<_, Delivered<'a>>(index).map(|delivered| delivered.0).map_err(|error| {
        let cause = StdError::source(&error).map_or(String::new(), |cause| format!(": {cause}"));
        Error::internal(format!("{error}{cause}"))
    })
}

struct Delivered<'a>(Value<'a>);

impl<'a> FromSql<'a> for Delivered<'a> {
    fn from_sql(column: &Type, raw: &'a [u8]) -> Result<Self, AnyError> {
        Ok(Self(match column {
            &Type::INT8 => Value::Int(i64::from_sql(column, raw)?),
            &Type::INT4 => Value::Int(i32::from_sql(column, raw)?.into()),
            &Type::INT2 => Value::Int(i16::from_sql(column, raw)?.into()),
            &Type::FLOAT8 => Value::Real(f64::from_sql(column, raw)?),
            &Type::FLOAT4 => Value::Real(f32::from_sql(column, raw)?.into()),
            &Type::BOOL => Value::Bool(bool::from_sql(column, raw)?),
            &Type::BYTEA => Value::Bytes(raw),
            column if is_text(column) => Value::Text(<&str>::from_sql(column, raw)?),
            &Type::NUMERIC => {
                return Err("NUMERIC, as sum() and avg() make it, is not portable: CAST it AS BIGINT or \
                            DOUBLE PRECISION in the statement"
                    .into());
            }
            other => return Err(format!("columns of type {other} are not portable: CAST it in the statement").into()),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, AnyError> {
        Ok(Self(Value::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// The rows of [`crate::Tx::insert_all`] turned into one array per column.
pub(super) fn arrays<'a>(
    columns: &[(&'static str, ColumnType)],
    rows: &'a [Vec<Arg<'_>>],
) -> Result<Vec<Box<dyn ToSql + Sync + 'a>>> {
    if let Some(row) = rows.iter().find(|row| row.len() != columns.len()) {
        return Err(Error::internal(format!("{} columns but {} arguments", columns.len(), row.len())));
    }
    columns.iter().enumerate().map(|(index, column)| array(index, column, rows)).collect()
}

fn array<'a>(
    index: usize,
    &(column, column_type): &(&'static str, ColumnType),
    rows: &'a [Vec<Arg<'_>>],
) -> Result<Box<dyn ToSql + Sync + 'a>> {
    /// One cell; the column is known to be there.
    macro_rules! gather {
        ($kind:path, $value:ident => $taken:expr) => {{
            let mut cells = Vec::with_capacity(rows.len());
            for row in rows {
                cells.push(match &row[index] {
                    Arg::Null => None,
                    $kind($value) => Some($taken),
                    other => {
                        let found = name(other);
                        return Err(Error::internal(format!("column {column} is {column_type:?} but got {found}")));
                    }
                });
            }
            Hidden(cells)
        }};
    }
    Ok(match column_type {
        ColumnType::Text => Box::new(gather!(Arg::Text, value => &**value)),
        ColumnType::Int => Box::new(gather!(Arg::Int, value => *value)),
        ColumnType::Real => Box::new(gather!(Arg::Real, value => *value)),
        ColumnType::Bool => Box::new(gather!(Arg::Bool, value => *value)),
        ColumnType::Bytes => Box::new(gather!(Arg::Bytes, value => &**value)),
    })
}

/// Keeps the driver's debug log from printing a whole column.
struct Hidden<T>(Vec<Option<T>>);

impl<T> fmt::Debug for Hidden<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[…]")
    }
}

impl<T: ToSql> ToSql for Hidden<T> {
    fn to_sql(&self, wanted: &Type, out: &mut BytesMut) -> Result<IsNull, AnyError> {
        self.0.to_sql(wanted, out)
    }

    fn accepts(wanted: &Type) -> bool {
        <Vec<Option<T>> as ToSql>::accepts(wanted)
    }

    fn to_sql_checked(&self, wanted: &Type, out: &mut BytesMut) -> Result<IsNull, AnyError> {
        self.0.to_sql_checked(wanted, out)
    }
}
