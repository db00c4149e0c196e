//! Token sets: an access token for one workspace, an ID token and a refresh token, all signed with PS256. What they say
//! is read each time; whether they may be issued at all, too.

mod claims;
pub mod codes;
pub mod direct;
pub mod discovery;
mod from_session;
pub mod http;
mod oauth;
#[cfg(test)]
mod properties;
pub mod refresh_tokens;
mod scope;
pub mod standard;
mod store;

use std::time::Duration;

use ::store::Tx;
use kernel::{Actor, AppId, Code, Error, MemberId, Result, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use tenancy::{
    App, Tenancy,
    callers::{ACCESS_TOKEN, AccessClaims, SignedIn},
    credentials,
    logins::{self, Login, Reach},
    members, people, roles,
    standing::{self, Standing},
};

pub use claims::{About, IdToken};
pub(crate) use from_session::{choose, from_session};
pub use oauth::TokenRequest;
pub(crate) use oauth::unstored;
pub use refresh_tokens::RefreshId;
pub use scope::{DEFAULT_SCOPE, Granted, OIDC_SCOPES, ScopeRequest};

use crate::{announcements, sessions::WorkspaceEntry};
use claims::{AccessToken, RefreshToken};
use refresh_tokens::{RefreshOutcome, RefreshRecord};

/// The `typ` of refresh tokens.
const REFRESH_TOKEN: &str = "refresh+jwt";
const ID_TOKEN: &str = "JWT";

/// What a client gets.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TokenSet {
    pub access_token: String,
    pub refresh_token: String,
    /// Always `Bearer`.
    pub token_type: &'static str,
    /// Seconds until the access token expires.
    pub expires_in: u32,
    pub id_token: String,
}

/// A token set with the ID token's content.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TokenSetWithProfile {
    #[serde(flatten)]
    pub tokens: TokenSet,
    pub user_profile: IdToken,
}

/// All that goes into a token set, settled in a transaction and signed after it.
#[derive(Clone, Debug)]
pub struct Prepared {
    standing: Standing,
    login: Login,
    granted: Granted,
    nonce: Option<String>,
    access_ttl: u32,
    should_setup_payments: bool,
    app: kernel::AppId,
    refresh_id: RefreshId,
    refresh_expires_at: Timestamp,
    now: Timestamp,
}

/// Adds a refresh token to the login and notes that the member was seen.
pub fn prepare(
    tx: &mut Tx<'_>,
    app: &App,
    login: Login,
    mut standing: Standing,
    granted: Granted,
    nonce: Option<String>,
) -> Result<Prepared> {
    let (refresh_id, expires_at) = refresh_tokens::add(tx, app, login.id, standing.member, &granted)?;
    let refresh_expires_at = login.reach.bounds(expires_at);
    members::seen(tx, app.id, &standing)?;
    if come_by_themselves(tx, app, login.reach, &standing)? {
        standing.vouched = false;
    }
    let access_ttl = app.profile.access_token_ttl;
    let (app, now) = (app.id, tx.now());
    let should_setup_payments = standing.lacks_payment_method && credentials::has_payprovider(tx, app)?;
    Ok(Prepared {
        standing,
        login,
        granted,
        nonce,
        access_ttl,
        should_setup_payments,
        app,
        refresh_id,
        refresh_expires_at,
        now,
    })
}

/// Notes that somebody has chosen the workspace in a login of their own: from now on they belong to it by more than an identity
/// provider's word, and it has a say in what their logins ask for. Also when this one falls short of a second factor, because the next
/// one asks for it then. Whether that was new.
pub(crate) fn come_by_themselves(tx: &mut Tx<'_>, app: &App, reach: Reach, standing: &Standing) -> Result<bool> {
    let is_new = standing.vouched && reach.is_everything();
    if is_new {
        members::confirm(tx, app.id, standing.member)?;
    }
    Ok(is_new)
}

