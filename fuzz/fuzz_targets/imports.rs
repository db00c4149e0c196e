//! Batches of an import: tables and lists come out the same wherever they are cut, and are written as they were read.
#![no_main]

use import::{CsvReader, CsvRow, PeopleTable, Piece, Splitter};
use kernel::{Code, Result};
use libfuzzer_sys::fuzz_target;

fn rows(text: &[u8], step: usize) -> Result<Vec<CsvRow>> {
    let (mut reader, mut rows) = (CsvReader::new(), Vec::new());
    text.chunks(step).try_for_each(|bytes| reader.push(bytes, &mut rows))?;
    reader.finish(&mut rows)?;
    Ok(rows)
}

fn pieces(body: &[u8], step: usize) -> Result<Vec<Piece>> {
    let (mut splitter, mut pieces) = (Splitter::new(), Vec::new());
    body.chunks(step).try_for_each(|bytes| splitter.push(bytes, &mut pieces))?;
    splitter.finish()?;
    Ok(pieces)
}

fn written(rows: &[CsvRow]) -> String {
    let quoted = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
    rows.iter().map(|(_, row)| row.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n").collect()
}

fn fields(rows: &[CsvRow]) -> Vec<&Vec<String>> {
    rows.iter().map(|(_, row)| row).collect()
}

fn judged<T>(read: Result<T>) -> Option<T> {
    let told = |code| matches!(code, Code::MalformedJson | Code::ValidationFailed);
    read.inspect_err(|error| assert!(told(error.code()), "{error:?}")).ok()
}

fuzz_target!(|bytes: &[u8]| {
    let whole = judged(rows(bytes, bytes.len().max(1)));
    assert_eq!(judged(rows(bytes, 3)), whole);
    if let Some(rows_read) = whole {
        let again = rows(written(&rows_read).as_bytes(), 5).expect("what was written can be read");
        assert_eq!(fields(&again), fields(&rows_read));
        if let Some((header, people)) = rows_read.split_first()
            && let Some((mut table, _)) = judged(PeopleTable::of(&header.1))
        {
            for row in people {
                let _ = judged(table.piece(row));
            }
        }
    }
    let whole = judged(pieces(bytes, bytes.len().max(1)));
    assert_eq!(judged(pieces(bytes, 3)), whole);
    if whole.is_some() {
        let json = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        serde_json::from_slice::<serde::de::IgnoredAny>(json).expect("what is taken is JSON");
    }
});
