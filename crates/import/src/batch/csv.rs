//! CSV as RFC 4180 has it, read while it arrives: commas, quotes, either line end, UTF-8 with or without a mark.

use std::mem;

use kernel::{Error, Result};

/// Of one field, and fields of one row: more than that is not a list of people.
pub(super) const LONGEST_FIELD: usize = 64 * 1024;
pub(super) const MOST_FIELDS: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before a field.
    Begin,
    Plain,
    Quoted,
    /// Behind a quote within quotes: the end of the field, or half of a doubled quote.
    Quote,
}

/// Reads rows from bytes that are cut anywhere, and holds one row at most.
pub struct CsvReader {
    state: State,
    field: Vec<u8>,
    row: Vec<String>,
    /// The line that is being read, from 1.
    line: usize,
    /// Where the row began.
    began: usize,
    /// A line feed behind a carriage return is the same line end.
    after_return: bool,
    /// What is left of the mark that UTF-8 may begin with.
    mark: &'static [u8],
}

const MARK: &[u8] = b"\xef\xbb\xbf";

/// One row, and the line that it begins on.
pub type CsvRow = (usize, Vec<String>);

impl Default for CsvReader {
    fn default() -> Self {
        Self::new()
    }
}

impl CsvReader {
    pub fn new() -> Self {
        Self {
            state: State::Begin,
            field: Vec::new(),
            row: Vec::new(),
            line: 1,
            began: 1,
            after_return: false,
            mark: MARK,
        }
    }

    /// Takes the next bytes and adds the rows that they complete. Empty lines are none.
    pub fn push(&mut self, bytes: &[u8], rows: &mut Vec<CsvRow>) -> Result<()> {
        for byte in bytes {
            match self.mark.split_first() {
                Some((next, rest)) if next == byte => self.mark = rest,
                Some(_) => {
                    self.end_mark(rows)?;
                    self.take(*byte, rows)?;
                }
                None => self.take(*byte, rows)?,
            }
        }
        Ok(())
    }

    /// What only began like a mark is text.
    fn end_mark(&mut self, rows: &mut Vec<CsvRow>) -> Result<()> {
        let left = mem::take(&mut self.mark).len();
        MARK[..MARK.len() - left].iter().try_for_each(|byte| self.take(*byte, rows))
    }

    pub fn finish(&mut self, rows: &mut Vec<CsvRow>) -> Result<()> {
        if !self.mark.is_empty() {
            self.end_mark(rows)?;
        }
        match self.state {
            State::Quoted => Err(self.wrong("a quote is not closed")),
            State::Begin if self.row.is_empty() => Ok(()),
            _ => self.end_row(rows),
        }
    }

    fn take(&mut self, byte: u8, rows: &mut Vec<CsvRow>) -> Result<()> {
        if mem::take(&mut self.after_return) && byte == b'\n' {
            return Ok(());
        }
        match (self.state, byte) {
            (State::Begin, b'"') => self.state = State::Quoted,
            (State::Quoted, b'"') => self.state = State::Quote,
            (State::Quote, b'"') => {
                self.state = State::Quoted;
                self.keep(byte)?;
            }
            (State::Quoted, _) => {
                self.line += usize::from(byte == b'\n');
                self.keep(byte)?;
            }
            (_, b',') => self.end_field()?,
            (_, b'\r' | b'\n') => {
                self.after_return = byte == b'\r';
                if self.state == State::Begin && self.row.is_empty() {
                    self.next_line();
                } else {
                    self.end_row(rows)?;
                }
            }
            (State::Quote, _) => return Err(self.wrong("text follows a closing quote")),
            (State::Plain, b'"') => {
                return Err(self.wrong("a quote stands within a field that does not begin with one"));
            }
            (State::Begin | State::Plain, _) => {
                self.state = State::Plain;
                self.keep(byte)?;
            }
        }
        Ok(())
    }

    fn keep(&mut self, byte: u8) -> Result<()> {
        if self.field.len() >= LONGEST_FIELD {
            return Err(self.wrong("a field is longer than 64 KiB"));
        }
        self.field.push(byte);
        Ok(())
    }

