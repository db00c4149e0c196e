//! Writes a block.

use std::{collections::HashMap, sync::Arc};

use kernel::{Error, Result};
use parquet::{
    basic::{Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical},
    data_type::{
        BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, Int64Type,
    },
    file::{
        properties::{EnabledStatistics, WriterProperties},
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::types::{ColumnPath, Type, TypePtr},
};
use serde_json::{Map, Value};

use super::{
    super::KeptEvent, AT, AUDITED, ID, INGEST_ID, INGESTED_AT, Kind, MORE, MOST_COLUMNS, ORDER, PARAMETERS, REVISION,
    SOURCE,
};

/// Events of one name, oldest first.
pub fn encode(events: &[KeptEvent]) -> Result<Vec<u8>> {
    let parsed: Vec<Map<String, Value>> = events
        .iter()
        .map(|event| serde_json::from_str(&event.parameters))
        .collect::<Result<_, _>>()
        .map_err(Error::internal)?;
    write(events, &parsed, &Layout::of(&parsed)).map_err(Error::internal)
}

/// Which columns parameters have, in their order.
struct Layout<'a> {
    columns: Vec<(&'a str, Vec<Kind>)>,
    places: HashMap<&'a str, usize>,
}

impl<'a> Layout<'a> {
    fn of(events: &'a [Map<String, Value>]) -> Self {
        let (mut columns, mut uses): (Vec<(&str, Vec<Kind>)>, Vec<usize>) = (Vec::new(), Vec::new());
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (name, value) in events.iter().flatten() {
            let place = *places.entry(name).or_insert_with(|| {
                columns.push((name, Vec::new()));
                uses.push(0);
                columns.len() - 1
            });
            uses[place] += 1;
            let kinds = &mut columns[place].1;
            if !kinds.contains(&Kind::of(value)) {
                kinds.push(Kind::of(value));
            }
        }
        let columns = most_used(columns, &uses);
        let places = columns.iter().enumerate().map(|(place, (name, _))| (*name, place)).collect();
        Self { columns, places }
    }

    fn schema(&self) -> parquet::errors::Result<TypePtr> {
        let text = || Some(LogicalType::String);
        let time = || Some(LogicalType::timestamp(true, TimeUnit::MICROS));
        let mut fields = vec![
            leaf(ID, Physical::FIXED_LEN_BYTE_ARRAY, None, Repetition::REQUIRED)?,
            leaf(AT, Physical::INT64, time(), Repetition::REQUIRED)?,
            leaf(INGESTED_AT, Physical::INT64, time(), Repetition::REQUIRED)?,
            leaf(SOURCE, Physical::BYTE_ARRAY, text(), Repetition::OPTIONAL)?,
            leaf(INGEST_ID, Physical::BYTE_ARRAY, text(), Repetition::OPTIONAL)?,
            leaf(AUDITED, Physical::BOOLEAN, None, Repetition::REQUIRED)?,
            leaf(REVISION, Physical::INT64, None, Repetition::OPTIONAL)?,
            leaf(MORE, Physical::BYTE_ARRAY, Some(LogicalType::Json), Repetition::OPTIONAL)?,
            leaf(ORDER, Physical::BYTE_ARRAY, Some(LogicalType::Json), Repetition::OPTIONAL)?,
        ];
        let mut parameters = Vec::new();
        for (name, kinds) in &self.columns {
            let leaves = kinds.iter().map(|kind| parameter(*kind)).collect::<Result<Vec<_>, _>>()?;
            parameters.push(group(name, leaves)?);
        }
        if !parameters.is_empty() {
            fields.push(group(PARAMETERS, parameters)?);
        }
        Ok(Arc::new(Type::group_type_builder("event").with_fields(fields).build()?))
    }

    /// The names of an event's parameters, unless they are in the order of the columns.
    fn order(&self, event: &Map<String, Value>) -> Option<ByteArray> {
        let places: Option<Vec<usize>> = event.keys().map(|name| self.places.get(name.as_str()).copied()).collect();
        if places.is_some_and(|places| places.is_sorted()) {
            return None;
        }
        let names: Vec<&String> = event.keys().collect();
        serde_json::to_vec(&names).ok().map(ByteArray::from)
    }

    /// The parameters that have no column.
    fn more(&self, event: &Map<String, Value>) -> Option<ByteArray> {
        let has_column = |name: &String| self.places.contains_key(name.as_str());
        let more: Map<String, Value> = event
            .iter()
            .filter(|(name, _)| !has_column(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        (!more.is_empty()).then(|| ByteArray::from(Value::Object(more).to_string().into_bytes()))
    }
}

/// As many of the columns as a block may have, in the order in which they were found.
fn most_used<'a>(columns: Vec<(&'a str, Vec<Kind>)>, uses: &[usize]) -> Vec<(&'a str, Vec<Kind>)> {
    let mut ranked: Vec<usize> = (0..columns.len()).collect();
    ranked.sort_by_key(|place| std::cmp::Reverse(uses[*place]));
    let mut room = MOST_COLUMNS;
    let mut kept: Vec<usize> = Vec::new();
    for place in ranked {
        let Some(left) = room.checked_sub(columns[place].1.len()) else { break };
        room = left;
        kept.push(place);
    }
    kept.sort_unstable();
    let mut columns: Vec<Option<_>> = columns.into_iter().map(Some).collect();
    kept.into_iter().filter_map(|place| columns[place].take()).collect()
}

fn leaf(
    name: &str,
    physical: Physical,
    logical: Option<LogicalType>,
    repetition: Repetition,
) -> parquet::errors::Result<TypePtr> {
    let length = if physical == Physical::FIXED_LEN_BYTE_ARRAY { 16 } else { -1 };
    let leaf = Type::primitive_type_builder(name, physical).with_logical_type(logical).with_length(length);
    Ok(Arc::new(leaf.with_repetition(repetition).build()?))
}

fn parameter(kind: Kind) -> parquet::errors::Result<TypePtr> {
    let logical = match kind {
        Kind::Text => Some(LogicalType::String),
        Kind::Json => Some(LogicalType::Json),
        Kind::Whole | Kind::Real | Kind::Bool => None,
    };
    leaf(kind.as_str(), kind.physical(), logical, Repetition::OPTIONAL)
}

fn group(name: &str, fields: Vec<TypePtr>) -> parquet::errors::Result<TypePtr> {
    let group = Type::group_type_builder(name).with_fields(fields).with_repetition(Repetition::REQUIRED);
    Ok(Arc::new(group.build()?))
}

fn properties() -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_created_by("tenantry".to_owned());
    // What is nearly always new in every event gains nothing from a dictionary.
    for (name, encoding) in [
        (ID, Encoding::DELTA_BYTE_ARRAY),
        (AT, Encoding::DELTA_BINARY_PACKED),
        (INGESTED_AT, Encoding::DELTA_BINARY_PACKED),
        (INGEST_ID, Encoding::DELTA_BYTE_ARRAY),
    ] {
        let column = ColumnPath::from(name);
        properties =
            properties.set_column_dictionary_enabled(column.clone(), false).set_column_encoding(column, encoding);
    }
    properties.build()
}

