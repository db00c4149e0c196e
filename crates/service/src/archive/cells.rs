//! Rows as lines of JSON: an array of cells in the order of the table's columns. Reals and bytes are written so that every
//! bit of them comes back, and what was sealed stands open, for whoever has the archive's key.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use kernel::Secret;
use serde_json::{Value, json};
use store::RawCell;

/// One value of a row.
pub(super) enum ArchivedCell {
    Plain(RawCell),
    /// What the source had sealed.
    Opened(Secret<Vec<u8>>),
}

const REAL: &str = "real";
const BYTES: &str = "bytes";
const SECRET: &str = "secret";

impl ArchivedCell {
    fn to_json(&self) -> Value {
        match self {
            Self::Plain(RawCell::Null) => Value::Null,
            Self::Plain(RawCell::Int(number)) => (*number).into(),
            Self::Plain(RawCell::Real(number)) => json!({ REAL: format!("{number:e}") }),
            Self::Plain(RawCell::Text(text)) => text.as_str().into(),
            Self::Plain(RawCell::Bytes(bytes)) => json!({ BYTES: BASE64_STANDARD.encode(bytes) }),
            Self::Opened(secret) => json!({ SECRET: BASE64_STANDARD.encode(secret.expose()) }),
        }
    }

    fn parse(value: Value) -> Option<Self> {
        Some(Self::Plain(match value {
            Value::Null => RawCell::Null,
            Value::Number(number) => RawCell::Int(number.as_i64()?),
            Value::String(text) => RawCell::Text(text),
            Value::Object(members) if members.len() == 1 => {
                let (kind, value) = members.into_iter().next()?;
                let text = value.as_str()?;
                match kind.as_str() {
                    REAL => RawCell::Real(text.parse().ok()?),
                    BYTES => RawCell::Bytes(BASE64_STANDARD.decode(text).ok()?),
                    SECRET => return Some(Self::Opened(Secret::new(BASE64_STANDARD.decode(text).ok()?))),
                    _ => return None,
                }
            }
            _ => return None,
        }))
    }
}

/// One line with its end.
pub(super) fn line(cells: &[ArchivedCell]) -> String {
    let row: Value = cells.iter().map(ArchivedCell::to_json).collect();
    row.to_string() + "\n"
}

/// The cells of a line; `None` when it is not one.
pub(super) fn parse(line: &str) -> Option<Vec<ArchivedCell>> {
    serde_json::from_str::<Vec<Value>>(line).ok()?.into_iter().map(ArchivedCell::parse).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cell() -> impl Strategy<Value = RawCell> {
        prop_oneof![
            Just(RawCell::Null),
            any::<i64>().prop_map(RawCell::Int),
            prop::sample::select(vec![i64::MIN, i64::MAX, 0, -1]).prop_map(RawCell::Int),
            any::<f64>().prop_map(RawCell::Real),
            prop::sample::select(vec![f64::MIN, f64::MAX, f64::MIN_POSITIVE, -0.0, 0.1]).prop_map(RawCell::Real),
            any::<String>().prop_map(RawCell::Text),
            prop::collection::vec(any::<u8>(), 0..40).prop_map(RawCell::Bytes),
        ]
    }

    proptest! {
        #[test]
        fn every_value_comes_back_as_it_was(row in prop::collection::vec(cell(), 0..12), secret in any::<Vec<u8>>()) {
            let mut cells: Vec<ArchivedCell> = row.iter().cloned().map(ArchivedCell::Plain).collect();
            cells.push(ArchivedCell::Opened(Secret::new(secret.clone())));
            let line = line(&cells);
            prop_assert_eq!(line.find('\n'), Some(line.len() - 1), "one line");
            let mut read = parse(line.trim_end()).expect("a line");
            let last = read.pop();
            prop_assert!(matches!(last, Some(ArchivedCell::Opened(found)) if *found.expose() == secret));
            let read: Vec<RawCell> = read.into_iter().map(|cell| match cell {
                ArchivedCell::Plain(cell) => cell,
                ArchivedCell::Opened(_) => panic!("nothing else was sealed"),
            }).collect();
            prop_assert_eq!(read.len(), row.len());
            for (read, written) in read.iter().zip(&row) {
                match (read, written) {
                    (RawCell::Real(read), RawCell::Real(written)) => prop_assert_eq!(read.to_bits(), written.to_bits()),
                    _ => prop_assert_eq!(read, written),
                }
            }
        }
    }

    #[test]
    fn what_is_not_a_row_is_refused() {
        for line in [
            "",
            "{}",
            "[true]",
            "[1.5]",
            "[9223372036854775808]",
            "[[]]",
            r#"[{"real":"x"}]"#,
            r#"[{"what":"x"}]"#,
            r#"[{"bytes":"*"}]"#,
        ] {
            assert!(parse(line).is_none(), "{line}");
        }
    }
}
