//! From a shown credential to the app: the second factor, the workspace, and at last the answer that the app waits for.

use std::time::Duration;

use kernel::{Code, Error, MemberId, Result, UserId};
use store::Tx;
use tenancy::{
    App, federation,
    logins::{self, BrowserSessionId, Reach},
    people,
    standing::{self, Standing},
};

use super::{Reply, Visit, cookies::Cookie, invitation, known_browser, paths};
use crate::{
    Identity, announcements,
    authorize::{AuthorizationRequest, LoginRequest, ResponseType},
    browser_sessions::{self, BrowserSession, BrowserSignIn},
    login::{self, FirstFactor},
    proof::{Method, MfaState},
    sessions::{self, BegunSession, LoginClaims, SessionAnswer},
    tokens::{self, Granted, IdToken, codes},
};

/// What shows who somebody is.
#[derive(Clone, Debug)]
pub(crate) enum SignInProof {
    /// A login under way that has shown all it has to.
    Login(LoginClaims),
    /// The cookie of a browser that is signed in.
    Browser(String),
}

/// Leads on from a credential that was shown: to the second factor, the choice of a workspace, or back to the app.
pub(crate) async fn go_on(visit: &Visit, session: SessionAnswer) -> Result<Reply> {
    match session.mfa_state {
        MfaState::Required | MfaState::Setup => ask_factor(visit, &session),
        MfaState::Disabled | MfaState::Completed => {
            if let Some(token) = &visit.request.invitation {
                return Ok(Reply::see(invitation::path(token)).with_cookie(login_cookie(visit, &session)));
            }
            let claims = sessions::verify(&visit.identity.tenancy, &session.session)?;
            match session.tenant_users.as_slice() {
                [only] => finish(visit, SignInProof::Login(claims), Some(only.id)).await,
                _ => Ok(Reply::see(visit.path(paths::WORKSPACE)?).with_cookie(login_cookie(visit, &session))),
            }
        }
    }
}

/// Leads on from a login that has shown all it has to and stands in the browser's cookie.
pub(super) async fn resume(visit: &Visit, claims: LoginClaims) -> Result<Reply> {
    if let Some(token) = &visit.request.invitation {
        return Ok(Reply::see(invitation::path(token)));
    }
    let (app, user, reach) = (visit.app.id, claims.sub, claims.reach);
    let standings = visit.identity.tenancy.db.read(move |tx| standing::of_user(tx, app, user, reach)).await?;
    match standings.as_slice() {
        [only] => finish(visit, SignInProof::Login(claims), Some(only.member)).await,
        _ => Ok(Reply::see(visit.path(paths::WORKSPACE)?)),
    }
}

/// Leads to the page for the second factor.
pub(super) fn ask_factor(visit: &Visit, session: &SessionAnswer) -> Result<Reply> {
    let page = if session.mfa_state == MfaState::Setup { paths::MFA_SETUP } else { paths::MFA };
    Ok(Reply::see(visit.path(page)?).with_cookie(login_cookie(visit, session)))
}

/// Asks somebody who is signed in for the second factor; for the first one again when there is no second.
pub(super) fn ask_again(visit: &Visit, begun: Option<BegunSession>) -> Result<Reply> {
    match begun {
        Some(begun) => ask_factor(visit, &begun.sign(&visit.identity.tenancy)?),
        None => Ok(Reply::see(visit.path(paths::IDENTIFIER)?)),
    }
}

pub(super) fn login_cookie(visit: &Visit, session: &SessionAnswer) -> http::HeaderValue {
    visit.set(Cookie::Login, &session.session, sessions::LIFETIME)
}

/// Answers the app, or asks for the second factor that the workspace wants.
pub(crate) async fn finish(visit: &Visit, proof: SignInProof, member: Option<MemberId>) -> Result<Reply> {
    match try_finish(visit, proof, member, true).await {
        Ok(Finished::Answered(answer)) => answer.see(visit),
        Ok(Finished::NeedsFactor(begun)) => ask_again(visit, begun),
        Err(error) if error.code() == Code::SsoRequired => Ok(Reply::see(way_in(visit, member).await?)),
        Err(error) => Err(error),
    }
}

