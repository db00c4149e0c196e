//! Makes `tests/corpus/blocks`: good blocks, and damaged ones, each named for what is wrong with it. To add one, add it
//! here and run `cargo test -p eventlog makes_the_corpus -- --ignored`; a test fails while files and maker differ.

mod forms;

use std::sync::Arc;

use kernel::Timestamp;
use parquet::{
    basic::{Compression, Repetition, Type as Physical},
    file::metadata::{
        ColumnChunkMetaData, FileMetaData, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter,
        RowGroupMetaData,
    },
    schema::types::{SchemaDescriptor, Type, TypePtr},
};
use serde_json::{Value, json};

use super::{super::KeptEvent, encode};
use crate::LoggedEventId;
use forms::{data, levelled, number, page, run, sized, snappy, text, varint};

/// Events of the blocks that are damaged.
pub const EVENTS: u16 = 200;

/// A block's name and its bytes.
pub type Made = (String, Vec<u8>);

pub fn event(number: u128, parameters: &Value) -> KeptEvent {
    KeptEvent {
        id: LoggedEventId::from_u128(number),
        name: 7,
        at: Timestamp::from_micros(i64::try_from(number).expect("small") * 1_000),
        ingested_at: Timestamp::from_seconds(5),
        source: number.is_multiple_of(3).then(|| "import".to_owned()),
        ingest_id: number.is_multiple_of(2).then(|| format!("i{number}")),
        audited: number.is_multiple_of(2),
        parameters: parameters.to_string(),
        revision: number.is_multiple_of(5).then_some(3),
    }
}

fn block(events: impl Iterator<Item = Value>) -> Vec<u8> {
    let events: Vec<KeptEvent> = events.zip(0..).map(|(parameters, number)| event(number, &parameters)).collect();
    encode(&events).expect("a block")
}

fn good() -> Vec<u8> {
    block((0..EVENTS).map(|number| json!({ "userId": format!("u{}", number % 7), "n": number })))
}

pub fn accepted() -> Vec<Made> {
    let kinds =
        [json!("text"), json!(1), json!(1.5), json!(true), json!(null), json!([1, { "deep": {} }]), json!(u64::MAX)];
    let others = |number: u16| json!({ format!("only{number}"): number, "common": "x" });
    let orders = [json!({ "a": 1, "b": 2 }), json!({ "b": 1, "a": 2 }), json!({})];
    vec![
        ("plain".to_owned(), good()),
        ("kinds".to_owned(), block(kinds.into_iter().map(|value| json!({ "any": value, "": "empty" })))),
        ("columns".to_owned(), block((0..300).map(others))),
        ("orders".to_owned(), block(orders.into_iter())),
        ("single".to_owned(), block(std::iter::once(json!({ "ünï\u{0}": "\u{1f600}" })))),
    ]
}

pub fn refused() -> Vec<Made> {
    let damaged = [cut(), ends(), footers(), counts(), columns(), pages(), texts(), bombs()];
    damaged.into_iter().flatten().map(|(name, bytes)| (name.to_owned(), bytes)).collect()
}