impl Prepared {
    /// Three signatures: about a millisecond of CPU, and no transaction is kept waiting for it.
    pub fn sign(self, tenancy: &Tenancy) -> Result<TokenSetWithProfile> {
        let Self { standing, login, granted, nonce, access_ttl, app, now, .. } = self;
        let (iat, auth_time) = (now.as_seconds(), login.authenticated_at.as_seconds());
        let exp = login.reach.bounds(now.plus(Duration::from_secs(access_ttl.into()))).as_seconds();
        let keys = &tenancy.signing_keys;
        let access = AccessToken {
            iss: &tenancy.issuer,
            aud: app,
            sub: standing.user,
            aid: app,
            tid: standing.tenant,
            jti: tenancy.db.entropy().base62(22),
            sid: login.id,
            iat,
            exp,
            auth_time,
            scope: granted.of_role(&standing.privileges).join(" "),
            scope_narrowed: granted.privileges.is_some(),
            oidc_scope: granted.oidc_text(),
            role: &standing.role,
            plan: standing.plan.as_deref(),
            trial: standing.trial,
            should_select_plan: standing.should_select_plan,
            should_setup_payments: self.should_setup_payments,
            email: &standing.email,
        };
        let refresh = RefreshToken {
            iss: tenancy.issuer.to_string(),
            aud: app,
            sub: standing.user,
            jti: self.refresh_id,
            sid: login.id,
            iat,
            exp: self.refresh_expires_at.as_seconds(),
        };
        let about = about(tenancy, app, &standing, &granted);
        let iss = tenancy.issuer.to_string();
        let user_profile = IdToken { about, iss, aud: app, iat, exp, auth_time, sid: login.id.to_string(), nonce };
        let tokens = TokenSet {
            access_token: keys.sign(ACCESS_TOKEN, &access)?,
            refresh_token: keys.sign(REFRESH_TOKEN, &refresh)?,
            token_type: "Bearer",
            expires_in: u32::try_from(exp - iat).unwrap_or(0),
            id_token: keys.sign(ID_TOKEN, &user_profile)?,
        };
        Ok(TokenSetWithProfile { tokens, user_profile })
    }
}

/// What an ID token of ours says, expired or not.
pub(crate) fn verify_id_token<C: serde::de::DeserializeOwned>(tenancy: &Tenancy, token: &str) -> Option<C> {
    tenancy.signing_keys.verify(token, ID_TOKEN).ok()
}

/// An ID token by itself, for apps that need no other.
pub(crate) fn sign_id_token(tenancy: &Tenancy, claims: &IdToken) -> Result<String> {
    tenancy.signing_keys.sign(ID_TOKEN, claims)
}

/// The member as of now, if the login's person is still one.
fn admitted(tx: &mut Tx<'_>, app: &App, login: &Login, member: MemberId) -> Result<Standing> {
    let standing = standing::find(tx, app.id, member, login.reach)?.filter(|standing| standing.user == login.user);
    standing.ok_or_else(logins::ended)
}

/// 400 unless every word is an OIDC name or a privilege of the app.
pub fn check_scope(tx: &mut Tx<'_>, app: &App, asked: &ScopeRequest) -> Result<()> {
    if asked.privileges.is_empty() {
        return Ok(());
    }
    let defined = roles::defined_privileges(tx, app.id)?;
    asked.check(|word| defined.iter().any(|privilege| privilege.key == word))
}

/// 401 when the workspace asks for a second factor and the login showed only one.
pub fn check_factors(app: &App, standing: &Standing, mfa: bool) -> Result<()> {
    if mfa || !(app.profile.mfa_enabled || standing.tenant_mfa) {
        return Ok(());
    }
    Err(Error::new(Code::MfaRequired, "This workspace requires two-step verification. Sign in again to complete it."))
}

/// 401 where members come in through the workspace's identity provider only, and this login did not. An OWNER may: somebody has to be
/// able to mend the connection.
pub fn check_way_in(standing: &Standing, reach: Reach) -> Result<()> {
    if !standing.sso_required || !reach.is_everything() || standing.role == roles::OWNER {
        return Ok(());
    }
    let message = "This workspace is opened through its identity provider. Sign in there.";
    Err(Error::new(Code::SsoRequired, message))
}

