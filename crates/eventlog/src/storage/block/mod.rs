//! The form of a block: a Parquet file with a row for each event, oldest first, that other programs can read too. Pure.
//!
//! ```text
//! id, timestamp, ingested_at, ingest_source, ingest_id, audited, revision
//! parameters.<name>.text | int | real | bool | json     one column for each type that the parameter has in the block
//! more                                                   JSON: parameters that have no column
//! order                                                  names of parameters, where they came in another order than the columns have
//! ```
//!
//! A parameter that an event does not have is null in all its columns; one that is null, a list or an object is JSON.

mod bounds;
mod compared;
mod read;
mod write;

use parquet::basic::Type as Physical;

pub use read::Block;
pub use write::encode;

/// Columns that parameters may have in a block. What is rarer is written as JSON in one column.
const MOST_COLUMNS: usize = 200;

const ID: &str = "id";
const AT: &str = "timestamp";
const INGESTED_AT: &str = "ingested_at";
const SOURCE: &str = "ingest_source";
const INGEST_ID: &str = "ingest_id";
const AUDITED: &str = "audited";
const REVISION: &str = "revision";
const MORE: &str = "more";
const ORDER: &str = "order";
const PARAMETERS: &str = "parameters";

/// The type of a column of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    Text,
    Whole,
    Real,
    Bool,
    /// Whatever JSON has beside these.
    Json,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Text, Self::Whole, Self::Real, Self::Bool, Self::Json];

    fn of(value: &serde_json::Value) -> Self {
        match value {
            serde_json::Value::String(_) => Self::Text,
            serde_json::Value::Bool(_) => Self::Bool,
            serde_json::Value::Number(number) if number.is_i64() => Self::Whole,
            serde_json::Value::Number(number) if number.is_f64() => Self::Real,
            _ => Self::Json,
        }
    }

    fn physical(self) -> Physical {
        match self {
            Self::Text | Self::Json => Physical::BYTE_ARRAY,
            Self::Whole => Physical::INT64,
            Self::Real => Physical::DOUBLE,
            Self::Bool => Physical::BOOLEAN,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Whole => "int",
            Self::Real => "real",
            Self::Bool => "bool",
            Self::Json => "json",
        }
    }
}

#[cfg(test)]
mod damaged;
#[cfg(test)]
mod maker;
#[cfg(test)]
mod tests;
