//! What a failed statement means for the transaction around it.

use std::{error::Error as StdError, fmt, time::Duration};

use kernel::{Code, Error};

/// A failed statement: the error for the closure, and what the engine has to do about the transaction.
pub(crate) struct Fault {
    pub(crate) error: Error,
    pub(crate) fate: Fate,
}

/// What becomes of the transaction in which a statement failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is doomed, unless the statement ran inside a savepoint.
    Doomed,
    /// Nobody's fault (deadlock, serialization failure): run the closure again.
    Rerun,
    /// The connection is gone: reconnect and run the closure again.
    ConnectionLost,
}

impl Fault {
    pub(crate) fn doomed(error: Error) -> Self {
        Self { error, fate: Fate::Doomed }
    }
}

/// The engine's own report of a failed statement, without the values that were in it: they may be secret.
#[derive(Debug)]
pub(crate) struct StatementFailed {
    pub(crate) message: String,
    pub(crate) unique: bool,
}

impl fmt::Display for StatementFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for StatementFailed {}

/// Whether the error came from a unique constraint. For use around [`crate::Tx::savepoint`]; `ON CONFLICT` is the first choice.
pub fn is_unique_violation(error: &Error) -> bool {
    error.source().and_then(|source| source.downcast_ref::<StatementFailed>()).is_some_and(|failed| failed.unique)
}

pub(crate) fn overloaded() -> Error {
    Error::new(Code::Overloaded, "The service is overloaded. Try again in a moment.")
        .with_retry_after(Duration::from_secs(1))
}

pub(crate) fn closed() -> Error {
    Error::new(Code::ShuttingDown, "The service is shutting down.").with_retry_after(Duration::from_secs(1))
}

pub(crate) fn unavailable(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
    Error::new(Code::StorageUnavailable, "The database cannot be reached at the moment.")
        .with_retry_after(Duration::from_secs(2))
        .with_source(source)
}

const CANNOT_WRITE: &str = "Nothing can be stored at the moment: the disk is full, or it cannot be written.";

/// The engine reads, but cannot write: a full disk, a read-only one, a failing one.
pub(crate) fn cannot_write(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
    Error::new(Code::StorageUnavailable, CANNOT_WRITE).with_retry_after(Duration::from_secs(10)).with_source(source)
}

/// Also when the error was handed to another caller of the same batch, and its cause is text.
pub(crate) fn is_cannot_write(error: &Error) -> bool {
    error.code() == Code::StorageUnavailable && error.public() == CANNOT_WRITE
}

pub(crate) fn commit_unknown(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
    Error::new(
        Code::CommitUnknown,
        "The connection to the database was lost while committing: the change may or may not have been made. \
         Check before you send it again.",
    )
    .with_retry_after(Duration::from_secs(2))
    .with_source(source)
}

/// The same answer for another caller: an error cannot be cloned, its public face can.
pub(crate) fn same_answer(error: &Error) -> Error {
    let copy = Error::new(error.code(), error.public().to_owned()).with_source(format!("{error:?}"));
    match error.retry_after() {
        Some(after) => copy.with_retry_after(after),
        None => copy,
    }
}
