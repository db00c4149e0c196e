//! What a block may cost. A digest tells that a block is as it was written, but not that it was written here: archives of
//! apps bring blocks along. The library makes room for whatever a file promises before it looks whether it is there, and
//! room that cannot be had ends the process. So promises are judged first.

mod deltas;
mod thrift;

use std::{cell::Cell, sync::Arc};

use bytes::Bytes;
use parquet::{
    basic::Encoding,
    column::page::{Page, PageMetadata, PageReader},
    errors::Result as Read,
    file::{metadata::ColumnChunkMetaData, serialized_reader::SerializedPageReader},
};

use super::read::wrong;
use thrift::Walk;

/// More than any block has.
pub const MOST_EVENTS: usize = 65_536;
/// Bytes of texts that are read for one question. Packing ends a block at 4 MiB, unless a single event has more.
const MOST_TEXT: usize = 32 * 1024 * 1024;
/// What a file begins with.
const MAGIC: &[u8] = b"PAR1";
/// Groups within groups: the event, its parameters, and each of them.
const DEEPEST_GROUP: usize = 3;
/// Three bytes of Snappy become 64 at most.
const MOST_EXPANSION: i64 = 22;

// Fields of a file's description, of one element of its schema, and of a page's header.
const SCHEMA: i16 = 2;
const CHILDREN: i16 = 5;
const UNPACKED_SIZE: i16 = 2;
const PACKED_SIZE: i16 = 3;

/// Judges what the end of a file says about the rest of it, before the library reads it.
pub fn check_footer(file: &[u8]) -> Read<()> {
    footer(file).ok_or_else(|| wrong("a sound footer"))
}

fn footer(file: &[u8]) -> Option<()> {
    let (rest, tail) = file.strip_prefix(MAGIC)?.split_last_chunk::<8>()?;
    let [a, b, c, d, ..] = *tail;
    let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).ok()?;
    let mut walk = Walk::new(&rest[rest.len().checked_sub(length)?..]);
    let mut children = Vec::new();
    walk.fields(&mut |field, kind, walk| {
        if field != SCHEMA {
            return Some(false);
        }
        walk.structures(kind, &mut |walk| {
            children.push(children_of_element(walk)?);
            Some(())
        })?;
        Some(true)
    })?;
    is_tree(&children).then_some(())
}

fn children_of_element(walk: &mut Walk<'_>) -> Option<i64> {
    let mut children = 0;
    walk.fields(&mut |field, kind, walk| {
        if field != CHILDREN {
            return Some(false);
        }
        children = walk.number_of(kind)?;
        Some(true)
    })?;
    Some(children)
}

/// Whether elements with so many children each are one tree that is not too deep.
fn is_tree(children: &[i64]) -> bool {
    // How many children of each open group are still to come.
    let mut open: Vec<i64> = Vec::new();
    for (place, count) in children.iter().enumerate() {
        match open.last_mut() {
            Some(left) => *left -= 1,
            None if place > 0 => return false,
            None => {}
        }
        if *count < 0 || *count > children.len() as i64 || (*count > 0 && open.len() == DEEPEST_GROUP) {
            return false;
        }
        if *count > 0 {
            open.push(*count);
        }
        while open.last() == Some(&0) {
            open.pop();
        }
    }
    open.is_empty() && !children.is_empty()
}

/// How many bytes of texts may still be read for a question.
#[derive(Default)]
pub struct Room(Cell<usize>);

impl Room {
    pub fn refill(&self) {
        self.0.set(MOST_TEXT);
    }

    pub fn take(&self, bytes: usize) -> Read<()> {
        let left = self.0.get().checked_sub(bytes).ok_or_else(|| wrong("likely lengths of texts"))?;
        self.0.set(left);
        Ok(())
    }
}

/// The pages of a column, each judged before its values are.
pub struct Pages {
    pages: SerializedPageReader<Bytes>,
    /// How many events there are.
    length: usize,
    /// Whether a page begins with which events have a value.
    has_levels: bool,
}

impl Pages {
    pub fn new(file: &Bytes, column: &ColumnChunkMetaData, length: usize) -> Read<Self> {
        check_page_sizes(file, column.byte_range()).ok_or_else(|| wrong("pages of likely sizes"))?;
        Ok(Self {
            pages: SerializedPageReader::new(Arc::new(file.clone()), column, length, None)?,
            length,
            has_levels: column.column_descr().max_def_level() > 0,
        })
    }

    fn check(&self, page: &Page) -> Option<()> {
        (page.num_values() as usize <= self.length).then_some(())?;
        let Page::DataPage { buf, encoding, def_level_encoding, .. } = page else {
            return page.is_dictionary_page().then_some(());
        };
        match encoding {
            Encoding::PLAIN | Encoding::RLE | Encoding::RLE_DICTIONARY | Encoding::DELTA_BINARY_PACKED => Some(()),
            Encoding::DELTA_BYTE_ARRAY => {
                let values = if self.has_levels { &buf[length_of_levels(buf, *def_level_encoding)?..] } else { buf };
                deltas::bytes_of_texts(values, self.length, MOST_TEXT).map(|_| ())
            }
            _ => None,
        }
    }
}

/// Bytes of a page that tell which events have a value, with those that tell how many they are.
pub fn length_of_levels(page: &[u8], encoding: Encoding) -> Option<usize> {
    (encoding == Encoding::RLE).then_some(())?;
    let length = usize::try_from(u32::from_le_bytes(*page.first_chunk::<4>()?)).ok()?.checked_add(4)?;
    (length <= page.len()).then_some(length)
}

fn check_page_sizes(file: &[u8], (start, length): (u64, u64)) -> Option<()> {
    let (start, length) = (usize::try_from(start).ok()?, usize::try_from(length).ok()?);
    let mut rest = file.get(start..start.checked_add(length)?)?;
    while !rest.is_empty() {
        let (mut unpacked, mut packed) = (-1, -1);
        let mut walk = Walk::new(rest);
        walk.fields(&mut |field, kind, walk| {
            match field {
                UNPACKED_SIZE => unpacked = walk.number_of(kind)?,
                PACKED_SIZE => packed = walk.number_of(kind)?,
                _ => return Some(false),
            }
            Some(true)
        })?;
        let size = usize::try_from(packed).ok()?;
        (unpacked <= packed.checked_mul(MOST_EXPANSION)?).then_some(())?;
        rest = rest.get(walk.walked().checked_add(size)?..)?;
    }
    Some(())
}

impl Iterator for Pages {
    type Item = Read<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Read<Option<Page>> {
        let Some(page) = self.pages.get_next_page()? else { return Ok(None) };
        self.check(&page).ok_or_else(|| wrong("likely pages"))?;
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> Read<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Read<()> {
        self.pages.skip_next_page()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_tree_that_ends_is_one() {
        for good in [&[0][..], &[2, 0, 0], &[2, 1, 0, 0], &[1, 1, 1, 0]] {
            assert!(is_tree(good), "{good:?}");
        }
        for wrong in [&[][..], &[1], &[0, 0], &[2, 0], &[-1], &[1, 0, 0], &[1, 1, 1, 1, 0], &[i64::MAX, 0]] {
            assert!(!is_tree(wrong), "{wrong:?}");
        }
    }
}
