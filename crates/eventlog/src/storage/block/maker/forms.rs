//! Numbers, texts and pages, as Parquet, Thrift and Snappy write them.

use super::EVENTS;

pub fn varint(mut number: u64) -> Vec<u8> {
    let mut written = Vec::new();
    while number >= 0x80 {
        written.push(number as u8 | 0x80);
        number >>= 7;
    }
    written.push(number as u8);
    written
}

pub fn number(number: i64) -> Vec<u8> {
    varint((number << 1 ^ number >> 63).cast_unsigned())
}

/// A page with a header that tells the sizes it has.
pub fn page(form: i64, values: i32, encoding: i64, content: &[u8]) -> Vec<u8> {
    let size = i32::try_from(content.len()).expect("short");
    sized(form, (size, size), values, encoding, content)
}

/// A page: 0 has data, 2 a dictionary, 3 data in the later form. Sizes are before and after packing.
pub fn sized(form: i64, (before, after): (i32, i32), values: i32, encoding: i64, content: &[u8]) -> Vec<u8> {
    let sizes = [&[0x15][..], &number(form), &[0x15], &number(before.into()), &[0x15], &number(after.into())].concat();
    let counts = [&[0x15][..], &number(values.into()), &[0x15], &number(encoding)].concat();
    let rest = match form {
        2 => [&[0x4C][..], &counts, &[0]].concat(),
        3 => {
            let later = [
                &[0x15][..],
                &number(values.into()),
                &[0x15, 0, 0x15],
                &number(values.into()),
                &[0x15],
                &number(encoding),
            ];
            [&[0x5C][..], &later.concat(), &[0x15, 0, 0x15, 0, 0]].concat()
        }
        _ => [&[0x2C][..], &counts, &[0x15], &number(3), &[0x15], &number(3), &[0]].concat(),
    };
    [&sizes[..], &rest, &[0], content].concat()
}

/// A page of values, which every event has.
pub fn data(encoding: i64, values: &[u8]) -> Vec<u8> {
    page(0, EVENTS.into(), encoding, &levelled(values))
}

/// As many times the byte that follows.
pub fn run(count: u16) -> Vec<u8> {
    varint(u64::from(count) << 1)
}

pub fn levelled(values: &[u8]) -> Vec<u8> {
    let levels = [run(EVENTS), vec![1]].concat();
    [&u32::try_from(levels.len()).expect("short").to_le_bytes()[..], &levels, values].concat()
}

pub fn text(text: &[u8]) -> Vec<u8> {
    [&u32::try_from(text.len()).expect("short").to_le_bytes()[..], text].concat()
}

/// Packs bytes as Snappy has them: the first ones as they are, and then the last of these again and again.
pub fn snappy(bytes: &[u8]) -> Vec<u8> {
    let head = bytes.len().min(60);
    let mut packed = varint(bytes.len() as u64);
    packed.push(u8::try_from(head - 1).expect("short") << 2);
    packed.extend(&bytes[..head]);
    let mut left = bytes.len() - head;
    while left > 0 {
        let count = left.min(64);
        packed.extend([u8::try_from(count - 1).expect("short") << 2 | 2, 1, 0]);
        left -= count;
    }
    packed
}
