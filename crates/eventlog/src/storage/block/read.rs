//! Reads a block, or only some of its columns.

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
};

use bytes::Bytes;
use kernel::{Error, Result, Timestamp, error::panic_text};
use parquet::{
    basic::Type as Physical,
    column::{page::PageReader, reader::get_column_reader},
    data_type::{
        AsBytes as _, BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, Int32Type,
        Int64Type,
    },
    errors::{ParquetError, Result as Read},
    file::metadata::{ParquetMetaData, ParquetMetaDataReader},
    schema::types::{ColumnDescPtr, ColumnDescriptor},
};
use serde_json::{Map, Value};

use super::{
    super::KeptEvent,
    AT, AUDITED, ID, INGEST_ID, INGESTED_AT, Kind, MORE, ORDER, PARAMETERS, REVISION, SOURCE,
    bounds::{MOST_EVENTS, Pages, Room, check_footer},
    compared::Compared,
};
use crate::{
    LoggedEventId,
    parameters::{addend, addend_of, equals, is_traced, traced},
};

/// Of the form of files, as it is written.
const VERSION: i32 = 1;

/// A block that is open for reading.
pub struct Block {
    file: Bytes,
    described: ParquetMetaData,
    /// How many events there are.
    length: usize,
    /// Columns by name.
    columns: HashMap<String, usize>,
    /// The parameters that have columns, in their order, each with those that it has.
    pub(super) parameters: Vec<(String, Vec<(Kind, usize)>)>,
    room: Room,
}

impl Block {
    pub fn open(data: Vec<u8>) -> Result<Self> {
        guarded(|| Self::read(Bytes::from(data))).map_err(unreadable)
    }

    /// Whatever is not as blocks are written is refused: one of a later release may mean something else by it.
    fn read(file: Bytes) -> Read<Self> {
        check_footer(&file)?;
        let described = ParquetMetaDataReader::new().parse_and_finish(&file)?;
        if described.file_metadata().version() != VERSION {
            return Err(wrong("a known version"));
        }
        let length = length(&described)?;
        let (mut columns, mut parameters) = (HashMap::new(), Vec::<(String, Vec<(Kind, usize)>)>::new());
        for (place, column) in described.file_metadata().schema_descr().columns().iter().enumerate() {
            let form = match column.path().parts() {
                [name] => {
                    columns.insert(name.clone(), place);
                    own_form(name).ok_or_else(|| wrong("known columns"))?
                }
                [group, name, kind] if group == PARAMETERS => {
                    let kind = Kind::ALL.into_iter().find(|known| known.as_str() == kind);
                    let kind = kind.ok_or_else(|| wrong("columns of known kinds"))?;
                    match parameters.last_mut().filter(|(last, _)| last == name) {
                        Some((_, kinds)) => kinds.push((kind, place)),
                        None => parameters.push((name.clone(), vec![(kind, place)])),
                    }
                    (kind.physical(), 1)
                }
                _ => return Err(wrong("known columns")),
            };
            if form_of(column) != (form, 0) {
                return Err(wrong("columns of their types"));
            }
        }
        Ok(Self { file, described, length, columns, parameters, room: Room::default() })
    }

    /// How many events there are.
    pub fn length(&self) -> usize {
        self.length
    }

    /// When each event happened, in microseconds.
    pub fn times(&self) -> Result<Vec<i64>> {
        self.required::<Int64Type>(AT).map_err(unreadable)
    }

    /// Which events have this value in a parameter.
    pub fn matching(&self, parameter: &str, wanted: &Value) -> Result<Vec<bool>> {
        self.room.refill();
        let mut fits = vec![false; self.length];
        let mut look = |row: usize, found: &Value| fits[row] |= equals(wanted, found);
        self.each_of_more(parameter, &mut look)?;
        match wanted {
            Value::String(text) => self.mark_texts(parameter, text, &mut fits)?,
            Value::Number(_) => self.each_number(parameter, &mut look)?,
            _ => self.each(parameter, &mut look)?,
        }
        Ok(fits)
    }

    /// Which events name this entity by a parameter.
    pub fn naming(&self, parameter: &str, entity: &str) -> Result<Vec<bool>> {
        self.room.refill();
        let mut names = vec![false; self.length];
        if !is_traced(parameter) {
            return Ok(names);
        }
        let mut look = |row: usize, found: &Value| {
            names[row] |= traced(parameter, found).is_some_and(|found| found == entity);
        };
        self.each_number(parameter, &mut look)?;
        self.each_of_more(parameter, &mut look)?;
        self.mark_texts(parameter, entity, &mut names)?;
        Ok(names)
    }

