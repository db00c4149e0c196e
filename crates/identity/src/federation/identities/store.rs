//! The SQL of linked identities.

use ::store::{Tx, args, row, sql};
use kernel::{AppId, Result, UserId};
use tenancy::federation::Provider;

use super::{IdentityId, LinkedIdentity};

row! { LinkedIdentity = "linked_identities" { id, provider, email, created_at } }

pub(in crate::federation) fn person_of(
    tx: &mut Tx<'_>,
    app: AppId,
    provider: Provider,
    subject: &str,
) -> Result<Option<UserId>> {
    let found: Option<(UserId,)> = tx.opt(
        "SELECT user_id FROM linked_identities WHERE app_id = $1 AND provider = $2 AND subject = $3",
        &args![app, provider, subject],
    )?;
    Ok(found.map(|(user,)| user))
}

/// The subject stands for this person from now on. Another person's row can only be that of somebody who is gone.
pub(in crate::federation) fn link(
    tx: &mut Tx<'_>,
    app: AppId,
    user: UserId,
    provider: Provider,
    subject: &str,
    email: &str,
) -> Result<()> {
    let id: IdentityId = tx.new_id();
    tx.run(
        "INSERT INTO linked_identities (id, app_id, user_id, provider, subject, email, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (app_id, provider, subject) DO UPDATE \
         SET user_id = excluded.user_id, email = excluded.email",
        &args![id, app, user, provider, subject, email, tx.now()],
    )
}

pub(super) fn of_person(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<Vec<LinkedIdentity>> {
    tx.all(
        sql!(
            "SELECT ",
            LinkedIdentity::COLUMNS,
            " FROM linked_identities WHERE app_id = $1 AND user_id = $2 ORDER BY id DESC LIMIT 1000"
        ),
        &args![app, user],
    )
}

pub(super) fn delete(tx: &mut Tx<'_>, app: AppId, id: IdentityId) -> Result<()> {
    tx.run("DELETE FROM linked_identities WHERE app_id = $1 AND id = $2", &args![app, id])
}
