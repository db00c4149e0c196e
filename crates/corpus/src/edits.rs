//! Small changes of bytes, as an attacker or a broken proxy would make them.

use proptest::{prelude::*, sample::Index};

/// One change. Places are relative, so that the same change fits inputs of any length.
#[derive(Clone, Debug)]
pub enum Edit {
    Flip { at: Index, bit: u8 },
    Put { at: Index, byte: u8 },
    Insert { at: Index, bytes: Vec<u8> },
    Remove { at: Index, length: usize },
    Repeat { at: Index, length: usize, times: usize },
    Swap { one: Index, other: Index },
    Cut { at: Index },
}

impl Edit {
    fn apply(&self, bytes: &mut Vec<u8>) {
        // The end of the input is a place too.
        let place = |at: &Index| at.index(bytes.len() + 1);
        match self {
            Self::Flip { at, bit } if !bytes.is_empty() => {
                let at = at.index(bytes.len());
                bytes[at] ^= 1 << bit;
            }
            Self::Put { at, byte } if !bytes.is_empty() => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Self::Swap { one, other } if !bytes.is_empty() => {
                let (one, other) = (one.index(bytes.len()), other.index(bytes.len()));
                bytes.swap(one, other);
            }
            Self::Flip { .. } | Self::Put { .. } | Self::Swap { .. } => {}
            Self::Insert { at, bytes: inserted } => {
                let at = place(at);
                bytes.splice(at..at, inserted.iter().copied());
            }
            Self::Remove { at, length } => {
                let at = place(at);
                bytes.drain(at..bytes.len().min(at + length));
            }
            Self::Repeat { at, length, times } => {
                let at = place(at);
                let part = bytes[at..bytes.len().min(at + length)].repeat(*times);
                bytes.splice(at..at, part);
            }
            Self::Cut { at } => bytes.truncate(place(at)),
        }
    }
}

/// One to four changes.
pub fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let at = any::<Index>;
    let edit = prop_oneof![
        3 => (at(), 0u8..8).prop_map(|(at, bit)| Edit::Flip { at, bit }),
        3 => (at(), telling_byte()).prop_map(|(at, byte)| Edit::Put { at, byte }),
        3 => (at(), prop::collection::vec(telling_byte(), 1..6)).prop_map(|(at, bytes)| Edit::Insert { at, bytes }),
        1 => (at(), nasty_text()).prop_map(|(at, text)| Edit::Insert { at, bytes: text.into_bytes() }),
        2 => (at(), 1usize..8).prop_map(|(at, length)| Edit::Remove { at, length }),
        1 => (at(), 1usize..40, 1usize..4).prop_map(|(at, length, times)| Edit::Repeat { at, length, times }),
        1 => (at(), at()).prop_map(|(one, other)| Edit::Swap { one, other }),
        1 => at().prop_map(|at| Edit::Cut { at }),
    ];
    prop::collection::vec(edit, 1..5)
}

/// The input with the changes made.
pub fn edited(input: &[u8], edits: &[Edit]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    edits.iter().for_each(|edit| edit.apply(&mut bytes));
    bytes
}

/// Any byte, but mostly one that means something to some parser.
fn telling_byte() -> impl Strategy<Value = u8> {
    prop_oneof![
        2 => prop::sample::select(b"\0\t\n\r \"%&'()+,-./:;<=>?@[\\]^_`{|}~#$*!".to_vec()),
        2 => prop::sample::select(b"0123456789abcdefABCDEFxyzXYZ".to_vec()),
        1 => any::<u8>(),
    ]
}

/// A text that has broken parsers before, or any text.
pub fn nasty_text() -> impl Strategy<Value = String> {
    const KNOWN: &[&str] = &[
        "",
        " ",
        "\0",
        "\r\nSet-Cookie: a=b",
        "\u{feff}",
        "\u{200b}",
        "\u{202e}",
        "\u{2028}",
        "\u{fffd}",
        "ａ",
        "а",
        "ı",
        "İ",
        "ß",
        "\u{1f600}",
        "e\u{301}",
        "%00",
        "%0d%0a",
        "%2e%2e%2f",
        "%",
        "%zz",
        "%c0%af",
        "../",
        "//",
        "\\\\",
        "javascript:",
        "null",
        "true",
        "NaN",
        "-0",
        "1e999",
        "18446744073709551616",
        "9007199254740993",
        "{}",
        "[]",
        "\"",
        "__proto__",
        "$ref",
        "<script>",
        "${x}",
        "{{x}}",
        "' OR 1=1 --",
    ];
    prop_oneof![2 => prop::sample::select(KNOWN).prop_map(str::to_owned), 1 => any::<String>()]
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest! {
        #[test]
        fn any_edit_fits_any_input(input in prop::collection::vec(any::<u8>(), 0..40), edits in edits()) {
            prop_assert!(edited(&input, &edits).len() < 4 * (input.len() + 2000));
        }
    }
}