type Named = Vec<(&'static str, Vec<u8>)>;

fn cut() -> Named {
    let good = good();
    let (length, footer) = (good.len(), footer_start(&good));
    let places = [
        ("cut-empty", 0),
        ("cut-in-magic", 3),
        ("cut-after-magic", 4),
        ("cut-half", length / 2),
        ("cut-before-footer", footer),
        ("cut-in-footer", footer + 50),
        ("cut-before-end", length - 8),
        ("cut-last-byte", length - 1),
    ];
    places.into_iter().map(|(name, place)| (name, good[..place].to_vec())).collect()
}

/// The first and the last bytes of a file.
fn ends() -> Named {
    let good = good();
    let end = good.len();
    let footer = u32::from_le_bytes(good[end - 8..end - 4].try_into().expect("four bytes"));
    let put = |at: usize, bytes: &[u8]| {
        let mut damaged = good.clone();
        damaged[at..at + bytes.len()].copy_from_slice(bytes);
        damaged
    };
    let with_footer = |length: u32| put(end - 8, &length.to_le_bytes());
    vec![
        ("magic-first", put(0, b"PAR2")),
        ("magic-last", put(end - 4, b"PAR2")),
        ("magic-encrypted", put(end - 4, b"PARE")),
        ("footer-longest", with_footer(u32::MAX)),
        ("footer-none", with_footer(0)),
        ("footer-one-more", with_footer(footer + 1)),
        ("footer-one-less", with_footer(footer - 1)),
        ("trailing-byte", [good.as_slice(), b"\0"].concat()),
        ("zeros", vec![0; end]),
    ]
}

/// Footers that were written by hand.
fn footers() -> Named {
    let file = |described: &[u8]| {
        let length = u32::try_from(described.len()).expect("short");
        [b"PAR1", described, &length.to_le_bytes(), b"PAR1"].concat()
    };
    let version = [0x15, 0x02];
    let root = |children: i64| [&[0x48, 5], b"event".as_slice(), &[0x15], &number(children), &[0]].concat();
    let schema = |count: u8, elements: &[u8]| [&version[..], &[0x19, count << 4 | 0x0C], elements].concat();
    let nested = {
        let group = [&[0x35, 0, 0x18, 1], b"g".as_slice(), &[0x15], &number(1), &[0]].concat();
        let count = varint(2_001);
        [&version[..], &[0x19, 0xFC], &count, &root(1), &group.repeat(2_000)].concat()
    };
    let deep = [&version[..], &[0x7C], &[0x1C].repeat(5_000)].concat();
    vec![
        ("schema-children-most", file(&schema(1, &root(i32::MAX.into())))),
        ("schema-children-negative", file(&schema(1, &root(-1)))),
        ("schema-empty", file(&schema(0, &[]))),
        ("schema-nested", file(&nested)),
        ("schema-longest", file(&[&version[..], &[0x19, 0xFC], &varint(i32::MAX as u64)].concat())),
        ("schema-of-numbers", file(&[&version[..], &[0x19, 0x15, 2]].concat())),
        ("structures-nested", file(&deep)),
        ("name-longest", file(&schema(1, &[&[0x48][..], &varint(u64::MAX >> 1), b"event"].concat()))),
    ]
}

/// What is said about the numbers of rows.
fn counts() -> Named {
    let rows = |of_group: i64, of_first: i64| {
        described(|file, columns| {
            let first = columns[0].clone().into_builder().set_num_values(of_first).build().expect("a column");
            columns[0] = first;
            file.rows_of_group = of_group;
        })
    };
    let events = i64::from(EVENTS);
    let of_file = {
        // Whoever writes a footer adds up what groups have, so that it takes another byte in the first number that is this.
        let mut file = good();
        let (written, other) = ([&[0x16][..], &number(events)].concat(), [&[0x16][..], &number(events + 1)].concat());
        let footer = footer_start(&file);
        let place =
            footer + file[footer..].windows(written.len()).position(|bytes| bytes == written).expect("a number");
        file[place..place + other.len()].copy_from_slice(&other);
        file
    };
    let all = |count: i64| {
        described(|file, columns| {
            for column in columns.iter_mut() {
                *column = column.clone().into_builder().set_num_values(count).build().expect("a column");
            }
            file.rows_of_group = count;
        })
    };
    vec![
        ("rows-of-file-differ", of_file),
        ("rows-of-group-differ", rows(events - 1, events)),
        ("rows-of-column-differ", rows(events, events + 1)),
        ("rows-one-more", all(events + 1)),
        ("rows-one-less", all(events - 1)),
        ("rows-most", all(i64::MAX)),
        ("rows-negative", all(-1)),
        ("rows-million", all(1_000_000)),
        ("groups-none", described(|file, _| file.groups = 0)),
        ("groups-two", described(|file, _| file.groups = 2)),
        ("version-later", described(|file, _| file.version = 3)),
    ]
}

/// Columns that are missing, unknown, or of another form.
fn columns() -> Named {
    let replaced = |name: &'static str, by: TypePtr| {
        described(move |file, _| {
            let place = file.fields.iter().position(|field| field.name() == name).expect("a column");
            file.fields[place] = by;
        })
    };
    let leaf = |name: &str, physical: Physical, repetition: Repetition| {
        let length = if physical == Physical::FIXED_LEN_BYTE_ARRAY { 16 } else { -1 };
        let leaf = Type::primitive_type_builder(name, physical).with_length(length).with_repetition(repetition);
        Arc::new(leaf.build().expect("a column"))
    };
    let group = |name: &str, repetition: Repetition, fields: Vec<TypePtr>| {
        let group = Type::group_type_builder(name).with_repetition(repetition).with_fields(fields);
        Arc::new(group.build().expect("a group"))
    };
    let (one, maybe, many) = (Repetition::REQUIRED, Repetition::OPTIONAL, Repetition::REPEATED);
    let parameters = |kind: &str, of_all: Repetition| {
        let user = group("userId", one, vec![leaf("text", Physical::BYTE_ARRAY, maybe)]);
        let number = group("n", one, vec![leaf(kind, Physical::INT64, maybe)]);
        replaced("parameters", group("parameters", of_all, vec![user, number]))
    };
    let swapped = described(|_, columns| {
        let (times, sources) = (columns[1].clone(), columns[3].clone());
        columns[1] = moved(times.clone(), &sources);
        columns[3] = moved(sources, &times);
    });
    vec![
        (
            "column-missing",
            described(|file, columns| {
                file.fields.retain(|field| field.name() != "more");
                columns.retain(|column| column.column_path().string() != "more");
            }),
        ),
        ("column-unknown", replaced("revision", leaf("later", Physical::INT64, maybe))),
        (
            "column-further",
            described(|file, columns| {
                file.fields.insert(9, leaf("later", Physical::INT64, maybe));
                columns.insert(9, columns[6].clone());
            }),
        ),
        ("column-twice", replaced("ingested_at", leaf("timestamp", Physical::INT64, one))),
        ("column-real", replaced("timestamp", leaf("timestamp", Physical::DOUBLE, one))),
        ("column-shorter", replaced("timestamp", leaf("timestamp", Physical::INT32, one))),
        ("column-text", replaced("id", leaf("id", Physical::BYTE_ARRAY, one))),
        ("column-required", replaced("revision", leaf("revision", Physical::INT64, one))),
        ("column-optional", replaced("timestamp", leaf("timestamp", Physical::INT64, maybe))),
        ("column-repeated", replaced("revision", leaf("revision", Physical::INT64, many))),
        ("column-group", replaced("more", group("more", one, vec![leaf("x", Physical::BYTE_ARRAY, maybe)]))),
        ("kind-unknown", parameters("decimal", one)),
        ("kind-of-another-type", parameters("text", one)),
        ("parameters-optional", parameters("int", maybe)),
        ("chunks-swapped", swapped),
        ("chunk-missing", described(|_, columns| columns.truncate(columns.len() - 1))),
        ("chunk-beyond-end", described(|_, columns| columns[1] = placed(columns[1].clone(), 1_000_000, 10))),
        ("chunk-negative", described(|_, columns| columns[1] = placed(columns[1].clone(), -5, 10))),
        ("chunk-longest", described(|_, columns| columns[1] = placed(columns[1].clone(), 4, 1 << 40))),
        ("chunk-empty", described(|_, columns| columns[1] = placed(columns[1].clone(), 4, 0))),
        (
            "codec-unknown",
            described(|_, columns| {
                let zstd = Compression::ZSTD(Default::default());
                columns[1] = columns[1].clone().into_builder().set_compression(zstd).build().expect("a column");
            }),
        ),
    ]
}

