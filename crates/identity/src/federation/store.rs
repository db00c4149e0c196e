//! The SQL of federated logins.

use ::store::{Tx, args, row, sql};
use kernel::{AppId, Result, Timestamp, UserId};
use tenancy::federation::ConnectionId;

use super::{NewPending, OUTCOME_LIFETIME, PendingFederation, Via};

row! {
    PendingFederation = "pending_federations" {
        id,
        app: "app_id",
        via: "connection_id",
        browser,
        request,
        authenticated_since,
        message,
        statement,
        handle,
        answered_at,
        used_at,
        created_at,
    }
}

pub(super) fn insert(tx: &mut Tx<'_>, id: &str, new: &NewPending<'_>, expires_at: Timestamp) -> Result<()> {
    tx.run(
        "INSERT INTO pending_federations (id, app_id, connection_id, browser, request, authenticated_since, expires_at, \
         created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        &args![
            id,
            new.app,
            new.via,
            new.browser,
            new.request,
            new.authenticated_since,
            expires_at,
            tx.now()
        ],
    )
}

/// One that has not expired. Its id is all that a provider sends back: the app is in the row.
pub(super) fn find(tx: &mut Tx<'_>, via: Via, id: &str) -> Result<Option<PendingFederation>> {
    tx.opt(
        sql!(
            "SELECT ",
            PendingFederation::COLUMNS,
            " FROM pending_federations WHERE connection_id = $1 AND id = $2 AND expires_at > $3"
        ),
        &args![via, id, tx.now()],
    )
}

/// Takes the message in hand, so that nobody else acts on it or on another; false when somebody has.
pub(super) fn claim(tx: &mut Tx<'_>, pending: &PendingFederation, message: &str) -> Result<bool> {
    tx.changes_one(
        "UPDATE pending_federations SET message = $3 WHERE app_id = $1 AND id = $2 AND message IS NULL",
        &args![pending.app, pending.id, message],
    )
}

/// The message in hand came to nothing.
pub(super) fn give_up(tx: &mut Tx<'_>, pending: &PendingFederation) -> Result<()> {
    tx.run(
        "UPDATE pending_federations SET used_at = $3 WHERE app_id = $1 AND id = $2 AND used_at IS NULL",
        &args![pending.app, pending.id, tx.now()],
    )
}

/// False when it was answered before.
pub(super) fn answer(
    tx: &mut Tx<'_>,
    pending: &PendingFederation,
    message: &str,
    statement: &str,
    handle: &str,
) -> Result<bool> {
    tx.changes_one(
        "UPDATE pending_federations SET message = $3, statement = $4, handle = $5, answered_at = $6 \
         WHERE app_id = $1 AND id = $2 AND answered_at IS NULL AND expires_at > $6",
        &args![pending.app, pending.id, message, statement, handle, tx.now()],
    )
}

/// The login that an outcome belongs to, also one that was fetched before or waited too long. The handle is all that the browser
/// brings: the app is in the row.
pub(super) fn by_handle(tx: &mut Tx<'_>, handle: &str) -> Result<Option<PendingFederation>> {
    tx.opt(sql!("SELECT ", PendingFederation::COLUMNS, " FROM pending_federations WHERE handle = $1"), &args![handle])
}

pub(super) fn take(tx: &mut Tx<'_>, pending: &PendingFederation) -> Result<bool> {
    let now = tx.now();
    tx.changes_one(
        "UPDATE pending_federations SET used_at = $3, statement = NULL WHERE app_id = $1 AND id = $2 AND used_at IS NULL \
         AND answered_at > $4",
        &args![pending.app, pending.id, now, now.minus(OUTCOME_LIFETIME)],
    )
}

pub(super) fn person_of_subject(
    tx: &mut Tx<'_>,
    app: AppId,
    connection: ConnectionId,
    subject: &str,
) -> Result<Option<UserId>> {
    let found: Option<(UserId,)> = tx.opt(
        "SELECT user_id FROM federated_subjects WHERE app_id = $1 AND connection_id = $2 AND subject = $3",
        &args![app, connection, subject],
    )?;
    Ok(found.map(|(user,)| user))
}

pub(super) fn link(tx: &mut Tx<'_>, app: AppId, connection: ConnectionId, subject: &str, user: UserId) -> Result<()> {
    tx.run(
        "INSERT INTO federated_subjects (connection_id, subject, app_id, user_id, created_at) \
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT (connection_id, subject) DO UPDATE SET user_id = excluded.user_id",
        &args![connection, subject, app, user, tx.now()],
    )
}
