//! Revocation (RFC 7009) and introspection (RFC 7662) of access and refresh tokens. Revoking either ends the login that
//! it belongs to; only a key of the token's own app is told about a token.

use std::{sync::Arc, time::Duration};

use kernel::{Actor, AppId, Code, Error, Result, TenantId, UserId, Words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenancy::{
    Tenancy,
    callers::{AnyKey, AppCaller, SignedIn, admit},
    logins::{self, LoginId},
    standing::{self, Membership},
};
use web::{Empty, Json, Routes, Scope, State, Validate};

use super::{
    oauth::{OauthAnswer, OauthBody, client},
    refresh_tokens, verify_refresh_token,
};
use crate::{
    Identity,
    browser::{ForRequest, Request},
};

pub fn routes() -> Routes<Identity> {
    Routes::new("Tokens")
        .post("/auth/revoke", revoke, "Revoke a token and its session (RFC 7009)")
        .answers(400, "`invalid_request`, or `invalid_grant` for a token of another app")
        .post("/auth/introspect", introspect, "Introspect an access or refresh token (RFC 7662)")
        .answers(400, "`invalid_request`")
        .answers(401, "The API key is missing or not valid")
}

/// The body of `POST /auth/revoke`, as a form or as JSON.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Revocation {
    /// The app's id.
    client_id: Words,
    /// An access token or a refresh token.
    token: Words,
}

impl Validate for Revocation {}

async fn revoke(
    request: Request,
    ForRequest(identity): ForRequest,
    asked: OauthBody<Revocation>,
) -> Result<OauthAnswer<Empty>> {
    asked.answer(async |asked| end_login(&identity.tenancy, &request.scope, &asked).await).await
}

async fn end_login(tenancy: &Tenancy, scope: &Scope, asked: &Revocation) -> Result<Empty> {
    let app = client(tenancy, scope, &asked.client_id)?.id;
    // Tokens tell by themselves of which sort they are, so that `token_type_hint` is not needed.
    let Some((owner, user, login)) = login_of(tenancy, &asked.token) else { return Ok(Empty) };
    if owner != app {
        return Err(Error::credential("The token belongs to another app."));
    }
    let ended = tenancy.db.write(move |tx| {
        tx.acting_as(Actor::user(user));
        logins::revoke(tx, app, login)
    });
    ended.await?;
    Ok(Empty)
}

/// The app, the person and the login of a genuine token that has not expired.
fn login_of(tenancy: &Tenancy, token: &str) -> Option<(AppId, UserId, LoginId)> {
    if let Some(claims) = verify_refresh_token(tenancy, token) {
        return Some((claims.aud, claims.sub, claims.sid));
    }
    let claims = tenancy.access_tokens.verify(token)?;
    tenancy.access_tokens.check(&claims, Duration::ZERO).ok()?;
    Some((claims.aid, claims.sub, claims.sid.parse().ok()?))
}

/// The body of `POST /auth/introspect`, as a form or as JSON.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Introspection {
    /// An access token or a refresh token.
    token: Words,
}

impl Validate for Introspection {}

/// What a token allows now.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum Introspected {
    Active(Box<Active>),
    Inactive(Inactive),
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ActiveLoginToken")]
struct Active {
    #[schemars(extend("const" = true))]
    active: bool,
    /// The privileges that it carries and the member's role still grants.
    scope: String,
    /// The granted OIDC scopes.
    oidc_scope: String,
    client_id: AppId,
    /// `Bearer` for an access token, else `refresh_token`.
    token_type: &'static str,
    username: String,
    iss: String,
    aud: AppId,
    sub: UserId,
    /// The workspace.
    tid: TenantId,
    role: String,
    /// The login.
    sid: String,
    iat: i64,
    exp: i64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "InactiveLoginToken", deny_unknown_fields)]
struct Inactive {
    #[schemars(extend("const" = false))]
    active: bool,
}

async fn introspect(
    caller: AppCaller<AnyKey>,
    State(identity): State<Identity>,
    asked: OauthBody<Introspection>,
) -> Result<OauthAnswer<Json<Introspected>>> {
    let (tenancy, app) = (&identity.tenancy, caller.app_id());
    let worth = async |asked: Introspection| match look_up(tenancy, &caller.scope, app, &asked.token).await {
        Ok(active) => Ok(Json(Introspected::Active(Box::new(active)))),
        Err(error) if error.code() == Code::InvalidCredential => {
            Ok(Json(Introspected::Inactive(Inactive { active: false })))
        }
        Err(error) => Err(error),
    };
    asked.answer(worth).await
}

/// 401 for whatever is not worth anything to this app.
async fn look_up(tenancy: &Tenancy, scope: &Arc<Scope>, app: AppId, token: &str) -> Result<Active> {
    match tenancy.access_tokens.verify(token) {
        Some(claims) if claims.aid == app => Ok(of_access_token(admit(tenancy, scope, claims, Duration::ZERO).await?)),
        Some(_) => Err(logins::ended()),
        None => of_refresh_token(tenancy, app, token).await,
    }
}

fn of_access_token(user: SignedIn) -> Active {
    let SignedIn { claims, membership, privileges, .. } = user;
    let scopes = (privileges.join(" "), claims.oidc_scope.clone());
    let login = (claims.iss.clone(), claims.sid.clone());
    Active::new(claims.aid, "Bearer", (claims.sub, claims.tid), membership, login, scopes, (claims.iat, claims.exp))
}

/// One that was used is not told to be active, although it gets successors for a moment.
async fn of_refresh_token(tenancy: &Tenancy, app: AppId, token: &str) -> Result<Active> {
    let claims = verify_refresh_token(tenancy, token).filter(|claims| claims.aud == app).ok_or_else(logins::ended)?;
    let (id, login) = (claims.jti, claims.sid);
    let (record, standing) = tenancy
        .db
        .read(move |tx| {
            let record = refresh_tokens::find_unused(tx, app, id)?;
            let live = standing::of_login(tx, app, login, record.member)?;
            let (_, standing) = live.ok_or_else(logins::ended)?;
            Ok((record, standing))
        })
        .await?;
    let scopes = (record.granted.of_role(&standing.privileges).join(" "), record.granted.oidc_text());
    let (login, times) = ((claims.iss, claims.sid.to_string()), (claims.iat, claims.exp));
    let who = (standing.user, standing.tenant);
    Ok(Active::new(app, "refresh_token", who, Membership::from(&standing), login, scopes, times))
}

impl Active {
    fn new(
        app: AppId,
        token_type: &'static str,
        (sub, tid): (UserId, TenantId),
        membership: Membership,
        (iss, sid): (String, String),
        (scope, oidc_scope): (String, String),
        (iat, exp): (i64, i64),
    ) -> Self {
        let Membership { email: username, role, .. } = membership;
        Self {
            active: true,
            scope,
            oidc_scope,
            client_id: app,
            token_type,
            username,
            iss,
            aud: app,
            sub,
            tid,
            role,
            sid,
            iat,
            exp,
        }
    }
}