/// Where somebody goes on who chose a workspace that is opened through its connection only: there. What the app itself has forced is
/// among the ways to sign in.
async fn way_in(visit: &Visit, member: Option<MemberId>) -> Result<String> {
    let Some(member) = member.filter(|_| visit.request.forced.is_none()) else { return visit.path(paths::WAYS) };
    let app = visit.app.id;
    let connection = visit.identity.tenancy.db.read(move |tx| {
        let chosen = standing::find(tx, app, member, Reach::EVERYTHING)?;
        match chosen.and_then(|standing| standing.connection) {
            Some(connection) => federation::find(tx, app, connection),
            None => Ok(None),
        }
    });
    match connection.await? {
        Some(connection) => visit.path(&paths::connection_login(connection.protocol.as_str(), connection.id)),
        None => visit.path(paths::WAYS),
    }
}

/// What the app gets.
enum AppGrant {
    Code(String),
    IdToken(Box<IdToken>),
}

/// The app's answer, and the browser's new cookie when it has one.
pub(super) struct AppAnswer {
    grant: AppGrant,
    cookie: Option<String>,
    /// Who signed in just now.
    person: Option<(UserId, String)>,
}

pub(super) enum Finished {
    Answered(AppAnswer),
    /// Somebody who is signed in showed one factor, and the workspace wants two. `None` when none is set up: then the
    /// first one has to be shown again.
    NeedsFactor(Option<BegunSession>),
}

impl AppAnswer {
    pub(super) fn found(self, visit: &Visit) -> Result<Reply> {
        self.reply(visit, Reply::found)
    }

    fn see(self, visit: &Visit) -> Result<Reply> {
        self.reply(visit, Reply::see)
    }

    fn reply(self, visit: &Visit, to: fn(String) -> Reply) -> Result<Reply> {
        let tenancy = &visit.identity.tenancy;
        let location = match &self.grant {
            AppGrant::Code(code) => visit.request.answered(&tenancy.issuer, &[("code", code)]),
            AppGrant::IdToken(claims) => {
                let token = tokens::sign_id_token(tenancy, claims)?;
                visit.request.answered(&tenancy.issuer, &[("id_token", &token)])
            }
        };
        let reply = to(location).with_cookie(visit.clear(Cookie::Login));
        let reply = match &self.cookie {
            Some(cookie) => {
                let lifetime = browser_sessions::lifetime(&visit.app);
                reply.with_cookie(visit.set(Cookie::SignedIn, cookie, lifetime))
            }
            None => reply,
        };
        Ok(match &self.person {
            Some((user, email)) => reply.with_cookie(known_browser::remember(visit, *user, email)?),
            None => reply,
        })
    }
}

/// One transaction: the proof is still good, the workspace lets the person in, the browser is signed in, the app gets
/// its code. `member` may be left out when there is one workspace. Nothing is sent to anybody who may not be asked.
pub(super) async fn try_finish(
    visit: &Visit,
    proof: SignInProof,
    member: Option<MemberId>,
    may_ask: bool,
) -> Result<Finished> {
    let (identity, app, request) = (visit.identity.clone(), visit.app.clone(), visit.request.clone());
    let former = visit.cookie(Cookie::SignedIn).map(str::to_owned);
    let finished = visit.identity.tenancy.db.write(move |tx| match &proof {
        SignInProof::Login(session) => {
            check_forced(tx, &request, session.reach, session.method)?;
            let (standing, shown) = match of_login(tx, &identity, &app, session, member)? {
                Shown::Enough(standing, shown) => (*standing, shown),
                Shown::TooLittle(begun) => return Ok(Finished::NeedsFactor(Some(begun))),
            };
            let (browser, cookie) = browser_sessions::start(tx, &app, former.as_deref(), shown)?;
            let grant = grant(tx, &identity, &app, &request, &standing, shown, browser)?;
            // An identity provider's word does not make a browser known for the person's own ways in.
            let person = Some((standing.user, standing.email)).filter(|_| shown.reach.is_everything());
            Ok(Finished::Answered(AppAnswer { grant, cookie: Some(cookie), person }))
        }
        SignInProof::Browser(cookie) => {
            let user = browser_sessions::live(tx, app.id, cookie)?.ok_or_else(logins::ended)?.user;
            // As whoever begins to sign in; somebody may have signed the browser out meanwhile.
            people::hold(tx, app.id, user)?;
            let session = browser_sessions::live(tx, app.id, cookie)?.ok_or_else(logins::ended)?;
            check_forced(tx, &request, session.reach(), session.method)?;
            let standing = tokens::choose(standing::of_user(tx, app.id, session.user, session.reach())?, member)?;
            tokens::check_way_in(&standing, session.reach())?;
            match tokens::check_factors(&app, &standing, session.mfa) {
                Ok(()) => {}
                Err(error) if error.code() == Code::MfaRequired => {
                    let reach = session.reach();
                    if may_ask {
                        tokens::come_by_themselves(tx, &app, reach, &standing)?;
                    }
                    let BrowserSession { user, method, authenticated_at, .. } = session;
                    let begun = match may_ask {
                        true => login::step_up(tx, &identity, &app, user, method, authenticated_at, reach)?,
                        false => None,
                    };
                    return Ok(Finished::NeedsFactor(begun));
                }
                Err(error) => return Err(error),
            }
            let reach = session.reach();
            let BrowserSession { id, user, mfa, method, authenticated_at, .. } = session;
            browser_sessions::choose(tx, app.id, id, standing.member)?;
            let shown = BrowserSignIn { user, member: standing.member, mfa, method, authenticated_at, reach };
            let grant = grant(tx, &identity, &app, &request, &standing, shown, id)?;
            Ok(Finished::Answered(AppAnswer { grant, cookie: None, person: None }))
        }
    });
    finished.await
}

