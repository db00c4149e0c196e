//! Walks what Thrift's compact protocol wrote. No length is believed before as many bytes are there.

/// Deeper structures are not followed.
const DEEPEST: usize = 16;

// Types of fields.
const BYTE: u8 = 3;
const SHORT: u8 = 4;
const INT: u8 = 5;
const LONG: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// A place in some bytes. `None` is the answer of whatever finds too few of them, or none that make sense.
pub struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Walk<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How many bytes were walked over.
    pub fn walked(&self) -> usize {
        self.at
    }

    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.rest().get(..count)?;
        self.at += count;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    fn unsigned(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// A count of something.
    pub fn count(&mut self) -> Option<usize> {
        usize::try_from(self.unsigned()?).ok()
    }

    /// A number that may be negative.
    pub fn number(&mut self) -> Option<i64> {
        let number = self.unsigned()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// Walks over a structure. `visit` gets each field's number and says whether it walked over the field itself.
    pub fn fields(&mut self, visit: &mut dyn FnMut(i16, u8, &mut Self) -> Option<bool>) -> Option<()> {
        self.fields_within(0, visit)
    }

    fn fields_within(&mut self, depth: usize, visit: &mut dyn FnMut(i16, u8, &mut Self) -> Option<bool>) -> Option<()> {
        let mut last = 0_i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            let (step, kind) = (head >> 4, head & 0x0F);
            last = match step {
                0 => i16::try_from(self.number()?).ok()?,
                step => last.checked_add(step.into())?,
            };
            if !visit(last, kind, self)? {
                self.skip(kind, depth)?;
            }
        }
    }

    /// The number in a field that has one.
    pub fn number_of(&mut self, kind: u8) -> Option<i64> {
        matches!(kind, SHORT | INT | LONG).then(|| self.number()).flatten()
    }

    /// Walks over the structures of a list, each of which takes a byte at least; how many there were.
    pub fn structures(&mut self, kind: u8, visit: &mut dyn FnMut(&mut Self) -> Option<()>) -> Option<()> {
        let (count, of) = (kind == LIST).then(|| self.list()).flatten()?;
        (of == STRUCT).then_some(())?;
        (0..count).try_for_each(|_| visit(self))
    }

    fn list(&mut self) -> Option<(usize, u8)> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.count()? } else { usize::from(head >> 4) };
        Some((count, head & 0x0F))
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth == DEEPEST {
            return None;
        }
        match kind {
            // A field's type is its value, yes or no.
            1 | 2 => Some(()),
            BYTE => self.take(1).map(|_| ()),
            SHORT | INT | LONG => self.unsigned().map(|_| ()),
            DOUBLE => self.take(8).map(|_| ()),
            BINARY => {
                let length = self.count()?;
                self.take(length).map(|_| ())
            }
            LIST | SET => {
                let (count, of) = self.list()?;
                (0..count).try_for_each(|_| self.skip_entry(of, depth + 1))
            }
            MAP => {
                let count = self.count()?;
                let kinds = if count > 0 { self.byte()? } else { 0 };
                (0..count).try_for_each(|_| {
                    self.skip_entry(kinds >> 4, depth + 1)?;
                    self.skip_entry(kinds & 0x0F, depth + 1)
                })
            }
            STRUCT => self.fields_within(depth + 1, &mut |_, _, _| Some(false)),
            _ => None,
        }
    }

    /// Within a list a yes or no takes a byte, so that no list is longer than its bytes.
    fn skip_entry(&mut self, kind: u8, depth: usize) -> Option<()> {
        match kind {
            1 | 2 => self.take(1).map(|_| ()),
            kind => self.skip(kind, depth),
        }
    }
}