/// Pages that do not hold what their headers say. The column is the user of each event.
fn pages() -> Named {
    let dictionary = page(2, 1, 0, &text(b"u1"));
    let indexes = |index: u8| data(8, &[&[8][..], &run(EVENTS), &[index]].concat());
    let plain = |count: u16| text(b"u1").repeat(count.into());
    vec![
        ("dictionary-index-beyond", user(&[dictionary.clone(), indexes(7)].concat())),
        ("dictionary-missing", user(&indexes(0))),
        ("dictionary-twice", user(&[dictionary.clone(), dictionary.clone(), indexes(7)].concat())),
        ("dictionary-only", user(&dictionary)),
        ("dictionary-most-entries", user(&[page(2, i32::MAX, 0, &text(b"u1")), indexes(0)].concat())),
        ("dictionary-wide-indexes", user(&[dictionary, data(8, &[&[200][..], &run(EVENTS), &[0]].concat())].concat())),
        ("page-fewer-values", user(&data(0, &plain(EVENTS - 1)))),
        ("page-most-values", user(&page(0, i32::MAX, 0, &levelled(&plain(EVENTS))))),
        ("page-negative-values", user(&page(0, -1, 0, &levelled(&plain(EVENTS))))),
        ("page-two-many", user(&[data(0, &plain(EVENTS)), data(0, &plain(EVENTS))].concat())),
        ("page-other-encoding", user(&data(6, &plain(EVENTS)))),
        ("page-unknown-encoding", user(&data(99, &plain(EVENTS)))),
        ("page-later-form", user(&page(3, EVENTS.into(), 0, &plain(EVENTS)))),
        ("page-unknown-form", user(&page(9, EVENTS.into(), 0, &plain(EVENTS)))),
        (
            "page-levels-too-long",
            user(&page(0, EVENTS.into(), 0, &[&u32::MAX.to_le_bytes()[..], &plain(EVENTS)].concat())),
        ),
        ("page-levels-missing", user(&page(0, EVENTS.into(), 0, &[]))),
        ("page-text-longest", user(&data(0, &u32::MAX.to_le_bytes()))),
        ("page-packed-most", user(&sized(0, (10, i32::MAX), EVENTS.into(), 0, &plain(EVENTS)))),
        ("page-packed-negative", user(&sized(0, (10, -1), EVENTS.into(), 0, &plain(EVENTS)))),
        ("page-header-cut", user(&[0x15, 0x00, 0x15])),
    ]
}

