//! Files and folders for their owner's eyes only: the database, the keys and the messages are nobody else's business on a
//! machine with several users, whatever the umask says.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{ErrorKind, Result},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

/// What the group and all others may do.
const OF_OTHERS: u32 = 0o077;

/// Makes a folder with mode 0700, with those above it; one that exists stays as it is.
pub fn create_folder(path: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// An empty file with mode 0600, in the place of one that somebody left there.
pub fn create_file(path: &Path) -> Result<File> {
    let _ = fs::remove_file(path);
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Makes an empty file with mode 0600, or takes what others may do from one that exists.
pub fn claim_file(path: &Path) -> Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => restrict(path).map(|_| ()),
        Err(error) => Err(error),
    }
}

/// Takes away what others may do with a file or folder; whether there was anything. What does not exist is private.
pub fn restrict(path: &Path) -> Result<bool> {
    let private = is_private(path)?;
    if !private {
        let mode = fs::metadata(path)?.mode() & 0o7777;
        fs::set_permissions(path, Permissions::from_mode(mode & !OF_OTHERS))?;
    }
    Ok(!private)
}

/// Whether only the owner may do anything with it.
pub fn is_private(path: &Path) -> Result<bool> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.mode() & OF_OTHERS == 0),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}
