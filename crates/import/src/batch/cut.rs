//! Finds where a JSON value ends, wherever the network cuts it. Whether it is valid is left to whoever parses it.

use std::mem;

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
    json: Vec<u8>,
    too_large: bool,
    depth: usize,
    in_string: bool,
    escaped: bool,
    over: bool,
}

impl Cut {
    pub(super) fn begin(&mut self) {
        *self = Self { json: mem::take(&mut self.json), ..Self::default() };
        self.json.clear();
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    pub(super) fn end(&mut self) -> (Vec<u8>, bool) {
        (mem::take(&mut self.json), self.too_large)
    }

    /// How many bytes belong to the value.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<usize, &'static str> {
        let mut at = 0;
        while at < bytes.len() && !self.over {
            let byte = bytes[at];
            if self.in_string {
                at += 1;
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => {
                        self.in_string = false;
                        self.over = self.depth == 0;
                    }
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
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
                _ if is_space(byte) && self.depth == 0 => {
                    self.over = true;
                    break;
                }
                _ => {}
            }
            at += 1;
        }
        self.keep(&bytes[..at]);
        Ok(at)
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.too_large || self.json.len() + bytes.len() > LARGEST_PIECE {
            self.too_large = true;
            self.json.clear();
        } else {
            self.json.extend_from_slice(bytes);
        }
    }
}