    /// What a parameter of each event adds to a sum.
    pub fn addends(&self, parameter: &str) -> Result<Vec<f64>> {
        self.room.refill();
        let mut addends = vec![0.0; self.length];
        for (kind, place) in self.kinds(parameter) {
            match kind {
                Kind::Whole => {
                    self.each_cell::<Int64Type>(*place, |row, found| addends[row] = addend_of(found as f64))?;
                }
                Kind::Real => self.each_cell::<DoubleType>(*place, |row, found| addends[row] = addend_of(found))?,
                Kind::Json => self.each_json_at(*place, &mut |row, found| addends[row] = addend(&found))?,
                Kind::Text | Kind::Bool => {}
            }
        }
        self.each_of_more(parameter, &mut |row, found| addends[row] = addend(found))?;
        Ok(addends)
    }

    /// Whether the block has this event.
    pub fn has(&self, id: LoggedEventId) -> Result<bool> {
        let ids = self.required::<FixedLenByteArrayType>(ID).map_err(unreadable)?;
        Ok(ids.iter().any(|found| found.data() == id.as_u128().to_be_bytes()))
    }

    /// The parameters of all events.
    pub fn parameters(&self) -> Result<Vec<Map<String, Value>>> {
        self.room.refill();
        let mut events = vec![Map::new(); self.length];
        for (name, _) in &self.parameters {
            self.each(name, &mut |row, value| {
                events[row].insert(name.clone(), value.clone());
            })?;
        }
        let mut is_whole = true;
        self.each_json(MORE, &mut |row, more| match more {
            Value::Object(more) => events[row].extend(more),
            _ => is_whole = false,
        })?;
        self.each_json(ORDER, &mut |row, order| {
            let mut before = std::mem::take(&mut events[row]);
            let names = order.as_array().into_iter().flatten().filter_map(Value::as_str);
            events[row] = names.filter_map(|name| before.remove_entry(name)).collect();
            is_whole &= before.is_empty();
        })?;
        if is_whole { Ok(events) } else { Err(unreadable(wrong("all parameters of its events"))) }
    }

    /// All events, whose name has this number.
    pub fn events(&self, name: i64) -> Result<Vec<KeptEvent>> {
        let parameters = self.parameters()?;
        self.whole(name, parameters).map_err(unreadable)
    }

    fn whole(&self, name: i64, parameters: Vec<Map<String, Value>>) -> Read<Vec<KeptEvent>> {
        let ids = self.required::<FixedLenByteArrayType>(ID)?;
        let (times, ingested) = (self.required::<Int64Type>(AT)?, self.required::<Int64Type>(INGESTED_AT)?);
        let (mut sources, mut ingest_ids) = (self.texts(SOURCE)?.into_iter(), self.texts(INGEST_ID)?.into_iter());
        let audited = self.required::<BoolType>(AUDITED)?;
        let mut revisions = self.optional::<Int64Type>(self.column(REVISION)?)?.into_iter();
        let mut events = Vec::with_capacity(self.length);
        for (row, parameters) in parameters.into_iter().enumerate() {
            let id: [u8; 16] = ids[row].data().try_into().map_err(|_| wrong("an id of 16 bytes"))?;
            events.push(KeptEvent {
                id: LoggedEventId::from_u128(u128::from_be_bytes(id)),
                name,
                at: Timestamp::from_micros(times[row]),
                ingested_at: Timestamp::from_micros(ingested[row]),
                source: sources.next().flatten(),
                ingest_id: ingest_ids.next().flatten(),
                audited: audited[row],
                parameters: Value::Object(parameters).to_string(),
                revision: revisions.next().flatten(),
            });
        }
        Ok(events)
    }

    fn kinds(&self, parameter: &str) -> &[(Kind, usize)] {
        self.parameters.iter().find(|(name, _)| name == parameter).map_or(&[], |(_, kinds)| kinds)
    }

    /// Calls `visit` with the rows in which the parameter has a column's value.
    fn each(&self, parameter: &str, visit: &mut dyn FnMut(usize, &Value)) -> Result<()> {
        self.each_number(parameter, visit)?;
        for (kind, place) in self.kinds(parameter) {
            match kind {
                Kind::Text => {
                    self.each_text_at(*place, &mut |row, text| visit(row, &Value::String(text.to_owned())))?;
                }
                Kind::Bool => self.each_cell::<BoolType>(*place, |row, found| visit(row, &Value::Bool(found)))?,
                Kind::Json => self.each_json_at(*place, &mut |row, value| visit(row, &value))?,
                Kind::Whole | Kind::Real => {}
            }
        }
        Ok(())
    }

