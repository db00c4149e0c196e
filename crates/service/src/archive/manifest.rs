//! What an archive says about itself, before its parts: the rows of each table, then the bytes of each file.

use std::io::{self, Read, Write};

use kernel::{AppId, Error, Result, Timestamp};
use serde::{Deserialize, Serialize};

use super::unreadable;

/// Raised when a reader of an older release could not make sense of the parts.
pub(super) const VERSION: u32 = 1;
/// Some hundred thousand files.
const MOST_BYTES: u32 = 256 << 20;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    pub version: u32,
    /// The number of the last migration.
    pub schema: u32,
    /// The release that made it, for people.
    pub release: String,
    pub made_at: Timestamp,
    pub app_id: AppId,
    pub name: String,
    pub domain: String,
    pub tables: Vec<TablePart>,
    pub files: Vec<FilePart>,
    /// Files whose bytes were missing where it was made.
    pub missing_files: u64,
}

/// The rows of a table, a line each.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TablePart {
    pub name: String,
    pub columns: Vec<String>,
    pub sealed: Vec<SealedPart>,
    pub rows: u64,
    pub bytes: u64,
    pub sha256: String,
}

/// A column whose values were sealed, and the column that names a row where they were.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SealedPart {
    pub column: String,
    pub row: String,
}

/// The bytes of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FilePart {
    pub object: String,
    pub bytes: u64,
    pub sha256: String,
}

impl Manifest {
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|table| table.rows).sum()
    }

    pub(super) fn write(&self, out: &mut impl Write) -> Result<()> {
        let text = serde_json::to_vec(self).map_err(Error::internal)?;
        let length = u32::try_from(text.len()).ok().filter(|length| *length <= MOST_BYTES);
        let length = length.ok_or_else(|| Error::internal("the app has too many files for an archive"))?;
        let write = |out: &mut dyn Write| -> io::Result<()> {
            out.write_all(&length.to_be_bytes())?;
            out.write_all(&text)
        };
        write(out).map_err(unreadable)
    }

    pub(super) fn read(from: &mut impl Read) -> Result<Self> {
        let text = Self::text(from)?;
        let refused = |why: &str| Error::invalid("archive", why);
        let version: VersionOnly = serde_json::from_slice(&text).map_err(|_| refused("does not say its version"))?;
        if version.version > VERSION {
            return Err(refused("was made by a newer release; use that release or a later one"));
        }
        serde_json::from_slice(&text).map_err(|error| refused("does not say what is in it").with_source(error))
    }

    pub(super) fn text(from: &mut impl Read) -> Result<Vec<u8>> {
        let mut length = [0; 4];
        from.read_exact(&mut length).map_err(unreadable)?;
        let length = u32::from_be_bytes(length);
        if length > MOST_BYTES {
            return Err(Error::invalid("archive", "does not say what is in it"));
        }
        let mut text = Vec::new();
        from.take(length.into()).read_to_end(&mut text).map_err(unreadable)?;
        Ok(text)
    }
}

#[derive(Deserialize)]
struct VersionOnly {
    version: u32,
}
