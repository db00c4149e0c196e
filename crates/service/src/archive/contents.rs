//! An archive as a file, for reading: opened once, and read part by part as often as needed.

use std::{
    fs::File,
    io::{self, BufReader, Read, Take},
    path::{Path, PathBuf},
};

use kernel::{Error, Result};
use vault::{ArchiveKey, ArchiveReader, Sha256};

use super::{Manifest, unreadable};

/// An archive whose manifest was read.
pub(super) struct Archive {
    path: PathBuf,
    pub(super) manifest: Manifest,
    /// Knows the key.
    reader: ArchiveReader<BufReader<File>>,
}

/// The parts of an archive, which are read in their order.
pub(super) struct Parts {
    reader: ArchiveReader<BufReader<File>>,
}

impl Archive {
    pub(super) fn open(path: &Path, key: &ArchiveKey) -> Result<Self> {
        let mut reader = ArchiveReader::new(open(path)?, key)?;
        let manifest = Manifest::read(&mut reader)?;
        Ok(Self { path: path.to_owned(), manifest, reader })
    }

    /// From the first part on.
    pub(super) fn parts(&self) -> Result<Parts> {
        let mut reader = self.reader.again(open(&self.path)?)?;
        Manifest::text(&mut reader)?;
        Ok(Parts { reader })
    }

    /// Reads all of it, and refuses it unless every part is there as it was written, and nothing else.
    pub(super) fn verify(&self) -> Result<()> {
        let mut parts = self.parts()?;
        parts.skip_tables(&self.manifest)?;
        for file in &self.manifest.files {
            parts.next(file.bytes, &file.sha256).finish()?;
        }
        match parts.reader.read(&mut [0]).map_err(unreadable)? {
            0 => Ok(()),
            _ => Err(not_as_told()),
        }
    }
}

impl Parts {
    pub(super) fn next<'a>(&'a mut self, bytes: u64, sha256: &'a str) -> Part<'a> {
        Part { left: self.reader.by_ref().take(bytes), digest: Sha256::new(), sha256 }
    }

    pub(super) fn skip_tables(&mut self, manifest: &Manifest) -> Result<()> {
        manifest.tables.iter().try_for_each(|table| self.next(table.bytes, &table.sha256).finish())
    }
}

/// One part, as far as it was not read yet.
pub(super) struct Part<'a> {
    left: Take<&'a mut ArchiveReader<BufReader<File>>>,
    digest: Sha256,
    sha256: &'a str,
}

impl Part<'_> {
    /// Reads what is left, and refuses the part unless it is as the manifest says.
    pub(super) fn finish(mut self) -> Result<()> {
        io::copy(&mut self, &mut io::sink()).map_err(unreadable)?;
        let whole = self.left.limit() == 0 && self.digest.finish_hex() == self.sha256;
        if whole { Ok(()) } else { Err(not_as_told()) }
    }
}

impl Read for Part<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.left.read(into)?;
        self.digest.update(&into[..read]);
        Ok(read)
    }
}

fn open(path: &Path) -> Result<BufReader<File>> {
    File::open(path).map(BufReader::new).map_err(|error| {
        Error::new(kernel::Code::StorageUnavailable, format!("Cannot read {}: {error}", path.display()))
    })
}

fn not_as_told() -> Error {
    Error::invalid("archive", "does not hold what it says is in it")
}
