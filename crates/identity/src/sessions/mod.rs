//! Login sessions: a half-finished login as a short-lived token, with a row for what must not be turned back by presenting
//! an older token. Not an access token: it is exchanged for one, once all factors were presented.

mod store;
mod workspaces;

use std::time::Duration;

use ::store::Tx;
use kernel::{AppId, Result, Timestamp, UserId, id_kinds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenancy::{
    Tenancy,
    logins::{self, Reach},
    standing::{self, Standing},
};

use crate::proof::{Method, MfaMethod, MfaState};
pub use workspaces::{WorkspaceEntry, WorkspaceSummary};

id_kinds! {
    /// A login under way.
    SessionId(Session) = "login";
}

const TYP: &str = "session+jwt";
pub(crate) const LIFETIME: Duration = Duration::from_secs(10 * 60);

/// What the token says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoginClaims {
    pub jti: SessionId,
    pub aid: AppId,
    pub sub: UserId,
    pub mfa: MfaState,
    pub method: Method,
    /// Whether the method alone proved two factors.
    pub strong: bool,
    /// Whether the backup code was used in this login: another factor may be set up.
    #[serde(default)]
    pub backed_up: bool,
    /// Which workspaces the login opens.
    #[serde(default)]
    pub reach: Reach,
    pub exp: i64,
}

impl LoginClaims {
    /// Whether more than one factor was presented.
    pub fn has_two_factors(&self) -> bool {
        self.strong || self.mfa == MfaState::Completed
    }
}

/// What a credential step answers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "LoginSession")]
pub struct SessionAnswer {
    pub session: String,
    /// Unix seconds.
    pub expires: i64,
    pub mfa_state: MfaState,
    /// What the second factor can be proven with, while one is required. `passkey` stands for signing in with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mfa_methods: Vec<MfaMethod>,
    pub tenant_users: Vec<WorkspaceEntry>,
}

/// A session as it was stored, to be signed.
#[derive(Clone, Debug)]
pub struct BegunSession {
    claims: LoginClaims,
    mfa_methods: Vec<MfaMethod>,
    tenant_users: Vec<WorkspaceEntry>,
}

impl BegunSession {
    pub fn id(&self) -> SessionId {
        self.claims.jti
    }

    /// The session, asking for a second factor that can be proven with these.
    #[must_use]
    pub(crate) fn asking_for(self, mfa_methods: Vec<MfaMethod>) -> Self {
        Self { mfa_methods, ..self }
    }

    pub fn sign(self, tenancy: &Tenancy) -> Result<SessionAnswer> {
        Ok(SessionAnswer {
            session: tenancy.keyring.sign_token(TYP, &self.claims)?,
            expires: self.claims.exp,
            mfa_state: self.claims.mfa,
            mfa_methods: self.mfa_methods,
            tenant_users: self.tenant_users,
        })
    }
}

/// What a session starts with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewSession {
    pub(crate) app: AppId,
    pub(crate) user: UserId,
    pub(crate) mfa: MfaState,
    pub(crate) method: Method,
    pub(crate) strong: bool,
    pub(crate) backed_up: bool,
    /// When the first factor was presented.
    pub(crate) authenticated_at: Timestamp,
    pub(crate) reach: Reach,
}

/// Starts a session of somebody with these memberships.
pub(crate) fn start(tx: &mut Tx<'_>, new: &NewSession, standings: &[Standing]) -> Result<BegunSession> {
    let NewSession { app, user, mfa, method, strong, backed_up, authenticated_at, reach } = *new;
    let (jti, expires_at): (SessionId, Timestamp) = (tx.new_id(), reach.bounds(tx.now().plus(LIFETIME)));
    store::insert(tx, app, user, jti, expires_at, authenticated_at)?;
    let exp = expires_at.as_seconds();
    let claims = LoginClaims { jti, aid: app, sub: user, mfa, method, strong, backed_up, reach, exp };
    Ok(BegunSession {
        claims,
        mfa_methods: Vec::new(),
        tenant_users: standings.iter().map(WorkspaceEntry::from).collect(),
    })
}

/// The same login one step further, under a new token; the old one is over.
pub(crate) fn advance(tx: &mut Tx<'_>, session: &LoginClaims, mfa: MfaState) -> Result<BegunSession> {
    let authenticated_at = use_up(tx, session)?;
    let LoginClaims { aid: app, sub: user, method, strong, reach, .. } = *session;
    let standings = standing::of_user(tx, app, user, reach)?;
    // The only way back to a set-up is the backup code.
    let backed_up = session.backed_up || mfa == MfaState::Setup;
    start(tx, &NewSession { app, user, mfa, method, strong, backed_up, authenticated_at, reach }, &standings)
}

/// Ends a session: it can neither be continued nor exchanged. False when it had ended before, also just now.
pub(crate) fn end(tx: &mut Tx<'_>, session: &LoginClaims) -> Result<bool> {
    store::end(tx, session)
}

/// Waits for exchanges of a person's sessions that are under way, and keeps others from beginning until this transaction
/// ends.
pub(crate) fn hold_all(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    store::hold_all(tx, app, user)
}

/// Ends all of a person's sessions.
pub(crate) fn end_all(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    store::end_all(tx, app, user)
}

/// Uses a session up for its next step; when it began.
pub(crate) fn use_up(tx: &mut Tx<'_>, session: &LoginClaims) -> Result<Timestamp> {
    let authenticated_at = check_live(tx, session)?;
    if end(tx, session)? { Ok(authenticated_at) } else { Err(logins::ended()) }
}

/// The claims of a session token that has not expired.
pub(crate) fn verify(tenancy: &Tenancy, token: &str) -> Result<LoginClaims> {
    let claims: LoginClaims = tenancy.keyring.verify_token(token, TYP).map_err(|_| logins::ended())?;
    if claims.exp <= tenancy.db.clock().now().as_seconds() { Err(logins::ended()) } else { Ok(claims) }
}

/// When the session began; 401 when it was ended, or all of the person's sessions were since.
pub(crate) fn check_live(tx: &mut Tx<'_>, session: &LoginClaims) -> Result<Timestamp> {
    store::live(tx, session)?.ok_or_else(logins::ended)
}

/// How often one session is exchanged for tokens: each time a login begins, which leaves rows behind.
const EXCHANGES: i64 = 20;

/// The same for an exchange, and whoever ends all of the person's sessions waits until this transaction has ended: then
/// they end what it began as well.
pub(crate) fn exchange(tx: &mut Tx<'_>, session: &LoginClaims) -> Result<Timestamp> {
    let (begun, exchanges) = store::exchange(tx, session)?.ok_or_else(logins::ended)?;
    if exchanges <= EXCHANGES { Ok(begun) } else { Err(logins::ended()) }
}
