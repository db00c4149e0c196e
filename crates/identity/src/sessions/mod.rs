//! Login sessions: a half-finished login as a short-lived token, with a row for what must not be turned back by showing
//! an older token. Not an access token: it is exchanged for one, once all factors were shown.

pub mod http;

use std::time::Duration;

use kernel::{Actor, AppId, Code, Error, MemberId, Result, Timestamp, UserId, id_kinds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spine::emit;
use store::{FromRow, Row, Tx, args};
use tenancy::{
    App, Tenancy, logins, sessions_not_ended,
    standing::{self, Standing},
};

use crate::{
    Identity,
    facts::{FailureReason, LoginFailed, LoginSucceeded},
    mfa,
    tokens::{self, Granted, ScopeRequest, TokenSetWithProfile, WorkspaceEntry},
};

id_kinds! {
    /// A login under way.
    SessionId(Session) = "login";
}

const TYP: &str = "session+jwt";
pub(crate) const LIFETIME: Duration = Duration::from_secs(10 * 60);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum MfaState {
    /// No second factor is asked for.
    Disabled,
    /// A code is wanted before tokens are issued.
    Required,
    /// A factor has to be set up first.
    Setup,
    /// The second factor was shown.
    Completed,
}

/// How somebody proved who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "LoginMethod")]
pub enum Method {
    Password,
    Link,
    Passkey,
}

impl Method {
    /// As it is stored.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::Link => "link",
            Self::Passkey => "passkey",
        }
    }

    pub(crate) fn read(name: &str) -> Result<Self> {
        let known = [Self::Password, Self::Link, Self::Passkey].into_iter().find(|method| method.name() == name);
        known.ok_or_else(|| Error::internal(format!("no way to sign in is called {name}")))
    }
}

/// What the token says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoginClaims {
    pub jti: SessionId,
    pub aid: AppId,
    pub sub: UserId,
    pub mfa: MfaState,
    pub method: Method,
    /// Whether the method alone showed two factors.
    pub strong: bool,
    pub exp: i64,
}

impl LoginClaims {
    /// Whether more than one factor was shown.
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
    pub tenant_users: Vec<WorkspaceEntry>,
}

/// A session as it was stored, to be signed.
#[derive(Clone, Debug)]
pub struct BegunSession {
    claims: LoginClaims,
    tenant_users: Vec<WorkspaceEntry>,
}

impl BegunSession {
    pub fn sign(self, tenancy: &Tenancy) -> Result<SessionAnswer> {
        Ok(SessionAnswer {
            session: tenancy.keyring.sign_token(TYP, &self.claims)?,
            expires: self.claims.exp,
            mfa_state: self.claims.mfa,
            tenant_users: self.tenant_users,
        })
    }
}

/// Begins a session for a person who has shown a first factor; sends a code when one is wanted by SMS. Somebody who may
/// sign in nowhere is refused like somebody unknown.
pub fn begin(
    tx: &mut Tx<'_>,
    identity: &Identity,
    app: &App,
    user: UserId,
    method: Method,
    strong: bool,
) -> Result<BegunSession> {
    try_begin(tx, identity, app, user, method, strong)?.ok_or_else(wrong_credentials)
}

/// The same; `None` for somebody who may sign in nowhere.
pub(crate) fn try_begin(
    tx: &mut Tx<'_>,
    identity: &Identity,
    app: &App,
    user: UserId,
    method: Method,
    strong: bool,
) -> Result<Option<BegunSession>> {
    let standings = standing::of_user(tx, app.id, user)?;
    if standings.is_empty() {
        return Ok(None);
    }
    let factor = mfa::find_factor(tx, app.id, user)?;
    let asked_for = app.profile.mfa_enabled || standings.iter().any(|standing| standing.tenant_mfa) || factor.is_some();
    let state = match (strong, asked_for, &factor) {
        (true, ..) | (_, false, _) => MfaState::Disabled,
        (_, true, None) => MfaState::Setup,
        (_, true, Some(_)) => MfaState::Required,
    };
    let start = Start { app: app.id, user, mfa: state, method, strong, authenticated_at: tx.now() };
    let begun = insert(tx, &start, &standings)?;
    if let (MfaState::Required, Some(factor)) = (state, &factor) {
        mfa::send_code(tx, identity, app, begun.claims.jti, factor)?;
    }
    Ok(Some(begun))
}

