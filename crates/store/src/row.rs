//! Reading rows: columns by name into a small set of types, the same on both engines.

use std::{cell::Cell, fmt, str::FromStr};

use kernel::{AppNumber, Error, Id, IdKind, Result, Timestamp};

use crate::{Arg, postgres};

/// One row of a result, alive while the statement is being read.
pub struct Row<'a> {
    source: RowSource<'a>,
    /// Behind the column that was read last. Readers ask in the order of their statements: to look here first spares a search
    /// through all names for each column.
    next: Cell<usize>,
}

pub(crate) enum RowSource<'a> {
    /// With the names of its columns: SQLite measures and checks a name whenever it is asked for it.
    Sqlite(&'a rusqlite::Row<'a>, &'a [String]),
    Postgres(&'a tokio_postgres::Row),
    /// What a row was stored or changed by, as it was given, with the names of the columns.
    Given(&'a [&'a Arg<'a>], &'a [&'a str]),
}

/// A column's value as the engine delivered it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    Null,
    Int(i64),
    Real(f64),
    Bool(bool),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> Row<'a> {
    pub(crate) fn new(source: RowSource<'a>) -> Self {
        Self { source, next: Cell::new(0) }
    }
}

impl Row<'_> {
    /// The column called `name`. A missing column or a value of another type is a mistake in our own code: a 500.
    pub fn get<T: Column>(&self, name: &str) -> Result<T> {
        let index = self.index(name)?;
        self.next.set(index + 1);
        T::from_value(self.value(index)?).map_err(|wrong| Error::internal(format!("column {name}: {wrong}")))
    }

    /// The column at `index`, counted from 0: for one-off queries read into a tuple.
    pub fn at<T: Column>(&self, index: usize) -> Result<T> {
        T::from_value(self.value(index)?).map_err(|wrong| Error::internal(format!("column {index}: {wrong}")))
    }
}

impl Row<'_> {
    fn index(&self, name: &str) -> Result<usize> {
        let next = self.next.get();
        if self.name(next) == Some(name) {
            return Ok(next);
        }
        let mut names = (0..).map_while(|index| self.name(index));
        names.position(|known| known == name).ok_or_else(|| Error::internal(format!("there is no column {name}")))
    }

    fn name(&self, index: usize) -> Option<&str> {
        match &self.source {
            RowSource::Sqlite(_, names) => names.get(index).map(String::as_str),
            RowSource::Postgres(row) => row.columns().get(index).map(tokio_postgres::Column::name),
            RowSource::Given(_, names) => names.get(index).copied(),
        }
    }

    pub(crate) fn value(&self, index: usize) -> Result<Value<'_>> {
        match &self.source {
            RowSource::Sqlite(row, _) => row.get_ref(index).map(sqlite_value).map_err(Error::internal),
            RowSource::Postgres(row) => postgres::value(row, index),
            RowSource::Given(values, _) => {
                values.get(index).and_then(|arg| given_value(arg)).ok_or_else(|| Error::internal("no such column"))
            }
        }
    }
}

fn given_value<'a>(arg: &'a Arg<'_>) -> Option<Value<'a>> {
    Some(match arg {
        Arg::Null => Value::Null,
        Arg::Int(value) => Value::Int(*value),
        Arg::Real(value) => Value::Real(*value),
        Arg::Bool(value) => Value::Bool(*value),
        Arg::Text(text) => Value::Text(text),
        Arg::Bytes(bytes) => Value::Bytes(bytes),
        Arg::TextList(_) | Arg::IntList(_) => return None,
    })
}

fn sqlite_value(value: rusqlite::types::ValueRef<'_>) -> Value<'_> {
    use rusqlite::types::ValueRef;
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Int(value),
        ValueRef::Real(value) => Value::Real(value),
        // SQLite does not check encodings; what we wrote is UTF-8, so anything else is treated as bytes.
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).map_or(Value::Bytes(bytes), Value::Text),
        ValueRef::Blob(bytes) => Value::Bytes(bytes),
    }
}