    fn end_field(&mut self) -> Result<()> {
        if self.row.len() >= MOST_FIELDS {
            return Err(self.wrong("it has more than 100 columns"));
        }
        let text = String::from_utf8(mem::take(&mut self.field)).map_err(|_| self.wrong("it is not UTF-8"))?;
        if text.contains('\0') {
            return Err(self.wrong("it contains a NUL character"));
        }
        self.row.push(text);
        self.state = State::Begin;
        Ok(())
    }

    fn end_row(&mut self, rows: &mut Vec<CsvRow>) -> Result<()> {
        self.end_field()?;
        rows.push((self.began, mem::take(&mut self.row)));
        self.next_line();
        Ok(())
    }

    fn next_line(&mut self) {
        self.line += 1;
        self.began = self.line;
    }

    /// How long the field is that is being read, and how many stand before it.
    #[cfg(test)]
    pub(super) fn held(&self) -> (usize, usize) {
        (self.field.len(), self.row.len())
    }

    fn wrong(&self, problem: &str) -> Error {
        Error::invalid("body", format!("is not valid CSV: {problem}, in line {}", self.line))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &[u8], step: usize) -> Result<Vec<CsvRow>> {
        let (mut reader, mut rows) = (CsvReader::new(), Vec::new());
        for bytes in text.chunks(step.max(1)) {
            reader.push(bytes, &mut rows)?;
        }
        reader.finish(&mut rows)?;
        Ok(rows)
    }

    fn row(line: usize, fields: &[&str]) -> CsvRow {
        (line, fields.iter().map(|field| (*field).to_owned()).collect())
    }

    #[test]
    fn rows_are_read_as_the_standard_says() {
        let text = b"\xef\xbb\xbfa,\"b\"\"c\",d\r\n\r\n1,\"x,\ny\",\n\"\",2,3\r4,5,6";
        let expected = [
            row(1, &["a", "b\"c", "d"]),
            row(3, &["1", "x,\ny", ""]),
            row(5, &["", "2", "3"]),
            row(6, &["4", "5", "6"]),
        ];
        for step in [1, 2, 100] {
            assert_eq!(read(text, step).expect("it is CSV"), expected);
        }
        let quoted = b"\xef\xbb\xbf\"a\",b\n\xef\xbb\xbfc,d\n";
        let expected = [row(1, &["a", "b"]), row(2, &["\u{feff}c", "d"])];
        for step in [1, 2, 100] {
            assert_eq!(read(quoted, step).expect("it is CSV"), expected, "only the first is a mark");
        }
        for empty in [&b""[..], MARK] {
            assert_eq!(read(empty, 1).expect("it is CSV"), []);
        }
        assert_eq!(read(b"a,\n", 1).expect("it is CSV"), [row(1, &["a", ""])]);
    }

    #[test]
    fn what_is_no_csv_is_refused_with_its_line() {
        let long = format!("a\n{}", "x".repeat(LONGEST_FIELD + 1));
        for text in ["a\n\"b", "a\nb\"c", "a\n\"b\"c", "a\n\0", &long, &format!("a\n{}", ",".repeat(MOST_FIELDS))] {
            let error = read(text.as_bytes(), 3).expect_err("it is not CSV");
            assert!(error.public().ends_with("in line 2"), "{error:?}");
        }
        for text in [&b"\xff,a\n"[..], b"\xef\xbb", b"\xef\xbba,b\n"] {
            assert!(read(text, 1).is_err(), "half a mark is not UTF-8");
        }
    }

    proptest! {
        /// What a careful program writes is read as it was.
        #[test]
        fn written_rows_come_back(
            rows in prop::collection::vec(prop::collection::vec("[a-z\",\r\n é]{0,6}", 2..4), 1..5),
            step in 1_usize..7,
        ) {
            let quoted = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
            let text: String = rows.iter().map(|row| row.iter().map(quoted).collect::<Vec<_>>().join(",") + "\r\n").collect();
            let read: Vec<Vec<String>> = read(text.as_bytes(), step).expect("it is CSV").into_iter().map(|(_, row)| row).collect();
            prop_assert_eq!(read, rows);
        }
    }
}
