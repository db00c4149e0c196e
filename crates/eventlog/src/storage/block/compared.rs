//! Compares the texts of a column with one text.
//!
//! Nearly all texts are in the column's dictionary once, and events have their numbers there. So that each is compared once,
//! and none is copied, the library gets the pages of the column with a number in the place of each text: whether it is the
//! wanted one.

use std::sync::Arc;

use bytes::Bytes;
use parquet::{
    basic::{Encoding, Repetition, Type as Physical},
    column::page::{Page, PageMetadata, PageReader},
    errors::Result as Read,
    schema::types::{ColumnDescPtr, ColumnDescriptor, ColumnPath, Type},
};

use super::{
    bounds::{Pages, length_of_levels},
    read::wrong,
};

/// The pages of a column that may have a text for each event.
pub struct Compared {
    pages: Pages,
    wanted: Vec<u8>,
}

impl Compared {
    /// Stands for the wanted text; another number for any other.
    pub const SAME: i32 = 1;

    pub fn new(pages: Pages, wanted: &str) -> Self {
        Self { pages, wanted: wanted.as_bytes().to_vec() }
    }

    /// What the library is told of the column: numbers, and not for every event.
    pub fn column() -> Read<ColumnDescPtr> {
        let number = Type::primitive_type_builder("same", Physical::INT32).with_repetition(Repetition::OPTIONAL);
        Ok(Arc::new(ColumnDescriptor::new(Arc::new(number.build()?), 1, 0, ColumnPath::from("same"))))
    }

    fn compared(&self, page: &mut Page) -> Option<()> {
        match page {
            Page::DictionaryPage { buf, .. } => *buf = self.numbers(buf, 0)?,
            Page::DataPage { buf, encoding: Encoding::PLAIN, def_level_encoding, .. } => {
                *buf = self.numbers(buf, length_of_levels(buf, *def_level_encoding)?)?;
            }
            Page::DataPage { encoding: Encoding::RLE_DICTIONARY, .. } => {}
            _ => return None,
        }
        Some(())
    }

    /// A page with the same beginning, and a number for each text that follows it.
    fn numbers(&self, page: &[u8], beginning: usize) -> Option<Bytes> {
        let (levels, mut texts) = page.split_at_checked(beginning)?;
        let mut numbers = levels.to_vec();
        while !texts.is_empty() {
            let (length, rest) = texts.split_first_chunk::<4>()?;
            let (text, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
            let number = if text == self.wanted { Self::SAME } else { 0 };
            numbers.extend(number.to_le_bytes());
            texts = rest;
        }
        Some(numbers.into())
    }
}

impl Iterator for Compared {
    type Item = Read<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Compared {
    fn get_next_page(&mut self) -> Read<Option<Page>> {
        let Some(mut page) = self.pages.get_next_page()? else { return Ok(None) };
        self.compared(&mut page).ok_or_else(|| wrong("pages of texts"))?;
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> Read<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Read<()> {
        self.pages.skip_next_page()
    }
}
