//! Keys in the data folder: readable by the owner alone, on disk before anything depends on them.

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use ::store::private;
use kernel::{Code, Error, Result, Secret};

/// One key's file.
pub(super) struct KeyFile(pub(super) PathBuf);

impl KeyFile {
    pub(super) fn in_folder(folder: &Path, name: &str) -> Self {
        Self(folder.join(name))
    }

    pub(super) fn read(&self) -> Result<Option<Secret<String>>> {
        match fs::read_to_string(&self.0) {
            Ok(text) => Ok(Some(Secret::new(text.trim().to_owned()))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("read", &error)),
        }
    }

    /// Writes a new file with mode 0600 and waits until it is on the disk.
    pub(super) fn write(&self, key: &Secret<String>) -> Result<()> {
        self.try_write(key).map_err(|error| self.failed("write", &error))
    }

    /// The same, where one may have been left behind.
    pub(super) fn replace(&self, key: &Secret<String>) -> Result<()> {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.failed("replace", &error)),
            _ => self.write(key),
        }
    }

    /// Takes the other's name and place, in one step.
    pub(super) fn rename_to(&self, other: &Self) -> Result<()> {
        let renamed = fs::rename(&self.0, &other.0).and_then(|()| File::open(self.folder())?.sync_all());
        renamed.map_err(|error| other.failed("write", &error))
    }

    fn folder(&self) -> &Path {
        self.0.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    fn try_write(&self, key: &Secret<String>) -> std::io::Result<()> {
        let folder = self.folder();
        private::create_folder(folder)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.0)?;
        file.write_all(key.expose().as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        File::open(folder)?.sync_all()
    }

    pub(super) fn remove(&self) {
        if let Err(error) = fs::remove_file(&self.0) {
            tracing::warn!(file = %self.0.display(), %error, "a key file that is not needed could not be removed");
        }
    }

    fn failed(&self, verb: &str, error: &std::io::Error) -> Error {
        Error::new(Code::StorageUnavailable, format!("Cannot {verb} {}: {error}", self.0.display()))
    }
}
