//! `/account/me/passkeys` and `/account/me/mfa`: what one signs in with beside a password.

use kernel::{AppId, Code, Error, Result, Timestamp, UserId};
use schemars::JsonSchema;
use serde::Serialize;
use store::Tx;
use tenancy::{
    Tenancy,
    callers::{AnyMember, BearerCaller},
    people,
};
use web::{Json, Page, Params, Path, Routes, State, Success};

use super::{BOUNDED, ELSEWHERE, FRESH, TAG};
use crate::{
    Identity, announcements,
    facts::FactorChange,
    federation,
    login::{credentials, own},
    mfa::{self, SecondFactor, store::passkeys},
    proof::MfaMethod,
};

pub(super) fn routes() -> Routes<Identity> {
    Routes::new(TAG)
        .all_answer(&[(403, BOUNDED)])
        .get("/account/me/passkeys", list, "List your passkeys")
        .answers(403, ELSEWHERE)
        .delete("/account/me/passkeys/{passkey_id}", remove, "Remove one of your passkeys")
        .answers(401, FRESH)
        .answers(404, "There is no such passkey of yours")
        .answers(409, "It is the last way for you to sign in")
        .get("/account/me/mfa", get, "Get your second factor")
        .answers(403, ELSEWHERE)
        .delete("/account/me/mfa", turn_off, "Turn your second factor off")
        .description("A workspace that requires one asks for a new one at the next sign-in. Passkeys stay.")
        .answers(401, FRESH)
}

/// A passkey as its owner sees it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OwnPasskey {
    id: String,
    /// The host whose pages it works on.
    host: String,
    created_at: Timestamp,
    last_used_at: Option<Timestamp>,
}

async fn list(
    caller: BearerCaller<AnyMember>,
    State(identity): State<Identity>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<OwnPasskey>>> {
    let listed = identity.tenancy.db.read(move |tx| {
        own::homely_login(tx, &caller.0)?;
        passkeys::list(tx, caller.0.app(), caller.0.user())
    });
    let view = |(id, host, created_at, last_used_at)| OwnPasskey { id, host, created_at, last_used_at };
    Ok(Json(page.of(listed.await?.into_iter().map(view))))
}

async fn remove(
    caller: BearerCaller<AnyMember>,
    State(identity): State<Identity>,
    Path(id): Path<String>,
) -> Result<Success> {
    let (by, tenancy) = (identity.tenancy.db.by(&caller.0), identity.tenancy);
    let removed = by.write(move |tx| {
        own::fresh_login(tx, &caller.0)?;
        remove_passkey(tx, &tenancy, caller.0.app(), caller.0.user(), &id)
    });
    removed.await?;
    Ok(Success)
}

fn remove_passkey(tx: &mut Tx<'_>, tenancy: &Tenancy, app: AppId, user: UserId, id: &str) -> Result<()> {
    people::hold(tx, app, user)?;
    if !passkeys::delete(tx, app, user, id)? {
        return Err(Error::not_found("passkey"));
    }
    let other_ways = passkeys::has_one(tx, app, user)?
        || credentials::has_password(tx, app, user)?
        || federation::identities::has_any(tx, app, user)?;
    if !other_ways {
        let message = "This is your last way to sign in. Set a password or add another passkey first.";
        return Err(Error::new(Code::LastWayIn, message));
    }
    announcements::factor_changed(tx, tenancy, app, user, FactorChange::PasskeyRemoved)
}

/// What a person is asked for beside their password.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OwnFactor {
    /// How codes come; `null` when there is no second factor.
    method: Option<MfaMethod>,
    /// The end of the number that codes are sent to.
    phone_number: Option<String>,
    passkeys: usize,
}

async fn get(caller: BearerCaller<AnyMember>, State(identity): State<Identity>) -> Result<Json<OwnFactor>> {
    let read = identity.tenancy.db.read(move |tx| {
        own::homely_login(tx, &caller.0)?;
        let (app, user) = (caller.0.app(), caller.0.user());
        let (method, phone_number) = match mfa::find_factor(tx, app, user)? {
            None => (None, None),
            Some(SecondFactor::Totp { .. }) => (Some(MfaMethod::Totp), None),
            Some(SecondFactor::Sms { phone }) => (Some(MfaMethod::Sms), Some(ending(&phone))),
        };
        Ok(OwnFactor { method, phone_number, passkeys: passkeys::list(tx, app, user)?.len() })
    });
    Ok(Json(read.await?))
}

/// Enough of a number to recognise one's own.
fn ending(phone: &str) -> String {
    let digits = phone.chars().count();
    format!("…{}", phone.chars().skip(digits.saturating_sub(3)).collect::<String>())
}

async fn turn_off(caller: BearerCaller<AnyMember>, State(identity): State<Identity>) -> Result<Success> {
    let (by, tenancy) = (identity.tenancy.db.by(&caller.0), identity.tenancy);
    let removed = by.write(move |tx| {
        own::fresh_login(tx, &caller.0)?;
        mfa::turn_off(tx, &tenancy, caller.0.app(), caller.0.user())
    });
    removed.await?;
    Ok(Success)
}
