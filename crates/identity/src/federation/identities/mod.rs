//! `/account/me/identities`: the providers that vouch for a person, seen and taken away by themselves.

mod store;

use ::store::Tx;
use kernel::{Actor, AppId, Code, Error, Page, Result, Timestamp, UserId, id_kinds};
use schemars::JsonSchema;
use serde::Serialize;
use spine::emit;
use tenancy::{
    callers::{AnyMember, BearerCaller},
    federation::Provider,
    people,
};
use web::{Json, Params, Path, Routes, State, Success};

pub(super) use store::{link, person_of};

use crate::{
    Identity,
    facts::IdentityUnlinked,
    login::{credentials, own},
    mfa::store::passkeys,
};

id_kinds! {
    /// A provider's word for a person.
    IdentityId(IdentityKind) = "identity";
}

pub(crate) fn routes() -> Routes<Identity> {
    Routes::new("Federated login")
        .get("/account/me/identities", list, "List the providers that you can sign in with")
        .delete("/account/me/identities/{identity_id}", remove, "Take away a provider that you can sign in with")
        .answers(404, "There is no such identity of yours")
        .answers(409, "It is the last way for you to sign in")
}

/// A provider that a person can sign in with.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LinkedIdentity {
    id: IdentityId,
    provider: Provider,
    /// The address that it had when it was linked.
    email: String,
    created_at: Timestamp,
}

async fn list(
    caller: BearerCaller<AnyMember>,
    State(identity): State<Identity>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<LinkedIdentity>>> {
    let listed = identity.tenancy.db.read(move |tx| {
        own::homely_login(tx, &caller.0)?;
        store::of_person(tx, caller.0.app(), caller.0.user())
    });
    Ok(Json(page.of(listed.await?)))
}

async fn remove(
    caller: BearerCaller<AnyMember>,
    State(identity): State<Identity>,
    Path(id): Path<IdentityId>,
) -> Result<Success> {
    let (by, user) = (identity.tenancy.db.by(&caller.0), caller.0);
    let removed = by.write(move |tx| {
        own::unbounded_login(tx, &user)?;
        unlink(tx, user.app(), user.user(), id)
    });
    removed.await?;
    Ok(Success)
}

/// Whether some provider vouches for the person.
pub(crate) fn has_any(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<bool> {
    Ok(!store::of_person(tx, app, user)?.is_empty())
}

fn unlink(tx: &mut Tx<'_>, app: AppId, user: UserId, id: IdentityId) -> Result<()> {
    people::hold(tx, app, user)?;
    let all = store::of_person(tx, app, user)?;
    let Some(one) = all.iter().find(|one| one.id == id) else { return Err(Error::not_found("identity")) };
    let has_password = credentials::has_password(tx, app, user)?;
    if all.len() == 1 && !has_password && !passkeys::has_one(tx, app, user)? {
        let message = "This is your last way to sign in. Set a password or add a passkey first.";
        return Err(Error::new(Code::LastWayIn, message));
    }
    tx.acting_as(Actor::user(user));
    store::delete(tx, app, id)?;
    emit(tx, app, &IdentityUnlinked { user_id: user, provider: one.provider })
}

/// The person can no longer sign in through any provider: part of giving them another address.
pub(super) fn unlink_all(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    for one in store::of_person(tx, app, user)? {
        store::delete(tx, app, one.id)?;
        emit(tx, app, &IdentityUnlinked { user_id: user, provider: one.provider })?;
    }
    Ok(())
}
