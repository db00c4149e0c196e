//! The form of an upload while it arrives: short fields, each of them once, and then one file, which comes last.

use std::collections::HashMap;

use bytes::Bytes;
use kernel::Result;

use crate::multipart::{FormReader, PartHead, Step, malformed};

/// Of a field that is no file.
const LARGEST_FIELD: usize = 16 * 1024;
const MOST_FIELDS: usize = 20;
const FILE: &str = "file";

/// What comes next in the form.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrived {
    /// Nothing before more bytes have arrived.
    More,
    /// The file begins: all fields are there.
    File,
    /// Some of the file.
    Bytes(Bytes),
    /// The form is over, and had its file.
    End,
}

enum Place {
    Start,
    Field(String),
    File,
}

/// Reads a form. However long it is, only its fields and what arrived last are in memory.
pub struct UploadForm {
    reader: FormReader,
    fields: HashMap<String, Vec<u8>>,
    place: Place,
}

impl UploadForm {
    /// From the request's `Content-Type`; 415 for what is no such form.
    pub fn of(content_type: Option<&str>) -> Result<Self> {
        Ok(Self { reader: FormReader::of(content_type)?, fields: HashMap::new(), place: Place::Start })
    }

    /// Takes the next bytes. Call [`UploadForm::step`] until it wants more.
    pub fn push(&mut self, bytes: &[u8]) {
        self.reader.push(bytes);
    }

    /// A field, where it is text.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(|value| std::str::from_utf8(value).ok())
    }

    pub fn step(&mut self) -> Result<Arrived> {
        loop {
            match (self.reader.step()?, &self.place) {
                (Step::More, _) => return Ok(Arrived::More),
                (Step::Part(head), _) => {
                    self.begin(head)?;
                    if matches!(self.place, Place::File) {
                        return Ok(Arrived::File);
                    }
                }
                (Step::Data(bytes), Place::File) if !bytes.is_empty() => return Ok(Arrived::Bytes(bytes)),
                (Step::Data(bytes), Place::Field(name)) => {
                    let value = self.fields.entry(name.clone()).or_default();
                    if value.len() + bytes.len() > LARGEST_FIELD {
                        return Err(malformed("a field is too long"));
                    }
                    value.extend_from_slice(&bytes);
                }
                (Step::Data(_), _) => {}
                (Step::End, Place::File) => return Ok(Arrived::End),
                (Step::End, _) => return Err(malformed("it holds no file")),
            }
        }
    }

    fn begin(&mut self, head: PartHead) -> Result<()> {
        let is_file = head.name == FILE;
        if matches!(self.place, Place::File) {
            return Err(malformed(if is_file { "it holds more than one file" } else { "the file has to come last" }));
        }
        if is_file {
            self.place = Place::File;
            return Ok(());
        }
        if self.fields.len() >= MOST_FIELDS || self.fields.insert(head.name.clone(), Vec::new()).is_some() {
            return Err(malformed("it holds too many fields, or one of them twice"));
        }
        self.place = Place::Field(head.name);
        Ok(())
    }
}

#[cfg(test)]
mod properties;
