//! Finds where a JSON value ends, wherever the network cuts it. Whether it is valid is left to whoever parses it.

use std::{borrow::Cow, mem};

/// Of one workspace or person: their texts are limited to far less.
pub(super) const LARGEST_PIECE: usize = 1024 * 1024;
/// What nests deeper is not data.
const DEEPEST: usize = 100;

/// What JSON allows between values.
pub(super) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// A value whose end is looked for.
#[derive(Default)]
pub(super) struct Cut {
    /// What came of it before the bytes in work.
    kept: Vec<u8>,
    too_large: bool,
    depth: usize,
    in_text: bool,
    escaped: bool,
    over: bool,
}

impl Cut {
    pub(super) fn begin(&mut self) {
        *self = Self { kept: mem::take(&mut self.kept), ..Self::default() };
        self.kept.clear();
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// The value, whose last bytes these are: mostly all of it, and then nothing is copied. `None` when it is too large.
    pub(super) fn end<'a>(&mut self, last: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        if self.kept.is_empty() && !self.too_large && last.len() <= LARGEST_PIECE {
            return Some(Cow::Borrowed(last));
        }
        self.keep(last);
        (!self.too_large).then(|| Cow::Owned(mem::take(&mut self.kept)))
    }

    /// How many bytes belong to the value. They are kept while it goes on.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<usize, &'static str> {
        let mut at = 0;
        while at < bytes.len() && !self.over {
            if self.in_text {
                at += self.pass_text(&bytes[at..]);
                continue;
            }
            match bytes[at] {
                b'"' => self.in_text = true,
                b'{' | b'[' => {
                    self.depth += 1;
                    if self.depth > DEEPEST {
                        return Err("it nests too deeply");
                    }
                }
                // The end of whatever a number or a word stands in.
                b'}' | b']' | b',' if self.depth == 0 => {
                    self.over = true;
                    break;
                }
                b'}' | b']' => {
                    self.depth -= 1;
                    self.over = self.depth == 0;
                }
                byte if is_space(byte) && self.depth == 0 => {
                    self.over = true;
                    break;
                }
                _ => {}
            }
            at += 1;
        }
        if !self.over {
            self.keep(&bytes[..at]);
        }
        Ok(at)
    }

    /// Goes on in a text, to its closing quote if that is here; how many bytes belong to it.
    fn pass_text(&mut self, bytes: &[u8]) -> usize {
        let mut escaped = mem::take(&mut self.escaped);
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    self.in_text = false;
                    self.over = self.depth == 0;
                    return at + 1;
                }
                _ => {}
            }
        }
        self.escaped = escaped;
        bytes.len()
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.too_large || self.kept.len() + bytes.len() > LARGEST_PIECE {
            self.too_large = true;
            self.kept.clear();
        } else {
            self.kept.extend_from_slice(bytes);
        }
    }
}
