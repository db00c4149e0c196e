//! A digest of all rows of a table, whatever their order: of each row a SHA-256, and of these the sum.

use aws_lc_rs::digest::{SHA256, digest};

use crate::row::Value;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct TableDigest {
    rows: u64,
    /// Four numbers of 64 bits each, which are added up without a carry. Not a XOR: there a pair of equal rows is as none.
    sum: [u64; 4],
    /// The row that is being added, in a form that both engines share.
    row: Vec<u8>,
}

impl TableDigest {
    pub(super) fn new() -> Self {
        Self { rows: 0, sum: [0; 4], row: Vec::new() }
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn cell(&mut self, cell: Value<'_>) {
        let (tag, bytes): (u8, &[u8]) = match &cell {
            Value::Null => (0, &[]),
            Value::Int(value) => (1, &value.to_le_bytes()),
            Value::Real(value) => (2, &value.to_bits().to_le_bytes()),
            Value::Bool(value) => (3, &[u8::from(*value)]),
            Value::Text(text) => (4, text.as_bytes()),
            Value::Bytes(bytes) => (5, bytes),
        };
        self.row.push(tag);
        self.row.extend((bytes.len() as u64).to_le_bytes());
        self.row.extend(bytes);
    }

    pub(super) fn end_row(&mut self) {
        let digest = digest(&SHA256, &self.row);
        for (sum, part) in self.sum.iter_mut().zip(digest.as_ref().as_chunks().0) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*part));
        }
        self.rows += 1;
        self.row.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &[&[Value<'_>]]) -> TableDigest {
        let mut digest = TableDigest::new();
        for row in rows {
            row.iter().for_each(|cell| digest.cell(*cell));
            digest.end_row();
        }
        digest
    }

    #[test]
    fn only_the_order_of_rows_does_not_count() {
        let (one, two): (&[Value<'_>], &[Value<'_>]) =
            (&[Value::Int(1), Value::Null], &[Value::Int(2), Value::Text("")]);
        assert_eq!(of(&[one, two]), of(&[two, one]));
        let others: [&[&[Value<'_>]]; 6] = [
            &[one],
            &[one, one],
            &[two, two, one],
            &[one, &[Value::Text(""), Value::Int(2)]],
            &[one, &[Value::Int(2), Value::Bytes(b"")]],
            &[&[Value::Int(1), Value::Text("")], &[Value::Int(2), Value::Null]],
        ];
        for other in others {
            assert_ne!(of(other), of(&[one, two]), "{other:?}");
        }
        assert_ne!(of(&[one, one]), of(&[two, two]));
        assert_ne!(of(&[&[Value::Text("ab"), Value::Text("c")]]), of(&[&[Value::Text("a"), Value::Text("bc")]]));
    }
}