/// Cells that are not what their columns are for.
fn texts() -> Named {
    let all = |cell: &[u8]| data(0, &text(cell).repeat(EVENTS.into()));
    let deep = "[".repeat(130) + &"]".repeat(130);
    vec![
        ("text-not-utf-8", user(&all(b"\xFF\xFE"))),
        ("source-not-utf-8", column("ingest_source", Compression::UNCOMPRESSED, &all(b"\xC0\xAF"))),
        ("more-not-json", column("more", Compression::UNCOMPRESSED, &all(b"{"))),
        ("more-a-list", column("more", Compression::UNCOMPRESSED, &all(b"[1]"))),
        ("more-nested", column("more", Compression::UNCOMPRESSED, &all(deep.as_bytes()))),
        ("order-not-a-list", column("order", Compression::UNCOMPRESSED, &all(b"{}"))),
        ("order-of-others", column("order", Compression::UNCOMPRESSED, &all(b"[\"z\"]"))),
        ("order-lacks-one", column("order", Compression::UNCOMPRESSED, &all(b"[\"n\"]"))),
    ]
}

/// What is short and promises, or becomes, very much.
fn bombs() -> Named {
    let long = 256 * 1024;
    let entry = [&u32::try_from(long).expect("short").to_le_bytes()[..], &vec![b'a'; long]].concat();
    let packed = snappy(&entry);
    let size = (i32::try_from(entry.len()).expect("short"), i32::try_from(packed.len()).expect("short"));
    let indexes = levelled(&[&[8][..], &run(EVENTS), &[0]].concat());
    let literal = snappy(&indexes);
    let sizes = (i32::try_from(indexes.len()).expect("short"), i32::try_from(literal.len()).expect("short"));
    let dictionary = [sized(2, size, 1, 0, &packed), sized(0, sizes, EVENTS.into(), 8, &literal)].concat();
    let promise = sized(0, (i32::MAX, 3), EVENTS.into(), 0, &[0xFF, 0xFF, 0x7F]);
    let same = |value: i64, count: u64| {
        let blocks =
            [number(0), vec![0; 4]].concat().repeat(usize::try_from(count.min(300)).expect("small").div_ceil(128));
        [varint(128), varint(4), varint(count), number(value), blocks].concat()
    };
    let prefixes = [same(0, EVENTS.into()), same(0, EVENTS.into())].concat();
    // Each text begins with all of the one before, and has some more.
    let grows = {
        let by = 2_000_i64;
        let lengths = |first: i64, step: i64| {
            let block = [number(step), vec![0; 4]].concat();
            [varint(128), varint(4), varint(EVENTS.into()), number(first), block.repeat(2)].concat()
        };
        [lengths(0, by), lengths(by, 0), vec![b'a'; usize::from(EVENTS) * 2_000]].concat()
    };
    let packed_ends = snappy(&levelled(&grows));
    let grown = {
        let before = i32::try_from(levelled(&grows).len()).expect("short");
        sized(0, (before, i32::try_from(packed_ends.len()).expect("short")), EVENTS.into(), 7, &packed_ends)
    };
    let ingest = |page: &[u8]| column("ingest_id", Compression::UNCOMPRESSED, page);
    vec![
        ("bomb-dictionary", column("userId", Compression::SNAPPY, &dictionary)),
        ("bomb-page-size", column("userId", Compression::SNAPPY, &promise)),
        ("bomb-deltas-many", ingest(&data(7, &same(0, 1 << 40)))),
        ("bomb-deltas-ends-many", ingest(&data(7, &[same(0, EVENTS.into()), same(0, 1 << 40)].concat()))),
        ("bomb-deltas-long", column("ingest_id", Compression::SNAPPY, &grown)),
        ("bomb-deltas-block", ingest(&data(7, &[varint(1 << 62), varint(1), varint(200), number(0)].concat()))),
        ("deltas-no-parts", ingest(&data(7, &[varint(128), varint(0), varint(200), number(0)].concat()))),
        ("deltas-before-first", ingest(&data(7, &[same(5, EVENTS.into()), prefixes].concat()))),
    ]
}

