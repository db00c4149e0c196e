//! Pages of texts that are written as how much of the one before they begin with, and what follows (`DELTA_BYTE_ARRAY`).
//! A few bytes can stand for very long texts there.

use super::thrift::Walk;

/// How many bytes the texts of such a page have together, `None` when they are more than this or the page is not sound.
pub fn bytes_of_texts(page: &[u8], most_texts: usize, most_bytes: usize) -> Option<usize> {
    let (begin, rest) = sum(page, most_texts, most_bytes)?;
    let (end, _) = sum(rest, most_texts, most_bytes)?;
    begin.checked_add(end).filter(|bytes| *bytes <= most_bytes)
}

/// The sum of lengths that are written as differences (`DELTA_BINARY_PACKED`), and what follows them.
fn sum(written: &[u8], most: usize, most_bytes: usize) -> Option<(usize, &[u8])> {
    let mut walk = Walk::new(written);
    let (block, parts, count) = (walk.count()?, walk.count()?, walk.count()?);
    let mut length = i32::try_from(walk.number()?).ok()?;
    let per_part = block.checked_div(parts)?;
    if count > most || per_part == 0 || !per_part.is_multiple_of(32) {
        return None;
    }
    let (mut read, mut sum) = (count.min(1), 0_usize);
    if count > 0 {
        sum = usize::try_from(length).ok()?;
    }
    while read < count {
        let least = i32::try_from(walk.number()?).ok()?;
        for width in walk.take(parts)? {
            // The last parts of the last block may be missing.
            if read == count {
                break;
            }
            let width = usize::from(*width);
            let packed = walk.take(width.checked_mul(per_part / 8)?)?;
            for place in 0..per_part.min(count - read) {
                let difference = bits(packed, place * width, width)?;
                length = length.wrapping_add(least).wrapping_add(difference.cast_signed());
                sum = sum.checked_add(usize::try_from(length).ok()?).filter(|sum| *sum <= most_bytes)?;
            }
            read += per_part.min(count - read);
        }
    }
    Some((sum, walk.rest()))
}

/// So many bits from a place on, the lowest first.
fn bits(packed: &[u8], from: usize, width: usize) -> Option<u32> {
    if width > 32 {
        return None;
    }
    (0..width).try_fold(0_u32, |number, bit| {
        let place = from + bit;
        let is_set = packed.get(place / 8)? >> (place % 8) & 1;
        Some(number | u32::from(is_set) << bit)
    })
}