    fn each_text_at(&self, place: usize, visit: &mut dyn FnMut(usize, &str)) -> Result<()> {
        let mut is_text = true;
        self.each_cell::<ByteArrayType>(place, |row, text: ByteArray| match std::str::from_utf8(text.data()) {
            Ok(text) => visit(row, text),
            Err(_) => is_text = false,
        })?;
        if is_text { Ok(()) } else { Err(unreadable(wrong("texts in UTF-8"))) }
    }

    /// Marks the rows in which the parameter has a column's text that is this one.
    fn mark_texts(&self, parameter: &str, wanted: &str, marks: &mut [bool]) -> Result<()> {
        for (_, place) in self.kinds(parameter).iter().filter(|(kind, _)| *kind == Kind::Text) {
            let (levels, found) = guarded(|| self.compared(*place, wanted)).map_err(unreadable)?;
            each_present(&levels, found, |row, found| marks[row] |= found == Compared::SAME);
        }
        Ok(())
    }

    fn each_number(&self, parameter: &str, visit: &mut dyn FnMut(usize, &Value)) -> Result<()> {
        for (kind, place) in self.kinds(parameter) {
            match kind {
                Kind::Whole => self.each_cell::<Int64Type>(*place, |row, found| visit(row, &found.into()))?,
                Kind::Real => self.each_cell::<DoubleType>(*place, |row, found| visit(row, &found.into()))?,
                // Whole numbers that are too large for the column.
                Kind::Json => self.each_json_at(*place, &mut |row, value| {
                    if value.is_number() {
                        visit(row, &value);
                    }
                })?,
                Kind::Text | Kind::Bool => {}
            }
        }
        Ok(())
    }

    /// Calls `visit` with the rows that have the parameter, where it has no column of its own.
    fn each_of_more(&self, parameter: &str, visit: &mut dyn FnMut(usize, &Value)) -> Result<()> {
        if !self.kinds(parameter).is_empty() {
            return Ok(());
        }
        self.each_json(MORE, &mut |row, more| {
            if let Some(found) = more.get(parameter) {
                visit(row, found);
            }
        })
    }

    fn each_json(&self, column: &str, visit: &mut dyn FnMut(usize, Value)) -> Result<()> {
        let place = self.column(column).map_err(unreadable)?;
        self.each_json_at(place, visit)
    }

    fn each_json_at(&self, place: usize, visit: &mut dyn FnMut(usize, Value)) -> Result<()> {
        let mut broken = None;
        self.each_cell::<ByteArrayType>(place, |row, json: ByteArray| match serde_json::from_slice(json.data()) {
            Ok(value) => visit(row, value),
            Err(error) => broken = Some(error),
        })?;
        broken.map_or(Ok(()), |error| Err(unreadable(ParquetError::External(Box::new(error)))))
    }

    /// Calls `visit` with the rows that have a value in a column.
    fn each_cell<T: DataType>(&self, place: usize, visit: impl FnMut(usize, T::T)) -> Result<()> {
        let (levels, values) = self.cells::<T>(place).map_err(unreadable)?;
        each_present(&levels, values, visit);
        Ok(())
    }

    fn texts(&self, name: &str) -> Read<Vec<Option<String>>> {
        let texts = self.optional::<ByteArrayType>(self.column(name)?)?;
        let owned = |text: ByteArray| String::from_utf8(text.data().to_vec()).map_err(|_| wrong("texts in UTF-8"));
        texts.into_iter().map(|text| text.map(owned).transpose()).collect()
    }

    fn required<T: DataType>(&self, name: &str) -> Read<Vec<T::T>> {
        let (_, values) = self.cells::<T>(self.column(name)?)?;
        if values.len() == self.length { Ok(values) } else { Err(wrong("a value for each event")) }
    }

    fn optional<T: DataType>(&self, place: usize) -> Read<Vec<Option<T::T>>> {
        let (levels, values) = self.cells::<T>(place)?;
        let mut values = values.into_iter();
        Ok(levels.into_iter().map(|level| if level > 0 { values.next() } else { None }).collect())
    }

    fn column(&self, name: &str) -> Read<usize> {
        self.columns.get(name).copied().ok_or_else(|| wrong("all of its columns"))
    }