/// Exchanges a code.
pub async fn from_code(tenancy: &Tenancy, app: &App, shown: codes::PresentedCode) -> Result<TokenSetWithProfile> {
    let owned = app.clone();
    let exchanged = tenancy.db.write(move |tx| {
        let Some(exchanged) = codes::exchange(tx, &owned, &shown)? else { return Ok(None) };
        let standing = admitted(tx, &owned, &exchanged.login, exchanged.member)?;
        let login = exchanged.login;
        check_factors(&owned, &standing, login.mfa)?;
        check_way_in(&standing, login.reach)?;
        let sid = login.id.to_string();
        announcements::login_succeeded(tx, &owned, &sid, &standing, exchanged.method, login.mfa, login.reach)?;
        prepare(tx, &owned, login, standing, exchanged.granted, exchanged.nonce).map(Some)
    });
    exchanged.await?.ok_or_else(codes::refused)?.sign(tenancy)
}

/// Uses a refresh token up for new tokens.
pub async fn from_refresh_token(
    tenancy: &Tenancy,
    app: &App,
    token: &str,
    asked: Option<&str>,
) -> Result<TokenSetWithProfile> {
    let shown = verify_refresh_token(tenancy, token).filter(|shown| shown.aud == app.id).ok_or_else(logins::ended)?;
    let (owned, asked) = (app.clone(), ScopeRequest::parse(asked.unwrap_or_default()));
    let refreshed = tenancy.db.write(move |tx| {
        check_scope(tx, &owned, &asked)?;
        let RefreshRecord { login, member, granted, .. } =
            match refresh_tokens::rotate(tx, owned.id, shown.jti, shown.sid)? {
                RefreshOutcome::Good(record) => record,
                RefreshOutcome::Reused => return Ok(None),
            };
        let (login, standing) = standing::of_login(tx, owned.id, login, member)?.ok_or_else(logins::ended)?;
        if let Err(closed) = check_way_in(&standing, login.reach) {
            // The login is over, also should the workspace let others in again. Must be committed, so this is not an error yet.
            logins::revoke(tx, owned.id, login.id)?;
            return Ok(Some(Err(closed)));
        }
        prepare(tx, &owned, login, standing, granted.narrowed(&asked), None).map(|prepared| Some(Ok(prepared)))
    });
    refreshed.await?.ok_or_else(logins::ended)??.sign(tenancy)
}

/// The claims of a refresh token of this service that has not expired.
fn verify_refresh_token(tenancy: &Tenancy, token: &str) -> Option<RefreshToken> {
    let claims: RefreshToken = tenancy.signing_keys.verify(token, REFRESH_TOKEN).ok()?;
    let now = tenancy.db.clock().now().as_seconds();
    (claims.iss == *tenancy.issuer && claims.exp > now).then_some(claims)
}

