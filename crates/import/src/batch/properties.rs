//! What holds for every batch that somebody may send, as a table or as JSON.

use corpus::{any_json, edited, edits, nasty_text, replay, seeds, warped, warps};
use kernel::{Code, Error, Result, Ticker};
use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::{
    CsvReader, PeopleTable, Piece, Splitter,
    csv::{CsvRow, LONGEST_FIELD, MOST_FIELDS},
};

const HOME: &str = env!("CARGO_MANIFEST_DIR");

/// Reads rows that the network cuts into pieces, and looks at what is in memory meanwhile.
fn rows(text: &[u8], step: usize) -> Result<Vec<CsvRow>> {
    let (mut reader, mut rows) = (CsvReader::new(), Vec::new());
    for bytes in text.chunks(step) {
        reader.push(bytes, &mut rows)?;
        assert!(reader.held() <= (LONGEST_FIELD, MOST_FIELDS), "{:?} are held", reader.held());
    }
    reader.finish(&mut rows)?;
    Ok(rows)
}

/// The people of a table.
fn people(text: &[u8]) -> Result<Vec<Piece>> {
    let rows = rows(text, 7)?;
    let (header, rows) = rows.split_first().ok_or_else(|| Error::invalid("body", "is empty"))?;
    let (mut table, _) = PeopleTable::of(&header.1)?;
    rows.iter().map(|row| table.piece(row)).collect()
}

