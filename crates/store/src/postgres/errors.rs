//! What PostgreSQL's errors mean for a transaction, and how they are told without the values that were in them.

use std::{fmt::Write as _, io, time::Duration};

use kernel::{Code, Error};
use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::fault::{self, Fate, Fault, StatementFailed};

/// Classifies a failed statement.
pub(super) fn fault(error: &tokio_postgres::Error) -> Fault {
    match error.as_db_error() {
        Some(refusal) => Fault { error: told(refusal), fate: fate(refusal) },
        None if is_lost(error) => Fault { error: fault::unavailable(chain(error)), fate: Fate::ConnectionLost },
        None => Fault::doomed(Error::internal(chain(error))),
    }
}

/// A statement whose result changed its shape since it was prepared, as a migration may cause. Prepared again it works.
pub(super) fn is_stale_plan(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some_and(|refusal| {
        *refusal.code() == SqlState::FEATURE_NOT_SUPPORTED && refusal.routine() == Some("RevalidateCachedQuery")
    })
}

/// An error with its causes, for the log. Only for errors of the driver and of connecting, which hold no values.
pub(super) fn chain(error: &tokio_postgres::Error) -> String {
    if let Some(refusal) = error.as_db_error() {
        return message(refusal);
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}

fn fate(refusal: &DbError) -> Fate {
    let code = refusal.code();
    if *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED {
        return Fate::Rerun;
    }
    let ends_the_session = matches!(refusal.parsed_severity(), Some(Severity::Fatal | Severity::Panic));
    if ends_the_session || code.code().starts_with("08") || code.code().starts_with("57P0") {
        return Fate::ConnectionLost;
    }
    Fate::Doomed
}

fn told(refusal: &DbError) -> Error {
    let code = refusal.code();
    let failed = StatementFailed { message: message(refusal), unique: *code == SqlState::UNIQUE_VIOLATION };
    if *code == SqlState::LOCK_NOT_AVAILABLE || *code == SqlState::QUERY_CANCELED {
        Error::new(Code::TimedOut, "The database took too long. Try again in a moment.")
            .with_retry_after(Duration::from_secs(2))
            .with_source(failed)
    } else if [SqlState::DISK_FULL, SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::IO_ERROR].contains(code) {
        fault::cannot_write(failed)
    } else if code.code().starts_with("53") || fate(refusal) == Fate::ConnectionLost {
        fault::unavailable(failed)
    } else {
        Error::internal(failed)
    }
}

/// The SQLSTATE, the primary message and the constraint. Never the detail, which quotes rows; and no message for class
/// 22, which quotes the value that could not be read.
fn message(refusal: &DbError) -> String {
    let mut text = format!("SQLSTATE {}", refusal.code().code());
    if !refusal.code().code().starts_with("22") {
        let _ = write!(text, ": {}", refusal.message());
    }
    if let Some(constraint) = refusal.constraint() {
        let _ = write!(text, " (constraint {constraint})");
    }
    text
}

fn is_lost(error: &tokio_postgres::Error) -> bool {
    error.is_closed() || std::error::Error::source(error).is_some_and(|cause| cause.is::<io::Error>())
}