/// Goes on from an earlier login that showed one factor, to show the second; `None` when there is none to show: setting
/// one up takes a first factor that was shown just now.
pub(crate) fn step_up(
    tx: &mut Tx<'_>,
    identity: &Identity,
    app: &App,
    user: UserId,
    method: Method,
    authenticated_at: Timestamp,
) -> Result<Option<BegunSession>> {
    let Some(factor) = mfa::find_factor(tx, app.id, user)? else { return Ok(None) };
    let standings = standing::of_user(tx, app.id, user)?;
    let start = Start { app: app.id, user, mfa: MfaState::Required, method, strong: false, authenticated_at };
    let begun = insert(tx, &start, &standings)?;
    mfa::send_code(tx, identity, app, begun.claims.jti, &factor)?;
    Ok(Some(begun))
}

/// The same login one step further, under a new token; the old one is over.
pub fn advance(tx: &mut Tx<'_>, session: &LoginClaims, state: MfaState) -> Result<BegunSession> {
    let authenticated_at = use_up(tx, session)?;
    let standings = standing::of_user(tx, session.aid, session.sub)?;
    let LoginClaims { aid: app, sub: user, method, strong, .. } = *session;
    insert(tx, &Start { app, user, mfa: state, method, strong, authenticated_at }, &standings)
}

/// What a new session starts with.
struct Start {
    app: AppId,
    user: UserId,
    mfa: MfaState,
    method: Method,
    strong: bool,
    /// When the first factor was shown.
    authenticated_at: Timestamp,
}

fn insert(tx: &mut Tx<'_>, start: &Start, standings: &[Standing]) -> Result<BegunSession> {
    let Start { app, user, mfa, method, strong, authenticated_at } = *start;
    let (jti, expires_at): (SessionId, Timestamp) = (tx.new_id(), tx.now().plus(LIFETIME));
    tx.exec(
        "INSERT INTO login_sessions (id, app_id, user_id, wrong_codes, expires_at, created_at) \
         VALUES ($1, $2, $3, 0, $4, $5)",
        &args![jti, app, user, expires_at, authenticated_at],
    )?;
    let claims = LoginClaims { jti, aid: app, sub: user, mfa, method, strong, exp: expires_at.as_seconds() };
    Ok(BegunSession { claims, tenant_users: standings.iter().map(WorkspaceEntry::from).collect() })
}

/// Ends a session: it can neither be continued nor exchanged. False when it had ended before, also just now.
pub fn end(tx: &mut Tx<'_>, session: &LoginClaims) -> Result<bool> {
    let ended = tx.exec(
        "UPDATE login_sessions SET ended_at = $3 WHERE app_id = $1 AND id = $2 AND ended_at IS NULL",
        &args![session.aid, session.jti, tx.now()],
    )?;
    Ok(ended == 1)
}

/// Uses a session up for its next step; when it began.
pub(crate) fn use_up(tx: &mut Tx<'_>, session: &LoginClaims) -> Result<Timestamp> {
    let authenticated_at = check_live(tx, session)?;
    if end(tx, session)? { Ok(authenticated_at) } else { Err(over()) }
}

/// Ends all of a person's logins that are under way or led to tokens: those too that began while this transaction
/// waited for them, which a comparison of times would miss.
pub(crate) fn end_all(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    logins::revoke_all(tx, app, user)?;
    for statement in [
        "UPDATE login_sessions SET ended_at = $3 WHERE app_id = $1 AND user_id = $2 AND ended_at IS NULL",
        "UPDATE browser_sessions SET ended_at = $3 WHERE app_id = $1 AND user_id = $2 AND ended_at IS NULL",
        "UPDATE authorization_codes SET used_at = $3 WHERE app_id = $1 AND user_id = $2 AND used_at IS NULL",
    ] {
        tx.exec(statement, &args![app, user, tx.now()])?;
    }
    Ok(())
}

/// The claims of a session token that has not expired.
pub fn verify(tenancy: &Tenancy, token: &str) -> Result<LoginClaims> {
    let claims: LoginClaims = tenancy.keyring.verify_token(token, TYP).map_err(|_| over())?;
    if claims.exp <= tenancy.db.clock().now().as_seconds() { Err(over()) } else { Ok(claims) }
}

struct Begin(Timestamp);

impl FromRow for Begin {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self(row.get("created_at")?))
    }
}

