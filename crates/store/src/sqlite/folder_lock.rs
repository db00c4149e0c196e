//! The operating system's lock on the data folder. It ends with the process, however that dies.

use std::{
    fmt,
    fs::{File, TryLockError},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use kernel::{Code, Error, Result};

/// Held while a process works on a data folder.
pub struct FolderLock {
    _file: File,
}

/// The cause of the error when another process holds the folder.
#[derive(Debug)]
pub struct FolderLocked(PathBuf);

impl fmt::Display for FolderLocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "another process holds {}", self.0.display())
    }
}

impl std::error::Error for FolderLocked {}

impl FolderLocked {
    /// Whether an error of [`FolderLock::take`] or [`crate::Db::open`] means that another process is at work there.
    pub fn is_cause_of(error: &Error) -> bool {
        std::error::Error::source(error).is_some_and(|source| source.is::<Self>())
    }
}

impl FolderLock {
    pub fn take(folder: &Path) -> Result<Self> {
        let path = folder.join("lock");
        let file =
            File::options().create(true).truncate(false).write(true).mode(0o600).open(&path).map_err(|error| {
                Error::new(Code::StorageUnavailable, format!("Cannot open the lock file {}: {error}", path.display()))
            })?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Error::new(
                Code::StorageUnavailable,
                format!("The data folder {} is in use by another process.", folder.display()),
            )
            .with_source(FolderLocked(folder.to_owned()))),
            Err(TryLockError::Error(error)) => Err(Error::new(
                Code::StorageUnavailable,
                format!("Cannot lock the data folder {}: {error}", folder.display()),
            )),
        }
    }
}
