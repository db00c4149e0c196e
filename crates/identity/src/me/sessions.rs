//! `/account/me/sessions`: where one is signed in.

use kernel::{Error, Result, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use store::Tx;
use tenancy::{
    callers::{AnyMember, BearerCaller, SignedIn},
    logins::{self, ListedLogin, LoginId},
};
use web::{Json, Page, Params, Path, Routes, State, Success};

use super::TAG;
use crate::{Identity, browser_sessions, login::own, tokens::refresh_tokens};

/// How many are listed.
const MOST: usize = 100;

pub(super) fn routes() -> Routes<Identity> {
    Routes::new(TAG)
        .get("/account/me/sessions", list, "List where you are signed in")
        .delete("/account/me/sessions/{session_id}", end, "End one of your sessions")
        .description("Signs out the browser that the session began in as well, with everything else that began there.")
        .answers(404, "There is no such session of yours")
}

/// Somewhere where a person is signed in.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnSession {
    /// The `sid` of its tokens.
    pub id: LoginId,
    pub signed_in_at: Timestamp,
    /// When it ends unless it is refreshed before; missing when it cannot be refreshed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Whether more than one factor was shown.
    pub mfa: bool,
    /// Whether it is the one that asks.
    pub current: bool,
}

/// Those that the caller may know of: who came through a workspace's identity provider sees what came through it.
fn seen_by(tx: &mut Tx<'_>, user: &SignedIn) -> Result<(LoginId, Vec<ListedLogin>)> {
    let own = own::login(tx, user)?;
    let mut all = logins::list(tx, user.app(), user.user())?;
    all.retain(|one| own.reach.is_everything() || one.login.reach.connection == own.reach.connection);
    Ok((own.id, all))
}

/// Where a person is signed in, as far as this login of theirs may know.
pub fn all(tx: &mut Tx<'_>, user: &SignedIn) -> Result<Vec<OwnSession>> {
    let (own, all) = seen_by(tx, user)?;
    let ids: Vec<LoginId> = all.iter().map(|one| one.login.id).collect();
    let ends = refresh_tokens::ends(tx, user.app(), &ids)?;
    let is_shown = |one: &&ListedLogin| one.login.id == own || ends.contains_key(&one.login.id);
    let view = |ListedLogin { login, .. }: &ListedLogin| OwnSession {
        id: login.id,
        signed_in_at: login.authenticated_at,
        expires_at: ends.get(&login.id).map(|end| login.reach.bounds(*end)),
        mfa: login.mfa,
        current: login.id == own,
    };
    Ok(all.iter().filter(is_shown).take(MOST).map(view).collect())
}

/// Ends one of them, with the browser that it began in.
pub fn end_one(tx: &mut Tx<'_>, user: &SignedIn, id: LoginId) -> Result<()> {
    let (_, all) = seen_by(tx, user)?;
    let one = all.iter().find(|one| one.login.id == id).ok_or_else(|| Error::not_found("session"))?;
    logins::revoke(tx, user.app(), id)?;
    match one.browser {
        Some(browser) => browser_sessions::end_one(tx, user.app(), browser),
        None => Ok(()),
    }
}

async fn list(
    caller: BearerCaller<AnyMember>,
    State(identity): State<Identity>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<OwnSession>>> {
    Ok(Json(page.of(identity.tenancy.db.read(move |tx| all(tx, &caller.0)).await?)))
}

async fn end(
    caller: BearerCaller<AnyMember>,
    State(identity): State<Identity>,
    Path(id): Path<LoginId>,
) -> Result<Success> {
    identity.tenancy.db.by(&caller.0).write(move |tx| end_one(tx, &caller.0, id)).await?;
    Ok(Success)
}
