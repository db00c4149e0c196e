//! Bytes in a folder. An object is written under another name until all of it is on disk.

use std::{
    io::{self, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use kernel::{Code, Error, Result};
use tokio::{
    fs,
    io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _},
};

const TEMPORARY: &str = "tmp";
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The folder of files. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Folder {
    folder: Arc<Path>,
}

impl Folder {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder: folder.into() }
    }

    /// Folders of a thousand files each are quicker to look through than one of a million.
    fn place(&self, object: &str) -> PathBuf {
        self.folder.join(object.get(..2).unwrap_or("xx")).join(object)
    }

    fn temporary(&self, object: &str) -> PathBuf {
        self.folder.join(TEMPORARY).join(object)
    }

    /// A new object, which nobody sees before it is kept.
    pub(crate) async fn create(&self, object: &str) -> Result<NewObject> {
        let path = self.temporary(object);
        make_folder(&self.folder.join(TEMPORARY)).await?;
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        options.mode(0o600);
        let file = options.open(&path).await.map_err(failed)?;
        Ok(NewObject { folder: self.clone(), object: object.to_owned(), path: Some(path), file })
    }

    /// Its bytes from a place on; `None` when there is no such object.
    pub(crate) async fn open(&self, object: &str, from: u64) -> Result<Option<fs::File>> {
        let mut file = match fs::File::open(self.place(object)).await {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        file.seek(SeekFrom::Start(from)).await.map_err(failed)?;
        Ok(Some(file))
    }

    /// All of it, for what has to be rewritten.
    pub(crate) async fn read(&self, object: &str) -> Result<Vec<u8>> {
        let Some(mut file) = self.open(object, 0).await? else {
            return Err(Error::internal("a file's bytes are missing"));
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).await.map_err(failed)?;
        Ok(bytes)
    }

    /// The same as [`Folder::open`] from the start, for threads that may wait.
    pub(crate) fn open_blocking(&self, object: &str) -> io::Result<Option<std::fs::File>> {
        match std::fs::File::open(self.place(object)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A whole object at once, for threads that may wait. Nobody sees it before all of it is on disk.
    pub(crate) fn keep_blocking(&self, object: &str, bytes: &mut dyn io::Read) -> io::Result<()> {
        let (temporary, place) = (self.temporary(object), self.place(object));
        for path in [&temporary, &place] {
            ::store::private::create_folder(path.parent().unwrap_or(&self.folder))?;
        }
        // What a killed process left there.
        let _ = std::fs::remove_file(&temporary);
        let written = ::store::private::create_file(&temporary)
            .and_then(|mut file| io::copy(bytes, &mut file).and_then(|_| file.sync_all()))
            .and_then(|()| std::fs::rename(&temporary, &place));
        if written.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        written?;
        // The name is durable once its folder is.
        std::fs::File::open(place.parent().unwrap_or(&self.folder))?.sync_all()
    }

    pub(crate) async fn delete(&self, object: &str) -> Result<()> {
        for path in [self.place(object), self.temporary(object)] {
            match fs::remove_file(path).await {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether its bytes are here.
    pub(crate) async fn has(&self, object: &str) -> Result<bool> {
        fs::try_exists(self.place(object)).await.map_err(failed)
    }

    /// All objects, temporary ones too.
    pub(crate) async fn objects(&self) -> Result<FolderObjects> {
        Ok(FolderObjects { root: self.folder.clone(), folders: entries(&self.folder).await?, inside: None })
    }
}

/// A walk over all objects, in no order. However many there are, a few names are in memory.
pub(crate) struct FolderObjects {
    root: Arc<Path>,
    folders: Option<fs::ReadDir>,
    inside: Option<fs::ReadDir>,
}

impl FolderObjects {
    /// The names of at most so many further objects; none at the end.
    pub(crate) async fn next(&mut self, most: usize) -> Result<Vec<String>> {
        let mut found = Vec::new();
        while found.len() < most {
            if let Some(name) = next_name(&mut self.inside).await? {
                found.push(name);
            } else if let Some(folder) = next_name(&mut self.folders).await? {
                self.inside = entries(&self.root.join(folder)).await?;
            } else {
                break;
            }
        }
        Ok(found)
    }
}

/// A folder that cannot be written is the operator's to mend, and may be by the next attempt; anything else is a fault.
fn failed(error: io::Error) -> Error {
    use io::ErrorKind::{FileTooLarge, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge | ReadOnlyFilesystem | PermissionDenied => {
            let message = "Files cannot be stored at the moment: the disk is full, or it cannot be written.";
            Error::new(Code::StorageUnavailable, message).with_retry_after(RETRY_AFTER).with_source(error)
        }
        _ => Error::internal(error),
    }
}

async fn make_folder(path: &Path) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    builder.mode(0o700);
    builder.create(path).await.map_err(failed)
}

/// What a folder holds; `None` when it is none.
async fn entries(path: &Path) -> Result<Option<fs::ReadDir>> {
    match fs::read_dir(path).await {
        Ok(entries) => Ok(Some(entries)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// The next name that can be one of ours.
async fn next_name(entries: &mut Option<fs::ReadDir>) -> Result<Option<String>> {
    while let Some(open) = entries {
        match open.next_entry().await.map_err(failed)? {
            Some(entry) => {
                if let Ok(name) = entry.file_name().into_string() {
                    return Ok(Some(name));
                }
            }
            None => *entries = None,
        }
    }
    Ok(None)
}

/// An object that is being written. Gone when it is dropped before it was kept.
pub(crate) struct NewObject {
    folder: Folder,
    object: String,
    path: Option<PathBuf>,
    file: fs::File,
}

impl NewObject {
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).await.map_err(failed)
    }

    /// Durable when it answers.
    pub(crate) async fn keep(mut self) -> Result<()> {
        self.file.flush().await.map_err(failed)?;
        self.file.sync_all().await.map_err(failed)?;
        let place = self.folder.place(&self.object);
        let folder = place.parent().map(Path::to_owned).unwrap_or_default();
        make_folder(&folder).await?;
        if let Some(path) = self.path.take() {
            fs::rename(&path, &place).await.map_err(failed)?;
        }
        // The name is durable once its folder is.
        let folder = fs::File::open(folder).await.map_err(failed)?;
        folder.sync_all().await.map_err(failed)
    }
}

impl Drop for NewObject {
    fn drop(&mut self) {
        if let Some(path) = self.path.take() {
            // One call, and only after something failed; what cannot be removed the sweep finds.
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_no_fault() {
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::ReadOnlyFilesystem, io::ErrorKind::QuotaExceeded] {
            let error = failed(kind.into());
            assert_eq!((error.code(), error.retry_after()), (Code::StorageUnavailable, Some(RETRY_AFTER)));
        }
        assert_eq!(failed(io::ErrorKind::InvalidData.into()).code(), Code::Internal);
    }
}