/// An app that asks for an identity provider is not answered by another way.
fn check_forced(tx: &mut Tx<'_>, request: &LoginRequest, reach: Reach, method: Method) -> Result<()> {
    if request.is_met(tx, reach, method)? {
        return Ok(());
    }
    Err(Error::new(Code::SsoRequired, "The app asks you to sign in through your identity provider."))
}

/// What a login under way has shown for the workspace that was chosen.
enum Shown {
    Enough(Box<Standing>, BrowserSignIn),
    /// One factor, and the workspace, which nobody knew to ask before it was chosen, wants two. The login goes on to the second.
    TooLittle(BegunSession),
}

/// A login under way that has shown all it has to, and the workspace it leads to.
fn of_login(
    tx: &mut Tx<'_>,
    identity: &Identity,
    app: &App,
    session: &LoginClaims,
    member: Option<MemberId>,
) -> Result<Shown> {
    if !session.mfa.is_met() {
        return Err(Error::new(Code::MfaRequired, "Complete two-step verification first."));
    }
    let authenticated_at = sessions::use_up(tx, session)?;
    let standing = tokens::choose(standing::of_user(tx, app.id, session.sub, session.reach)?, member)?;
    tokens::check_way_in(&standing, session.reach)?;
    let mfa = session.has_two_factors();
    if let Err(error) = tokens::check_factors(app, &standing, mfa) {
        if !tokens::come_by_themselves(tx, app, session.reach, &standing)? {
            return Err(error);
        }
        let LoginClaims { sub: user, method, strong, reach, .. } = *session;
        let first = FirstFactor { user, method, strong, authenticated_at, reach };
        return login::try_begin(tx, identity, app, first)?.map(Shown::TooLittle).ok_or(error);
    }
    let (user, member, method, reach) = (session.sub, standing.member, session.method, session.reach);
    let shown = BrowserSignIn { user, member, mfa, method, authenticated_at, reach };
    Ok(Shown::Enough(Box::new(standing), shown))
}

fn grant(
    tx: &mut Tx<'_>,
    identity: &Identity,
    app: &App,
    request: &LoginRequest,
    standing: &Standing,
    shown: BrowserSignIn,
    browser: BrowserSessionId,
) -> Result<AppGrant> {
    let asked = AuthorizationRequest::asked_scope(request);
    tokens::check_scope(tx, app, &asked)?;
    let granted = Granted::everything().narrowed(&asked);
    match request.response_type {
        ResponseType::Code => {
            let new = codes::NewCode {
                user: shown.user,
                member: standing.member,
                redirect_uri: &request.redirect_uri,
                granted: &granted,
                nonce: request.nonce.as_deref(),
                code_challenge: request.code_challenge.as_deref(),
                mfa: shown.mfa,
                method: shown.method,
                authenticated_at: shown.authenticated_at,
                browser: Some(browser),
                reach: shown.reach,
            };
            Ok(AppGrant::Code(codes::issue(tx, app.id, &new)?))
        }
        ResponseType::IdToken => {
            let sid = browser.to_string();
            announcements::login_succeeded(tx, app, &sid, standing, shown.method, shown.mfa, shown.reach)?;
            let iat = tx.now().as_seconds();
            let lifetime = Duration::from_secs(app.profile.access_token_ttl.into());
            Ok(AppGrant::IdToken(Box::new(IdToken {
                about: tokens::about(&identity.tenancy, app.id, standing, &granted),
                iss: identity.tenancy.issuer.to_string(),
                aud: app.id,
                iat,
                exp: shown.reach.bounds(tx.now().plus(lifetime)).as_seconds(),
                auth_time: shown.authenticated_at.as_seconds(),
                sid: browser.to_string(),
                nonce: request.nonce.clone(),
            })))
        }
    }
}