/// What a footer says about the file.
struct Said {
    version: i32,
    rows_of_group: i64,
    groups: usize,
    fields: Vec<TypePtr>,
}

fn footer_start(file: &[u8]) -> usize {
    let end = file.len() - 8;
    end - u32::from_le_bytes(file[end..end + 4].try_into().expect("four bytes")) as usize
}

fn described(change: impl FnOnce(&mut Said, &mut Vec<ColumnChunkMetaData>)) -> Vec<u8> {
    let good = good();
    let data = &good[..footer_start(&good)];
    [data, &footer_of(&good, change)].concat()
}

fn footer_of(good: &[u8], change: impl FnOnce(&mut Said, &mut Vec<ColumnChunkMetaData>)) -> Vec<u8> {
    let read = ParquetMetaDataReader::new().parse_and_finish(&bytes::Bytes::copy_from_slice(good)).expect("a footer");
    let file = read.file_metadata();
    let mut columns = read.row_group(0).columns().to_vec();
    let mut said = Said {
        version: file.version(),
        rows_of_group: file.num_rows(),
        groups: 1,
        fields: file.schema().get_fields().to_vec(),
    };
    change(&mut said, &mut columns);
    let schema = Type::group_type_builder("event").with_fields(said.fields).build().expect("a schema");
    let schema = Arc::new(SchemaDescriptor::new(Arc::new(schema)));
    // The group must have as many columns as its own schema, which is not written.
    let own = Type::group_type_builder("event").with_fields(leaves(&columns)).build().expect("a schema");
    let group = RowGroupMetaData::builder(Arc::new(SchemaDescriptor::new(Arc::new(own))))
        .set_num_rows(said.rows_of_group)
        .set_column_metadata(columns)
        .build()
        .expect("a group");
    let by = Some("tenantry".to_owned());
    let file = FileMetaData::new(said.version, said.rows_of_group, by, None, schema, None);
    let mut written = Vec::new();
    let described = ParquetMetaData::new(file, vec![group; said.groups]);
    ParquetMetaDataWriter::new(&mut written, &described).finish().expect("written");
    written
}

fn leaves(columns: &[ColumnChunkMetaData]) -> Vec<TypePtr> {
    let leaf = |place: usize| Type::primitive_type_builder(&format!("c{place}"), Physical::BOOLEAN).build();
    (0..columns.len()).map(|place| Arc::new(leaf(place).expect("a column"))).collect()
}

fn placed(column: ColumnChunkMetaData, start: i64, length: i64) -> ColumnChunkMetaData {
    let column = column.into_builder().set_dictionary_page_offset(None).set_data_page_offset(start);
    column.set_total_compressed_size(length).build().expect("a column")
}

/// One column's description with another's place.
fn moved(column: ColumnChunkMetaData, to: &ColumnChunkMetaData) -> ColumnChunkMetaData {
    let column = column.into_builder().set_dictionary_page_offset(to.dictionary_page_offset());
    let column = column.set_data_page_offset(to.data_page_offset()).set_compression(to.compression());
    column.set_total_compressed_size(to.compressed_size()).build().expect("a column")
}

/// The good block with other pages in the column of users.
fn user(pages: &[u8]) -> Vec<u8> {
    column("userId", Compression::UNCOMPRESSED, pages)
}

/// The good block with other pages in a column.
fn column(name: &str, codec: Compression, pages: &[u8]) -> Vec<u8> {
    let good = good();
    let data = &good[..footer_start(&good)];
    let footer = footer_of(&good, |_, columns| {
        let is_meant = |column: &&mut ColumnChunkMetaData| column.column_path().parts().iter().any(|part| part == name);
        let column = columns.iter_mut().find(is_meant).expect("a column");
        let place = placed(
            column.clone(),
            i64::try_from(data.len()).expect("short"),
            i64::try_from(pages.len()).expect("short"),
        );
        *column = place.into_builder().set_compression(codec).build().expect("a column");
    });
    [data, pages, &footer].concat()
}
