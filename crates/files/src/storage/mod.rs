//! Where bytes are: in a folder, or in a bucket of an S3-compatible storage. An object has a random name, never changes, and
//! is seen by nobody before all of it is there.

mod folder;
mod s3;

use std::{
    io::{self, Read},
    path::PathBuf,
};

use bytes::{Bytes, BytesMut};
use kernel::{Result, Secret};
use spine::outbound::Download;
use tokio::{fs, io::AsyncReadExt as _};

pub(crate) use folder::{Folder, NewObject};
pub use s3::{Allowed, Fault, S3Address};
pub(crate) use s3::{Remote, Served, UnendedUpload, without_prefix};

/// Read and written at a time.
pub(crate) const PIECE: usize = 256 * 1024;

/// Where the operator wants files to be.
#[derive(Clone, Debug)]
pub enum Place {
    Folder(PathBuf),
    S3(S3Address),
}

impl Place {
    /// `file:DIR` or `s3://…`. The error says what is wrong without repeating the URL, which may hold a secret.
    pub fn from_url(url: &Secret<String>) -> std::result::Result<Self, String> {
        match url.expose().strip_prefix("file:") {
            Some(folder) if !folder.is_empty() => Ok(Self::Folder(PathBuf::from(folder))),
            _ => S3Address::from_url(url.expose()).map(Self::S3),
        }
    }

    /// For people.
    pub fn shown(&self) -> String {
        match self {
            Self::Folder(folder) => format!("the folder {}", folder.display()),
            Self::S3(address) => address.shown(),
        }
    }
}

/// The storage of files. Cheap to clone.
#[derive(Clone)]
pub enum Storage {
    Folder(Folder),
    S3(Remote),
}

impl Storage {
    /// Within a runtime, which then carries the requests to a storage elsewhere.
    pub fn new(place: Place) -> Self {
        match place {
            Place::Folder(folder) => Self::Folder(Folder::new(folder)),
            Place::S3(address) => Self::S3(Remote::new(address)),
        }
    }

    /// Whether it is elsewhere, and so no part of this machine's backups.
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::S3(_))
    }

    /// Whether it can be used. A folder is made when it is needed.
    pub async fn check(&self) -> std::result::Result<(), Fault> {
        match self {
            Self::Folder(_) => Ok(()),
            Self::S3(remote) => remote.check().await,
        }
    }

    /// A new object with these bytes.
    pub(crate) async fn put(&self, object: &str, bytes: Vec<u8>) -> Result<()> {
        match self {
            Self::Folder(folder) => {
                let mut new = folder.create(object).await?;
                new.write(&bytes).await?;
                new.keep().await
            }
            Self::S3(remote) => remote.put(object, bytes).await,
        }
    }

    /// Its bytes from the start; `None` when there is no such object.
    pub(crate) async fn open(&self, object: &str) -> Result<Option<Reader>> {
        match self {
            Self::Folder(folder) => Ok(folder.open(object, 0).await?.map(Reader::File)),
            Self::S3(remote) => Ok(remote.open(object).await?.map(Reader::Remote)),
        }
    }

    /// All of it, for what has to be rewritten.
    pub(crate) async fn read(&self, object: &str) -> Result<Vec<u8>> {
        match self {
            Self::Folder(folder) => folder.read(object).await,
            Self::S3(remote) => remote.read(object).await?.ok_or_else(s3::missing),
        }
    }

    /// The same as [`Storage::open`], for threads that may wait.
    pub(crate) fn open_blocking(&self, object: &str) -> io::Result<Option<Box<dyn Read + Send>>> {
        match self {
            Self::Folder(folder) => {
                Ok(folder.open_blocking(object)?.map(|file| Box::new(file) as Box<dyn Read + Send>))
            }
            Self::S3(remote) => remote.open_blocking(object),
        }
    }

    /// A whole object at once, for threads that may wait. Durable when it answers.
    pub(crate) fn keep_blocking(&self, object: &str, bytes: &mut dyn Read) -> io::Result<()> {
        match self {
            Self::Folder(folder) => folder.keep_blocking(object, bytes),
            Self::S3(remote) => remote.keep_blocking(object, bytes),
        }
    }

    pub(crate) async fn delete(&self, object: &str) -> Result<()> {
        match self {
            Self::Folder(folder) => folder.delete(object).await,
            Self::S3(remote) => remote.delete(object).await,
        }
    }

    /// Deletes what no row names any more. What has to stay for now, the sweep finds.
    pub(crate) async fn discard(&self, object: &str) {
        if let Err(error) = self.delete(object).await {
            tracing::warn!(?error, "bytes of no file are left to the sweep");
        }
    }

    /// Whether its bytes are here.
    pub(crate) async fn has(&self, object: &str) -> Result<bool> {
        match self {
            Self::Folder(folder) => folder.has(object).await,
            Self::S3(remote) => remote.has(object).await,
        }
    }

    /// Uploads in parts that were begun and not ended. A storage that does not tell has none.
    pub(crate) async fn unended_uploads(&self) -> Vec<UnendedUpload> {
        let Self::S3(remote) = self else { return Vec::new() };
        remote.unended().await.unwrap_or_else(|fault| {
            tracing::warn!(%fault, "the storage does not tell which uploads nobody ended");
            Vec::new()
        })
    }

    /// Removes the parts of an upload. What has to stay for now, the next run finds again.
    pub(crate) async fn give_up(&self, unended: &UnendedUpload) {
        let Self::S3(remote) = self else { return };
        if let Err(fault) = remote.give_up(unended).await {
            tracing::warn!(%fault, "the parts of an upload that nobody ended are left to the sweep");
        }
    }

    /// All objects, temporary ones too.
    pub(crate) async fn objects(&self) -> Result<Objects> {
        Ok(match self {
            Self::Folder(folder) => Objects::Folder(folder.objects().await?),
            Self::S3(remote) => Objects::S3(remote.objects()),
        })
    }
}

/// A walk over all objects. However many there are, a few names are in memory.
pub(crate) enum Objects {
    Folder(folder::FolderObjects),
    S3(s3::RemoteObjects),
}

impl Objects {
    /// The names of at most so many further objects; none at the end.
    pub(crate) async fn next(&mut self, most: usize) -> Result<Vec<String>> {
        match self {
            Self::Folder(objects) => objects.next(most).await,
            Self::S3(objects) => objects.next(most).await,
        }
    }
}

/// An object that is being read.
pub(crate) enum Reader {
    File(fs::File),
    Remote(Download),
}

impl Reader {
    /// Some of what is left of an object; nothing at its end.
    pub(crate) async fn next(&mut self, left: u64) -> io::Result<Bytes> {
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        let piece = match self {
            Self::File(file) => file_piece(file, most.min(PIECE)).await?,
            Self::Remote(_) if left == 0 => Bytes::new(),
            Self::Remote(download) => download.next().await.map_err(io::Error::other)?.unwrap_or_default(),
        };
        if piece.is_empty() && left > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(piece.slice(..piece.len().min(most)))
    }
}

async fn file_piece(file: &mut fs::File, most: usize) -> io::Result<Bytes> {
    let mut piece = BytesMut::with_capacity(most);
    let mut limited = file.take(most as u64);
    while limited.read_buf(&mut piece).await? > 0 {}
    Ok(piece.freeze())
}