/// New tokens for whoever shows an access token: the same workspace, or another one of the same person. Stays in the
/// login, and never outlives it.
pub async fn from_access_token(
    tenancy: &Tenancy,
    user: SignedIn,
    to: Option<MemberId>,
    asked: ScopeRequest,
) -> Result<TokenSetWithProfile> {
    let app = tenancy.apps.find(user.app()).await?.ok_or_else(logins::ended)?;
    let prepared = tenancy.db.write(move |tx| {
        check_scope(tx, &app, &asked)?;
        let (login, member) = (user.claims.sid.parse().map_err(|_| logins::ended())?, to.unwrap_or(user.member()));
        if to.is_some() {
            // Whoever ends the sign-ins of that membership looks for its tokens.
            people::hold(tx, app.id, user.user())?;
        }
        let (login, standing) = standing::of_login(tx, app.id, login, member)?.ok_or_else(logins::ended)?;
        let lifetime = Duration::from_secs(app.profile.refresh_token_ttl.into());
        let is_over = login.authenticated_at.plus(lifetime) <= tx.now();
        let is_elsewhere = member != user.member();
        // To go elsewhere takes no more than a login that refresh tokens keep alive.
        if is_over && (!is_elsewhere || refresh_tokens::ends(tx, app.id, &[login.id])?.is_empty()) {
            return Err(logins::ended());
        }
        if let Err(closed) = check_way_in(&standing, login.reach) {
            if to.is_none() {
                // As with a refresh token. The choice of another workspace ends nothing.
                logins::revoke(tx, app.id, login.id)?;
            }
            return Ok(Err(closed));
        }
        if to.is_some()
            && let Err(wanting) = check_factors(&app, &standing, login.mfa)
        {
            come_by_themselves(tx, &app, login.reach, &standing)?;
            return Ok(Err(wanting));
        }
        if is_elsewhere {
            tx.acting_as(Actor::user(standing.user));
            announcements::sso_bypassed(tx, app.id, &standing, None, login.reach)?;
        }
        let granted = Granted::of(&user.claims).narrowed(&asked);
        prepare(tx, &app, login, standing, granted, None).map(Ok)
    });
    prepared.await??.sign(tenancy)
}

/// The workspaces that the person may switch to.
pub async fn workspaces_of(tenancy: &Tenancy, user: SignedIn) -> Result<Vec<WorkspaceEntry>> {
    let listed = tenancy.db.read(move |tx| {
        let login = user.claims.sid.parse().map_err(|_| logins::ended())?;
        let reach = logins::live(tx, user.app(), login)?.reach;
        standing::of_user(tx, user.app(), user.user(), reach)
    });
    let standings = listed.await?;
    Ok(standings.iter().map(WorkspaceEntry::from).collect())
}

/// Ends the login that a refresh token belongs to, or all of the person's. A token that is not valid changes nothing.
pub async fn revoke(tenancy: &Tenancy, token: &str, everywhere: bool) -> Result<()> {
    let Some(shown) = verify_refresh_token(tenancy, token) else { return Ok(()) };
    let revoked = tenancy.db.write(move |tx| {
        // Whoever stole a token that is long over may not sign the person out everywhere.
        let live = match logins::live(tx, shown.aud, shown.sid) {
            Ok(login) => Some(login),
            Err(error) if error.code() == Code::InvalidCredential => None,
            Err(error) => return Err(error),
        };
        tx.acting_as(Actor::user(shown.sub));
        // Nor may whoever has one that was used up long ago.
        let current = live.is_some() && everywhere && refresh_tokens::is_current(tx, shown.aud, shown.jti)?;
        logins::revoke(tx, shown.aud, shown.sid)?;
        match live.filter(|_| current).map(|login| login.reach.connection) {
            None => Ok(()),
            Some(None) => people::end_sessions(tx, shown.aud, shown.sub),
            // What an identity provider began ends there, and nowhere else.
            Some(Some(connection)) => logins::revoke_of_connection(tx, shown.aud, shown.sub, connection),
        }
    });
    revoked.await
}

/// What `userinfo` tells.
pub fn about_user(tenancy: &Tenancy, claims: &AccessClaims, standing: &Standing) -> About {
    about(tenancy, claims.aid, standing, &Granted::read(&claims.oidc_scope, None))
}

/// What is told of a member, as far as that was granted.
pub(crate) fn about(tenancy: &Tenancy, app: AppId, standing: &Standing, granted: &Granted) -> About {
    let app = tenancy.apps.get(app);
    // Whoever belongs here on an identity provider's word alone is known by their address, to that provider too.
    let nothing = String::new;
    let reserved = standing.vouched.then(|| Standing {
        first_name: nothing(),
        last_name: nothing(),
        phone_number: None,
        email_verified: false,
        ..standing.clone()
    });
    About::new(
        reserved.as_ref().unwrap_or(standing),
        granted,
        app.as_ref().map_or(&[], |app| &app.profile.user_parameters),
    )
}