fn written(rows: &[CsvRow]) -> String {
    let quoted = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
    rows.iter().map(|(_, row)| row.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n").collect()
}

fn fields(rows: &[CsvRow]) -> Vec<&Vec<String>> {
    rows.iter().map(|(_, row)| row).collect()
}

/// Refused in the sender's words, or the same whoever writes it again; wherever the network cuts.
fn check_table(text: &[u8], step: usize) -> Result<(), TestCaseError> {
    match (rows(text, text.len().max(1)), rows(text, step)) {
        (Ok(whole), Ok(pieces)) => {
            prop_assert_eq!(&whole, &pieces);
            let again = rows(written(&whole).as_bytes(), step).expect("what was written can be read");
            prop_assert_eq!(fields(&again), fields(&whole));
            prop_assert!(whole.windows(2).all(|rows| rows[0].0 < rows[1].0), "lines are counted");
            prop_assert!(whole.iter().flat_map(|(_, row)| row).all(|field| !field.contains('\0')));
        }
        (Err(whole), Err(pieces)) => {
            prop_assert_eq!(whole.code(), Code::ValidationFailed);
            prop_assert_eq!(whole.public(), pieces.public());
        }
        (whole, pieces) => prop_assert!(false, "{whole:?} at once, but {pieces:?} in pieces of {step}"),
    }
    if let Err(error) = people(text) {
        prop_assert_eq!(error.code(), Code::ValidationFailed);
    }
    Ok(())
}

fn split(body: &[u8], step: usize) -> Result<Vec<Piece>> {
    let (mut splitter, mut pieces) = (Splitter::new(), Vec::new());
    for bytes in body.chunks(step) {
        splitter.push(bytes, &mut pieces)?;
    }
    splitter.finish()?;
    Ok(pieces)
}

fn is_right(pieces: &Result<Vec<Piece>>) -> bool {
    pieces.as_ref().is_ok_and(|pieces| !pieces.iter().any(|piece| matches!(piece, Piece::Wrong { .. })))
}

/// The workspaces and the people of a batch, as a reader of the whole would find them.
fn expected(batch: &Value) -> Option<Vec<Value>> {
    let mut found = Vec::new();
    for item in batch.as_array()? {
        let people = item.get("users").and_then(Value::as_array).into_iter().flatten();
        found.extend(item.get("tenant").into_iter().chain(people).cloned());
    }
    Some(found)
}

fn sorted(mut values: Vec<Value>) -> Vec<String> {
    values.sort_by_key(Value::to_string);
    values.iter().map(Value::to_string).collect()
}

/// What is taken is JSON, and holds what others read in it.
fn check_batch(body: &[u8], step: usize) -> Result<(), TestCaseError> {
    let (whole, pieces) = (split(body, body.len().max(1)), split(body, step));
    prop_assert_eq!(is_right(&whole), is_right(&pieces), "in pieces of {}", step);
    let whole = match whole {
        Ok(whole) => whole,
        Err(error) => {
            prop_assert!(matches!(error.code(), Code::MalformedJson | Code::ValidationFailed), "{error:?}");
            return Ok(());
        }
    };
    prop_assert_eq!(Some(&whole), pieces.as_ref().ok());
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    prop_assert!(serde_json::from_slice::<IgnoredAny>(body).is_ok(), "it is no JSON, and was taken");
    let read = |piece: &Piece| match piece {
        Piece::Tenant { value, .. } | Piece::User { value, .. } => Some(value.clone()),
        _ => None,
    };
    let found: Vec<Value> = whole.iter().filter_map(read).collect();
    // Texts that are none may stand where nobody reads them.
    if let Ok(batch) = serde_json::from_slice::<Value>(body)
        && is_right(&Ok(whole))
    {
        prop_assert_eq!(Some(sorted(found)), expected(&batch).map(sorted));
    }
    Ok(())
}

#[test]
fn known_inputs_are_judged_as_before() {
    replay(HOME, "tables", |text| is_right(&people(text)));
    for step in [1, 5, usize::MAX] {
        replay(HOME, "batches", |body| is_right(&split(body, step)));
    }
}

/// However a file begins, it is refused at the limit, and what is long costs no more than its length.
#[test]
fn no_table_is_expensive() {
    let started = Ticker.now();
    assert!(rows(&b"x".repeat(64 << 20), 256 * 1024).is_err());
    assert!(rows(&[&b"\""[..], &b"\"\"".repeat(8 << 20)].concat(), 256 * 1024).is_err());
    assert!(rows(&b",".repeat(8 << 20), 256 * 1024).is_err());
    assert_eq!(rows(&b"\r\n".repeat(4 << 20), 1 << 20).map(|rows| rows.len()).ok(), Some(0));
    assert!(split(&b"[".repeat(8 << 20), 256 * 1024).is_err());
    assert!(Ticker.since(started).as_secs() < 20);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn no_changed_table_brings_the_reader_down(
        seed in prop::sample::select(short(seeds(HOME, "tables"))),
        edits in edits(),
        step in 1_usize..60,
    ) {
        check_table(&edited(&seed, &edits), step)?;
    }

    #[test]
    fn any_bytes_are_a_table_or_refused(
        bytes in prop::collection::vec(prop_oneof![Just(b'"'), Just(b','), Just(b'\r'), Just(b'\n'), any::<u8>()], 0..60),
        texts in prop::collection::vec(nasty_text(), 0..4),
        step in 1_usize..20,
    ) {
        check_table(&bytes, step)?;
        check_table(format!("workspace,username\n{}", texts.join(",")).as_bytes(), step)?;
    }

    #[test]
    fn no_changed_batch_brings_the_splitter_down(
        seed in prop::sample::select(short(seeds(HOME, "batches"))),
        edits in edits(),
        step in 1_usize..60,
    ) {
        check_batch(&edited(&seed, &edits), step)?;
    }

    #[test]
    fn a_batch_of_any_json_holds_what_others_read(json in any_json(), warps in warps(), step in 1_usize..60) {
        let batch = json!([{ "tenant": { "owner": { "username": "a" } }, "users": [{ "username": "b" }, {}] }, {}]);
        check_batch(json.to_string().as_bytes(), step)?;
        check_batch(warped(&batch, &warps).to_string().as_bytes(), step)?;
    }
}

/// The longest ones are replayed, but changed too seldom to be worth their time.
fn short(seeds: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    seeds.into_iter().filter(|seed| seed.len() < 4_000).collect()
}
