//! Rows of tables that are found by asking the engine: for moving them between stores, whatever they mean.

use std::collections::HashMap;

use kernel::{Error, Result};

use crate::{
    Arg, Column, ColumnType, Tx, Value, WrongType,
    backup::tables::{self, BackupTable, interned, quoted},
};

/// A table of the schema.
pub struct RawTable(BackupTable);

/// A value in a form that both engines share: booleans are 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub enum RawCell {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Column for RawCell {
    fn from_value(value: Value<'_>) -> Result<Self, WrongType> {
        Ok(match value {
            Value::Null => Self::Null,
            Value::Int(value) => Self::Int(value),
            Value::Bool(value) => Self::Int(value.into()),
            Value::Real(value) => Self::Real(value),
            Value::Text(text) => Self::Text(text.to_owned()),
            Value::Bytes(bytes) => Self::Bytes(bytes.to_owned()),
        })
    }
}

impl RawCell {
    /// As a column of this type wants it; `None` when it is a value of another type.
    fn to_arg(&self, wanted: ColumnType) -> Option<Arg<'_>> {
        Some(match (self, wanted) {
            (Self::Null, _) => Arg::Null,
            (Self::Int(value), ColumnType::Int) => Arg::Int(*value),
            (Self::Int(value @ (0 | 1)), ColumnType::Bool) => Arg::Bool(*value == 1),
            (Self::Real(value), ColumnType::Real) => Arg::Real(*value),
            (Self::Text(text), ColumnType::Text) => Arg::Text(text.into()),
            (Self::Bytes(bytes), ColumnType::Bytes) => Arg::Bytes(bytes.into()),
            _ => return None,
        })
    }

    /// About how much memory it takes.
    pub fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Null | Self::Int(_) | Self::Real(_) => 8,
        }
    }
}

impl RawTable {
    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.0.columns.iter().map(|column| column.name.as_str())
    }

    /// The same table with its columns in this order; `None` unless they are the same columns.
    #[must_use]
    pub fn in_order(self, names: &[String]) -> Option<Self> {
        let BackupTable { name, columns } = self.0;
        let mut known: HashMap<String, _> = columns.into_iter().map(|column| (column.name.clone(), column)).collect();
        let columns = names.iter().map(|name| known.remove(name)).collect::<Option<Vec<_>>>()?;
        known.is_empty().then_some(Self(BackupTable { name, columns }))
    }
}

impl Tx<'_> {
    /// All tables, those that are referred to before those that refer to them.
    pub fn raw_tables(&mut self) -> Result<Vec<RawTable>> {
        let engine = self.engine();
        Ok(tables::of(self, engine)?.into_iter().map(RawTable).collect())
    }

    /// The tables whose rows refer to rows of this one.
    pub fn raw_children(&mut self, parent: &str) -> Result<Vec<String>> {
        let engine = self.engine();
        let references = tables::references(self, engine)?;
        Ok(references.into_iter().filter(|(_, to)| to == parent).map(|(child, _)| child).collect())
    }

    /// Rows of a table whose column has this value, in the order of other columns.
    pub fn each_raw(
        &mut self,
        table: &RawTable,
        (column, value): (&str, Arg<'_>),
        order: &str,
        visit: &mut dyn FnMut(Vec<RawCell>) -> Result<()>,
    ) -> Result<()> {
        let order: Vec<String> = order.split(", ").map(quoted).collect();
        let sql = format!("{} WHERE {} = $1 ORDER BY {}", table.0.select(), quoted(column), order.join(", "));
        let width = table.0.columns.len();
        self.read_as_long_as_needed()?;
        self.each_unrecorded(interned(sql), &[value], &mut |row| {
            visit((0..width).map(|index| row.at(index)).collect::<Result<_>>()?)
        })
    }

    /// Puts rows in as they are.
    pub fn insert_raw(&mut self, table: &RawTable, rows: &[Vec<RawCell>]) -> Result<()> {
        let (RawTable(table), list) = (table, table.0.column_list());
        let sql =
            interned(format!("INSERT INTO {} ({list}) SELECT {list} FROM {{rows}} WHERE true", quoted(&table.name)));
        let columns: Vec<(&'static str, ColumnType)> =
            table.columns.iter().map(|column| (interned(quoted(&column.name)), column.kind)).collect();
        let mut batch = Vec::with_capacity(rows.len());
        for row in rows {
            if row.len() != table.columns.len() {
                return Err(Error::internal(format!("a row of {} has {} cells", table.name, row.len())));
            }
            let cells = row.iter().zip(&table.columns).map(|(cell, column)| {
                cell.to_arg(column.kind).ok_or_else(|| {
                    Error::internal(format!("{}.{} would hold a value of another type", table.name, column.name))
                })
            });
            batch.push(cells.collect::<Result<Vec<_>>>()?);
        }
        self.insert_all_unrecorded(sql, &columns, &batch, &mut |_| Ok(()))
    }
}
