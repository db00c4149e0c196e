//! Values that open something: the form of an upload, and the address of a file. They are sealed for one file, so that
//! nothing in them can be changed or used for another one.

use kernel::{AppId, Code, Error, Result, Timestamp};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use vault::{Keyring, Place};

use crate::FileId;

/// What the form of an upload was handed out for.
#[derive(Serialize, Deserialize)]
pub struct UploadTicket {
    pub app: AppId,
    pub content_type: String,
    pub until: Timestamp,
}

/// What the address of a file that is not public carries.
#[derive(Serialize, Deserialize)]
pub(crate) struct DownloadTicket {
    pub(crate) until: Timestamp,
}

/// A value that only this service makes, and that is good for one file.
pub trait Ticket: Serialize + DeserializeOwned {
    /// What it is for: one kind is never taken for another.
    const COLUMN: &'static str;

    fn seal(&self, keyring: &Keyring, file: FileId) -> Result<String> {
        let json = serde_json::to_vec(self).map_err(Error::internal)?;
        Ok(keyring.seal_for_page(&place(Self::COLUMN, &file.to_string()), &json))
    }

    /// 403 for whatever was not sealed here for this file.
    fn open(keyring: &Keyring, file: FileId, sealed: &str) -> Result<Self> {
        let opened = keyring.open_from_page(&place(Self::COLUMN, &file.to_string()), sealed).map_err(|_| refused())?;
        serde_json::from_slice(opened.expose()).map_err(|_| refused())
    }
}

impl Ticket for UploadTicket {
    const COLUMN: &'static str = "upload";
}

impl Ticket for DownloadTicket {
    const COLUMN: &'static str = "download";
}

fn place<'a>(column: &'a str, row: &'a str) -> Place<'a> {
    Place { table: "files", column, row, app: None }
}

pub(crate) fn refused() -> Error {
    Error::new(Code::Forbidden, "This address is not valid, or is not valid any more. Ask the app for a new one.")
}

#[cfg(test)]
mod properties;