/// The value cannot be read as the wanted type.
#[derive(Debug)]
pub struct WrongType(pub String);

impl std::error::Error for WrongType {}

impl fmt::Display for WrongType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn wrong<T>(wanted: &str, value: Value<'_>) -> Result<T, WrongType> {
    let found = match value {
        Value::Null => "NULL",
        Value::Int(_) => "an integer",
        Value::Real(_) => "a real",
        Value::Bool(_) => "a boolean",
        Value::Text(_) => "a text",
        Value::Bytes(_) => "bytes",
    };
    Err(WrongType(format!("wanted {wanted}, found {found}")))
}

/// A type that a column can be read into.
pub trait Column: Sized {
    fn from_value(value: Value<'_>) -> Result<Self, WrongType>;
}

impl Column for String {
    fn from_value(value: Value<'_>) -> Result<Self, WrongType> {
        match value {
            Value::Text(text) => Ok(text.to_owned()),
            other => wrong("a text", other),
        }
    }
}

impl Column for i64 {
    fn from_value(value: Value<'_>) -> Result<Self, WrongType> {
        match value {
            Value::Int(value) => Ok(value),
            other => wrong("an integer", other),
        }
    }
}

impl Column for u32 {
    fn from_value(value: Value<'_>) -> Result<Self, WrongType> {
        u32::try_from(i64::from_value(value)?).map_err(|_| WrongType("integer out of range".into()))
    }
}

impl Column for f64 {
    fn from_value(value: Value<'_>) -> Result<Self, WrongType> {
        match value {
            Value::Real(value) => Ok(value),
            other => wrong("a real", other),
        }
    }
}

impl Column for bool {
    fn from_value(value: Value<'_>) -> Result<Self, WrongType> {
        match value {
            Value::Bool(value) => Ok(value),
            // SQLite has no boolean type.
            Value::Int(0) => Ok(false),
            Value::Int(1) => Ok(true),
            other => wrong("a boolean", other),
        }
    }
}

impl Column for Vec<u8> {
    fn from_value(value: Value<'_>) -> Result<Self, WrongType> {
        match value {
            Value::Bytes(bytes) => Ok(bytes.to_owned()),
            other => wrong("bytes", other),
        }
    }
}

impl Column for Timestamp {
    fn from_value(value: Value<'_>) -> Result<Self, WrongType> {
        i64::from_value(value).map(Timestamp::from_micros)
    }
}

impl Column for AppNumber {
    fn from_value(value: Value<'_>) -> Result<Self, WrongType> {
        i64::from_value(value).map(AppNumber::from_i64)
    }
}

impl<K: IdKind> Column for Id<K> {
    fn from_value(value: Value<'_>) -> Result<Self, WrongType> {
        parsed(value)
    }
}

impl<T: Column> Column for Option<T> {
    fn from_value(value: Value<'_>) -> Result<Self, WrongType> {
        match value {
            Value::Null => Ok(None),
            value => T::from_value(value).map(Some),
        }
    }
}

/// A text column whose values are parsed.
pub fn parsed<T: FromStr<Err: fmt::Display>>(value: Value<'_>) -> Result<T, WrongType> {
    match value {
        Value::Text(text) => text.parse().map_err(|invalid: T::Err| WrongType(invalid.to_string())),
        other => wrong("a text", other),
    }
}

/// A type that a row can be read into.
pub trait FromRow: Sized {
    fn from_row(row: &Row<'_>) -> Result<Self>;
}

macro_rules! tuples {
    ($(($($column:ident $index:tt),+))*) => { $(
        impl<$($column: Column),+> FromRow for ($($column,)+) {
            fn from_row(row: &Row<'_>) -> Result<Self> {
                Ok(($(row.at::<$column>($index)?,)+))
            }
        }
    )* };
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
}