    /// Which events have a value in a column, and these values.
    fn cells<T: DataType>(&self, place: usize) -> Read<(Vec<i16>, Vec<T::T>)> {
        guarded(|| self.read_cells::<T>(place))
    }

    fn read_cells<T: DataType>(&self, place: usize) -> Read<(Vec<i16>, Vec<T::T>)> {
        let column = self.described.row_group(0).column(place).column_descr_ptr();
        let cells = self.read_pages::<T>(column, self.pages(place)?)?;
        if T::get_physical_type() == Physical::BYTE_ARRAY {
            self.room.take(cells.1.iter().map(|value| value.as_bytes().len()).sum())?;
        }
        Ok(cells)
    }

    fn pages(&self, place: usize) -> Read<Pages> {
        Pages::new(&self.file, self.described.row_group(0).column(place), self.length)
    }

    /// Which events have a text in a column, and whether it is this one.
    fn compared(&self, place: usize, wanted: &str) -> Read<(Vec<i16>, Vec<i32>)> {
        let pages = Compared::new(self.pages(place)?, wanted);
        self.read_pages::<Int32Type>(Compared::column()?, pages)
    }

    fn read_pages<T: DataType>(
        &self,
        column: ColumnDescPtr,
        pages: impl PageReader + 'static,
    ) -> Read<(Vec<i16>, Vec<T::T>)> {
        let column = get_column_reader(column, Box::new(pages));
        let mut column = T::get_column_reader(column).ok_or_else(|| wrong("columns of their types"))?;
        let (mut levels, mut values) = (Vec::with_capacity(self.length), Vec::with_capacity(self.length));
        let mut read = 0;
        while read < self.length {
            let (records, _, _) = column.read_records(self.length - read, Some(&mut levels), None, &mut values)?;
            if records == 0 {
                return Err(wrong("a row for each event"));
            }
            read += records;
        }
        if column.read_records(1, Some(&mut levels), None, &mut values)?.0 > 0 {
            return Err(wrong("one row for each event"));
        }
        Ok((levels, values))
    }
}

/// Calls `visit` with the rows that have a value.
fn each_present<V>(levels: &[i16], values: Vec<V>, mut visit: impl FnMut(usize, V)) {
    // Most columns have one in every row, which takes no look at each.
    if values.len() == levels.len() {
        return values.into_iter().enumerate().for_each(|(row, value)| visit(row, value));
    }
    let rows = levels.iter().enumerate().filter(|(_, level)| **level > 0).map(|(row, _)| row);
    rows.zip(values).for_each(|(row, value)| visit(row, value));
}

/// How many events there are, if all that is said about it agrees.
fn length(described: &ParquetMetaData) -> Read<usize> {
    let [group] = described.row_groups() else { return Err(wrong("one row group")) };
    let length = described.file_metadata().num_rows();
    let all_agree = group.num_rows() == length && group.columns().iter().all(|column| column.num_values() == length);
    let length = usize::try_from(length).ok().filter(|length| (1..=MOST_EVENTS).contains(length) && all_agree);
    length.ok_or_else(|| wrong("a likely number of events"))
}

/// Of a column that every block has: its type, and 1 where events may have no value.
fn own_form(name: &str) -> Option<(Physical, i16)> {
    match name {
        ID => Some((Physical::FIXED_LEN_BYTE_ARRAY, 0)),
        AT | INGESTED_AT => Some((Physical::INT64, 0)),
        AUDITED => Some((Physical::BOOLEAN, 0)),
        REVISION => Some((Physical::INT64, 1)),
        SOURCE | INGEST_ID | MORE | ORDER => Some((Physical::BYTE_ARRAY, 1)),
        _ => None,
    }
}

/// The same of a column that was found, and how often an event may have a value.
fn form_of(column: &ColumnDescriptor) -> ((Physical, i16), i16) {
    ((column.physical_type(), column.max_def_level()), column.max_rep_level())
}

/// The library panics at some of what it cannot read.
fn guarded<T>(read: impl FnOnce() -> Read<T>) -> Read<T> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|panic| Err(ParquetError::General(panic_text(panic.as_ref()).to_owned())))
}

pub(super) fn wrong(missing: &str) -> ParquetError {
    ParquetError::General(format!("a block has {missing}"))
}

/// Nothing is guessed: a question that needs a block which cannot be read has no answer.
pub(super) fn unreadable(cause: ParquetError) -> Error {
    super::super::blocks::unreadable(cause)
}