fn write(events: &[KeptEvent], parsed: &[Map<String, Value>], layout: &Layout<'_>) -> parquet::errors::Result<Vec<u8>> {
    let mut file = SerializedFileWriter::new(Vec::new(), layout.schema()?, Arc::new(properties()))?;
    let mut group = file.next_row_group()?;
    let ids = events.iter().map(|event| Some(FixedLenByteArray::from(event.id.as_u128().to_be_bytes().to_vec())));
    column::<FixedLenByteArrayType>(&mut group, ids)?;
    column::<Int64Type>(&mut group, events.iter().map(|event| Some(event.at.as_micros())))?;
    column::<Int64Type>(&mut group, events.iter().map(|event| Some(event.ingested_at.as_micros())))?;
    column::<ByteArrayType>(&mut group, events.iter().map(|event| event.source.as_deref().map(ByteArray::from)))?;
    column::<ByteArrayType>(&mut group, events.iter().map(|event| event.ingest_id.as_deref().map(ByteArray::from)))?;
    column::<BoolType>(&mut group, events.iter().map(|event| Some(event.audited)))?;
    column::<Int64Type>(&mut group, events.iter().map(|event| event.revision))?;
    column::<ByteArrayType>(&mut group, parsed.iter().map(|event| layout.more(event)))?;
    column::<ByteArrayType>(&mut group, parsed.iter().map(|event| layout.order(event)))?;
    for (name, kinds) in &layout.columns {
        for kind in kinds {
            let values = parsed.iter().map(|event| event.get(*name).filter(|value| Kind::of(value) == *kind));
            match kind {
                Kind::Text => {
                    column::<ByteArrayType>(&mut group, values.map(|value| value?.as_str().map(ByteArray::from)))?;
                }
                Kind::Whole => column::<Int64Type>(&mut group, values.map(|value| value?.as_i64()))?,
                Kind::Real => column::<DoubleType>(&mut group, values.map(|value| value?.as_f64()))?,
                Kind::Bool => column::<BoolType>(&mut group, values.map(|value| value?.as_bool()))?,
                Kind::Json => {
                    let json = values.map(|value| Some(ByteArray::from(value?.to_string().into_bytes())));
                    column::<ByteArrayType>(&mut group, json)?;
                }
            }
        }
    }
    group.close()?;
    file.into_inner()
}

/// The next column, with a value or none for each event.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: impl Iterator<Item = Option<T::T>>,
) -> parquet::errors::Result<()> {
    let (mut levels, mut present) = (Vec::new(), Vec::new());
    for value in values {
        levels.push(i16::from(value.is_some()));
        present.extend(value);
    }
    let Some(mut writer) = group.next_column()? else {
        return Err(parquet::errors::ParquetError::General("a column too many".to_owned()));
    };
    writer.typed::<T>().write_batch(&present, Some(&levels), None)?;
    writer.close()
}