/// When the session began; 401 when it was ended, or all of the person's sessions were since.
pub fn check_live(tx: &mut Tx<'_>, session: &LoginClaims) -> Result<Timestamp> {
    let begin: Option<Begin> = tx.opt(
        concat!(
            "SELECT created_at FROM login_sessions WHERE app_id = $1 AND id = $2 AND user_id = $3 ",
            "AND ended_at IS NULL AND expires_at > $4 AND ",
            sessions_not_ended!("login_sessions.user_id", "login_sessions.created_at")
        ),
        &args![session.aid, session.jti, session.sub, tx.now()],
    )?;
    begin.map(|Begin(at)| at).ok_or_else(over)
}

/// The same, and whoever ends all of the person's sessions waits until this transaction has ended: then they end what
/// it began as well.
fn hold_live(tx: &mut Tx<'_>, session: &LoginClaims) -> Result<Timestamp> {
    let begin: Option<Begin> = tx.opt(
        concat!(
            "UPDATE login_sessions SET wrong_codes = wrong_codes WHERE app_id = $1 AND id = $2 AND user_id = $3 ",
            "AND ended_at IS NULL AND expires_at > $4 AND ",
            sessions_not_ended!("login_sessions.user_id", "login_sessions.created_at"),
            " RETURNING created_at"
        ),
        &args![session.aid, session.jti, session.sub, tx.now()],
    )?;
    begin.map(|Begin(at)| at).ok_or_else(over)
}

/// Exchanges a session for tokens of one of its workspaces.
pub async fn exchange(
    identity: &Identity,
    app: &App,
    session: LoginClaims,
    member: Option<MemberId>,
    asked: ScopeRequest,
) -> Result<TokenSetWithProfile> {
    if !matches!(session.mfa, MfaState::Completed | MfaState::Disabled) {
        return Err(Error::new(Code::MfaRequired, "Complete two-step verification before you request tokens."));
    }
    let app = app.clone();
    let prepared = identity.tenancy.db.write(move |tx| {
        let authenticated_at = hold_live(tx, &session)?;
        tokens::check_scope(tx, &app, &asked)?;
        let standing = choose(standing::of_user(tx, app.id, session.sub)?, member)?;
        tokens::check_factors(&app, &standing, session.has_two_factors())?;
        let login = logins::start(tx, &app, session.sub, session.has_two_factors(), authenticated_at, None)?;
        announce(tx, &app, &login.id.to_string(), &standing, session.method, login.mfa)?;
        tokens::prepare(tx, &app, login, standing, Granted::everything().narrowed(&asked), None)
    });
    prepared.await?.sign(&identity.tenancy)
}

/// The only workspace need not be named.
pub(crate) fn choose(standings: Vec<Standing>, member: Option<MemberId>) -> Result<Standing> {
    let count = standings.len();
    let mut fitting = standings.into_iter().filter(|standing| member.is_none_or(|member| standing.member == member));
    match (member, count, fitting.next()) {
        (Some(_), _, Some(standing)) | (None, 1, Some(standing)) => Ok(standing),
        (None, 2.., _) => {
            Err(Error::invalid("tenantUserId", "is required, because the user belongs to several workspaces"))
        }
        _ => Err(Error::credential("This user is not a member of that workspace.")),
    }
}

/// Tells of a login that led to a token. `sid` is what the token calls it.
pub(crate) fn announce(
    tx: &mut Tx<'_>,
    app: &App,
    sid: &str,
    standing: &Standing,
    method: Method,
    mfa: bool,
) -> Result<()> {
    tx.acting_as(Actor::user(standing.user));
    let told = LoginSucceeded {
        user_id: standing.user,
        tenant_user_id: standing.member,
        workspace_id: standing.tenant,
        email: standing.email.clone(),
        session_id: sid.to_owned(),
        method,
        mfa,
    };
    emit(tx, (app.id, standing.tenant), &told)
}

/// Tells of a failure. `user` is `None` for an account that does not exist, whose name is nobody's business.
pub fn announce_failure(tx: &mut Tx<'_>, app: AppId, user: Option<UserId>, reason: FailureReason) -> Result<()> {
    emit(tx, app, &LoginFailed { user_id: user, reason })
}

pub fn wrong_credentials() -> Error {
    Error::credential("Incorrect user name or password.")
}

pub fn over() -> Error {
    Error::credential("Session expired. Sign in again.")
}
