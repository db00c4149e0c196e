//! The SQL of people.

use std::collections::{BTreeMap, HashSet};

use ::store::{Tx, args, row, sql};
use kernel::{AppId, Result, Timestamp, UserId};

use super::User;

/// The condition under which what a person began at `$at` has not ended with all of their sessions: of the row of `users` that a
/// statement has anyway, or of the person in the column `$user`.
#[macro_export]
macro_rules! sessions_not_ended {
    ($at:literal) => {
        concat!("(users.sessions_ended_at IS NULL OR ", $at, " > users.sessions_ended_at)")
    };
    ($user:literal, $at:literal) => {
        concat!("EXISTS (SELECT 1 FROM users WHERE users.id = ", $user, " AND ", $crate::sessions_not_ended!($at), ")")
    };
}

row! { User = "users" { id, email, first_name, last_name, phone_number } }

pub(super) fn hold_by_id(tx: &mut Tx<'_>, app: AppId, id: UserId) -> Result<()> {
    tx.run("UPDATE users SET email_key = email_key WHERE app_id = $1 AND id = $2", &args![app, id])
}

/// The person with this address, held until the transaction ends; made under this id if there is none.
pub(super) fn find_or_insert(tx: &mut Tx<'_>, app: AppId, new: &User, key: &str) -> Result<User> {
    tx.one(
        sql!(
            "INSERT INTO users (id, app_id, email, email_key, first_name, last_name, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (app_id, email_key) DO UPDATE SET \
             first_name = CASE WHEN users.first_name = '' THEN excluded.first_name ELSE users.first_name END, \
             last_name = CASE WHEN users.last_name = '' THEN excluded.last_name ELSE users.last_name END RETURNING ",
            User::COLUMNS
        ),
        &args![new.id, app, new.email, key, new.first_name, new.last_name, tx.now()],
    )
}

/// Those of these people, by their addresses and with whether these are proven, whom nobody had made yet.
pub(super) fn insert_new(
    tx: &mut Tx<'_>,
    app: AppId,
    people: &BTreeMap<String, (User, bool)>,
) -> Result<HashSet<UserId>> {
    let now = tx.now();
    let rows = people.iter().map(|(key, (user, is_verified))| {
        let names = (user.first_name.as_str(), user.last_name.as_str());
        (user.id, app, user.email.as_str(), key.as_str(), names.0, names.1, now, is_verified.then_some(now))
    });
    let rows: Vec<_> = rows.collect();
    let made: Vec<(UserId,)> = tx.insert_all_returning(
        "INSERT INTO users (id, app_id, email, email_key, first_name, last_name, created_at, email_verified_at) \
         SELECT id, app_id, email, email_key, first_name, last_name, created_at, email_verified_at FROM {rows} WHERE true \
         ON CONFLICT (app_id, email_key) DO NOTHING RETURNING id",
        ["id", "app_id", "email", "email_key", "first_name", "last_name", "created_at", "email_verified_at"],
        &rows,
    )?;
    Ok(made.into_iter().map(|(id,)| id).collect())
}

pub(super) fn find(tx: &mut Tx<'_>, app: AppId, id: UserId) -> Result<Option<User>> {
    tx.opt(sql!("SELECT ", User::COLUMNS, " FROM users WHERE app_id = $1 AND id = $2"), &args![app, id])
}

pub(super) fn has_proven_address(tx: &mut Tx<'_>, app: AppId, id: UserId) -> Result<bool> {
    tx.exists("SELECT 1 FROM users WHERE app_id = $1 AND id = $2 AND email_verified_at IS NOT NULL", &args![app, id])
}

pub(super) fn find_by_email(tx: &mut Tx<'_>, app: AppId, key: &str) -> Result<Option<User>> {
    tx.opt(sql!("SELECT ", User::COLUMNS, " FROM users WHERE app_id = $1 AND email_key = $2"), &args![app, key])
}

pub(super) fn known(tx: &mut Tx<'_>, app: AppId, keys: &[String]) -> Result<Vec<String>> {
    let known: Vec<(String,)> =
        tx.all("SELECT email_key FROM users WHERE app_id = $1 AND email_key = ANY($2)", &args![app, keys])?;
    Ok(known.into_iter().map(|(key,)| key).collect())
}

pub(super) fn is_made_since(tx: &mut Tx<'_>, app: AppId, id: UserId, since: Timestamp) -> Result<bool> {
    tx.exists("SELECT 1 FROM users WHERE app_id = $1 AND id = $2 AND created_at >= $3", &args![app, id, since])
}

pub(super) fn change_address(tx: &mut Tx<'_>, app: AppId, id: UserId, email: &str, key: &str) -> Result<bool> {
    tx.changes_one(
        "UPDATE users SET email = $3, email_key = $4, email_verified_at = NULL WHERE app_id = $1 AND id = $2 \
         AND NOT EXISTS (SELECT 1 FROM users AS others WHERE others.app_id = $1 AND others.email_key = $4)",
        &args![app, id, email, key],
    )
}

pub(super) fn update(tx: &mut Tx<'_>, app: AppId, user: &User) -> Result<()> {
    tx.run(
        "UPDATE users SET first_name = $3, last_name = $4, phone_number = $5 WHERE app_id = $1 AND id = $2",
        &args![app, user.id, user.first_name, user.last_name, user.phone_number],
    )
}

pub(super) fn name_themselves(tx: &mut Tx<'_>, app: AppId, id: UserId, first: &str, last: &str) -> Result<()> {
    tx.run(
        "UPDATE users SET first_name = CASE WHEN $3 = '' THEN first_name ELSE $3 END, \
         last_name = CASE WHEN $4 = '' THEN last_name ELSE $4 END WHERE app_id = $1 AND id = $2",
        &args![app, id, first, last],
    )
}

/// Only the first time counts.
pub(super) fn verify_email(tx: &mut Tx<'_>, app: AppId, id: UserId) -> Result<()> {
    tx.run(
        "UPDATE users SET email_verified_at = $3 WHERE app_id = $1 AND id = $2 AND email_verified_at IS NULL",
        &args![app, id, tx.now()],
    )
}

pub(super) fn end_sessions(tx: &mut Tx<'_>, app: AppId, id: UserId) -> Result<()> {
    let now = tx.now();
    tx.run("UPDATE users SET sessions_ended_at = $3 WHERE app_id = $1 AND id = $2", &args![app, id, now])
}

pub(super) fn delete_links_if_nowhere(tx: &mut Tx<'_>, app: AppId, id: UserId) -> Result<()> {
    tx.run(
        "DELETE FROM one_time_links WHERE app_id = $1 AND user_id = $2 \
         AND NOT EXISTS (SELECT 1 FROM members WHERE members.user_id = $2)",
        &args![app, id],
    )
}

/// Whether they were deleted.
pub(super) fn delete_if_nowhere(tx: &mut Tx<'_>, app: AppId, id: UserId) -> Result<bool> {
    tx.changes_one(
        "DELETE FROM users WHERE app_id = $1 AND id = $2 \
         AND NOT EXISTS (SELECT 1 FROM members WHERE members.user_id = $2)",
        &args![app, id],
    )
}
