//! The steps behind the JSON login flows. Known and unknown accounts take the same path as long as possible: one check
//! of a password, one transaction, one answer.

use std::{net::IpAddr, time::Duration};

use kernel::{AppId, Code, Error, Result, Secret, email_key};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use store::Tx;
use tenancy::{
    App, Tenancy, federation,
    links::{self, LinkPurpose, MailedLink},
    logins::Reach,
    mails::{self, AppMail},
    paths, people,
};
use url::Url;
use vault::passwords::{PasswordVerdict, StoredPassword};

use super::{
    SignUpRequest,
    begin::{FirstFactor, begin, try_begin, wrong_credentials},
    credentials::{self, Account},
    first_proof,
    new_password::peek,
};
use crate::{
    Identity,
    abuse::{self, Attempt, AttemptSource},
    announcements,
    authorize::LoginRequest,
    facts::FailureReason,
    mfa::store::passkeys,
    proof::Method,
    sessions::{BegunSession, SessionAnswer},
};

/// Checks a password and begins a session. The attempt is taken before the password is looked at: of guesses sent at once
/// no more are judged than one after the other.
pub(crate) async fn password(
    identity: &Identity,
    app: &App,
    source: &AttemptSource,
    username: &str,
    password: Secret<String>,
) -> Result<SessionAnswer> {
    let attempt = Attempt::password(app.id, username, source, identity.limits);
    let _turn = identity.gates.enter(&attempt).await?;
    // Nothing that others do from the same address keeps out a browser in which this person has signed in.
    if attempt.is_known {
        judge_password(identity, app, attempt, username, password).await
    } else {
        let judged = judge_password(identity, app, attempt, username, password);
        identity.addresses.judge(source.client, judged).await
    }
}

async fn judge_password(
    identity: &Identity,
    app: &App,
    attempt: Attempt,
    username: &str,
    password: Secret<String>,
) -> Result<SessionAnswer> {
    let db = &identity.tenancy.db;
    let (app_id, taken, name) = (app.id, attempt.clone(), username.to_owned());
    let account = db.write(move |tx| {
        taken.take(tx)?;
        credentials::find(tx, app_id, &name)
    });
    let account = account.await?;
    let verdict = match verify(identity, app.id, account.as_ref(), password).await {
        Ok(verdict) => verdict,
        Err(error) => {
            db.write(move |tx| attempt.give_back(tx)).await?;
            return Err(error);
        }
    };
    let (app, room, taken) = (app.clone(), identity.clone(), attempt.clone());
    let begun = db.write(move |tx| {
        let begun = match (&verdict, &account) {
            (PasswordVerdict::Right { renewed }, Some(account)) => {
                begin_with_password(tx, &room, &app, account, renewed.as_deref())?
            }
            _ => None,
        };
        if begun.is_some() {
            taken.succeeded(tx)?;
        } else {
            taken.failed(tx)?;
            let user = account.as_ref().map(|account| account.user);
            announcements::login_failed(tx, app.id, user, FailureReason::Password)?;
        }
        Ok(begun)
    });
    match begun.await {
        Ok(begun) => begun.ok_or_else(wrong_credentials)?.sign(&identity.tenancy),
        Err(error) => {
            // The right password, and no code could be sent, say: that is no guess.
            db.write(move |tx| attempt.give_back(tx)).await?;
            Err(error)
        }
    }
}

pub(super) async fn verify(
    identity: &Identity,
    app: AppId,
    account: Option<&Account>,
    password: Secret<String>,
) -> Result<PasswordVerdict> {
    let stored = match account {
        Some(account) => account.stored(&identity.tenancy.keyring, app)?,
        None => StoredPassword::Nothing,
    };
    identity.passwords.verify(password, stored).await
}

/// `None` for a password that was changed while this one was being checked: it is not the right one any more. And for
/// somebody who may sign in nowhere, who is told as little as somebody unknown.
fn begin_with_password(
    tx: &mut Tx<'_>,
    identity: &Identity,
    app: &App,
    account: &Account,
    renewed: Option<&str>,
) -> Result<Option<BegunSession>> {
    // Whoever changes the password holds the person too, and ends what began before.
    people::hold(tx, app.id, account.user)?;
    if !credentials::still_stored(tx, app.id, account)? {
        return Ok(None);
    }
    let begun = try_begin(
        tx,
        identity,
        app,
        FirstFactor {
            user: account.user,
            method: Method::Password,
            strong: false,
            authenticated_at: tx.now(),
            reach: Reach::EVERYTHING,
        },
    )?;
    if let (Some(_), Some(digest)) = (&begun, renewed) {
        credentials::renew(tx, app.id, account, digest)?;
    }
    Ok(begun)
}

/// A way to sign in through a workspace's own identity provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Connection {
    id: String,
    r#type: String,
    name: String,
}

/// How somebody can sign in.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CredentialsConfig {
    has_password: bool,
    /// Whether there is a passkey for the page that asks.
    has_passkeys: bool,
    federation_connections: Vec<Connection>,
}

pub(super) async fn credentials_config(
    identity: &Identity,
    app: &App,
    client: IpAddr,
    username: &str,
    rp_id: &str,
) -> Result<CredentialsConfig> {
    let (app, name, rp_id) = (app.id, username.to_owned(), rp_id.to_owned());
    let config = identity.tenancy.db.read(move |tx| {
        let Some(account) = credentials::find(tx, app, &name)? else { return Ok(None) };
        Ok(Some(CredentialsConfig {
            has_password: account.has_password(),
            has_passkeys: passkeys::has_any(tx, app, account.user, &rp_id)?,
            federation_connections: connections(tx, app, &account)?,
        }))
    });
    let known = async { config.await?.ok_or_else(|| Error::credential("There is no such user.")) };
    identity.addresses.judge(client, known).await
}

fn connections(tx: &mut Tx<'_>, app: AppId, account: &Account) -> Result<Vec<Connection>> {
    let found = federation::of_user(tx, app, account.user)?;
    Ok(found.into_iter().map(|(id, r#type, name)| Connection { id, r#type, name }).collect())
}

/// Where a mailed link leads.
#[derive(Clone, Debug)]
pub(crate) enum Landing {
    /// To a page of the app's own, with the token in `service_magic_link_token`.
    Page(Url),
    /// To the hosted login, and from there to where the app asked for it; to the app's own start without that.
    Hosted(Option<Box<LoginRequest>>),
}

/// What a link remembers of what the app asked for.
pub(crate) fn payload(tenancy: &Tenancy, asked: Option<&LoginRequest>) -> Result<Value> {
    let sealed = asked.map(|request| request.seal(tenancy)).transpose()?;
    Ok(sealed.map_or_else(|| json!({}), |sealed| json!({ "request": sealed })))
}

/// Mails a link that signs in; how long it works.
pub(crate) async fn magic_link(identity: &Identity, app: &App, username: &str, landing: Landing) -> Result<Duration> {
    check_magic_links(app)?;
    let tenancy = identity.tenancy.clone();
    mail_to(identity, app, username, move |tx, app, account| {
        links::keep_newest(tx, app.id, LinkPurpose::MagicLink, account.user)?;
        let asked = match &landing {
            Landing::Hosted(asked) => asked.as_deref(),
            Landing::Page(_) => None,
        };
        let token = links::create(tx, app.id, LinkPurpose::MagicLink, Some(account.user), &payload(&tenancy, asked)?)?;
        let link = match &landing {
            Landing::Page(url) => {
                let mut url = url.clone();
                url.query_pairs_mut().append_pair("service_magic_link_token", &token);
                url.to_string()
            }
            Landing::Hosted(_) => format!("{}{}?token={token}", tenancy.base_url, paths::MAGIC_LINK),
        };
        Ok(AppMail::MagicLink { link })
    })
    .await?;
    Ok(LinkPurpose::MagicLink.lifetime())
}

/// 403 while the app has switched them off.
pub(crate) fn check_magic_links(app: &App) -> Result<()> {
    if app.profile.magic_link_enabled {
        return Ok(());
    }
    Err(Error::new(Code::LoginMethodOff, "This app has turned magic links off."))
}

/// Begins a session with a mailed link; all links like it are over then. A good link is a way in whatever others did from
/// the same address: nobody guesses 256 bits.
pub(crate) async fn follow_magic_link(identity: &Identity, client: IpAddr, token: &str) -> Result<SessionAnswer> {
    let link = peek_or_count(identity, client, &[LinkPurpose::MagicLink], token).await?;
    let app = identity.tenancy.apps.find(link.app).await?.ok_or_else(|| Error::not_found("app"))?;
    check_magic_links(&app)?;
    let (token, room) = (token.to_owned(), identity.clone());
    let begun = identity.tenancy.db.write(move |tx| {
        let link = links::consume(tx, LinkPurpose::MagicLink, &token)?;
        let user = link.user.ok_or_else(|| Error::internal("a magic link without a person"))?;
        links::revoke(tx, app.id, LinkPurpose::MagicLink, user)?;
        first_proof::forget_factor(tx, &room.tenancy, app.id, user)?;
        people::verify_email(tx, app.id, user)?;
        begin(tx, &room, &app, user, Method::Link, false)
    });
    begun.await?.sign(&identity.tenancy)
}

/// Looks at a mailed link. One that is not valid counts against the address, and is 429 after too many.
async fn peek_or_count(
    identity: &Identity,
    client: IpAddr,
    purposes: &'static [LinkPurpose],
    token: &str,
) -> Result<MailedLink> {
    let shown = token.to_owned();
    let peeked = identity.tenancy.db.read(move |tx| peek(tx, purposes, &shown)).await;
    match peeked {
        Ok((_, link, _)) => Ok(link),
        Err(error) if error.code() == Code::InvalidCredential => {
            identity.addresses.take(client)?;
            Err(error)
        }
        Err(error) => Err(error),
    }
}

/// Mails a link that sets a new password, and then leads to where the app asked for it.
pub(crate) async fn forgotten(
    identity: &Identity,
    app: &App,
    username: &str,
    asked: Option<LoginRequest>,
) -> Result<()> {
    let tenancy = identity.tenancy.clone();
    mail_to(identity, app, username, move |tx, app, account| reset_mail(tx, &tenancy, app, account, asked.as_ref()))
        .await
}

fn reset_mail(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: &App,
    account: &Account,
    asked: Option<&LoginRequest>,
) -> Result<AppMail> {
    Ok(AppMail::ResetPassword { link: password_link(tx, tenancy, app, account, asked)? })
}

/// A link that sets a password, and then leads to where the app asked for it.
fn password_link(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: &App,
    account: &Account,
    asked: Option<&LoginRequest>,
) -> Result<String> {
    links::keep_newest(tx, app.id, LinkPurpose::PasswordReset, account.user)?;
    let payload = payload(tenancy, asked)?;
    let token = links::create(tx, app.id, LinkPurpose::PasswordReset, Some(account.user), &payload)?;
    Ok(format!("{}{}?token={token}", tenancy.base_url, paths::SET_PASSWORD))
}

/// After a wrong password: mails a link that sets one to somebody who has none, as people have who were imported. For all
/// others the same rows are written and taken back, and so is what counts against the limit on mails: nobody can tell who
/// it was, and nobody's mistakes use up their mails.
pub(crate) async fn mail_first_password(
    identity: &Identity,
    app: &App,
    username: &str,
    asked: LoginRequest,
) -> Result<()> {
    let (tenancy, app, username) = (identity.tenancy.clone(), app.clone(), username.to_owned());
    let mailed = identity.tenancy.db.write(move |tx| {
        let known = credentials::find(tx, app.id, &username)?;
        let wanting = known.as_ref().is_some_and(|account| !account.has_password());
        let account = known.unwrap_or_else(|| Account::of_nobody(tx));
        let (mut is_written, unwanted) = (false, || Error::not_found("user"));
        let kept = tx.savepoint(|tx| {
            abuse::count_message(tx, app.id, &username)?;
            let mail = reset_mail(tx, &tenancy, &app, &account, Some(&asked))?;
            mails::queue(tx, &tenancy, &app, &account.email, &mail)?;
            is_written = true;
            wanting.then_some(()).ok_or_else(unwanted)
        });
        match kept {
            Err(error) if !is_written && error.code() != Code::RateLimited => Err(error),
            _ => Ok(()),
        }
    });
    mailed.await
}

/// Mails to whoever has an account, if somebody does. The limit counts either way, and so does the work: for an unknown
/// address the same rows are written, and taken back.
pub(crate) async fn mail_to<F>(identity: &Identity, app: &App, username: &str, compose: F) -> Result<()>
where
    F: Fn(&mut Tx<'_>, &App, &Account) -> Result<AppMail> + Send + 'static,
{
    let (tenancy, app, username) = (identity.tenancy.clone(), app.clone(), username.to_owned());
    let mailed = identity.tenancy.db.write(move |tx| {
        abuse::count_message(tx, app.id, &username)?;
        let known = credentials::find(tx, app.id, &username)?;
        let account = known.clone().unwrap_or_else(|| Account::of_nobody(tx));
        let (mut is_written, nobody) = (false, || Error::not_found("user"));
        let kept = tx.savepoint(|tx| {
            let mail = compose(tx, &app, &account)?;
            mails::queue(tx, &tenancy, &app, &account.email, &mail)?;
            is_written = true;
            known.is_some().then_some(()).ok_or_else(nobody)
        });
        if is_written && known.is_none() { Ok(()) } else { kept }
    });
    mailed.await
}

/// 403 while people cannot sign up by themselves.
pub(crate) fn check_sign_up(app: &App) -> Result<()> {
    if app.profile.tenant_self_signup {
        return Ok(());
    }
    Err(Error::new(Code::SignupDisabled, "This app does not allow self-service sign-up. Ask for an invitation."))
}

/// Mails a link that completes the sign-up; somebody who has an account is told so instead, with a way into it.
pub(crate) async fn sign_up(identity: &Identity, app: &App, request: SignUpRequest) -> Result<()> {
    check_sign_up(app)?;
    let (tenancy, app) = (identity.tenancy.clone(), app.clone());
    let mailed = identity.tenancy.db.write(move |tx| {
        abuse::count_message(tx, app.id, &request.email)?;
        let known = credentials::find(tx, app.id, &request.email)?;
        let mail = match known {
            Some(account) => AppMail::SignUpExisting { link: way_in(tx, &tenancy, &app, &account, &request)? },
            None => {
                let payload = serde_json::to_value(&request).map_err(Error::internal)?;
                let token = links::create_for_address(tx, app.id, LinkPurpose::SignUp, &request.email, &payload)?;
                AppMail::SignUp { link: format!("{}{}?token={token}", tenancy.base_url, paths::SET_PASSWORD) }
            }
        };
        mails::queue(tx, &tenancy, &app, &request.email, &mail)
    });
    mailed.await
}

/// The way into an account that somebody has: the login; without a password, and without an identity provider that the
/// login would lead to, a link that sets one.
fn way_in(tx: &mut Tx<'_>, tenancy: &Tenancy, app: &App, account: &Account, request: &SignUpRequest) -> Result<String> {
    if account.has_password() || !connections(tx, app.id, account)?.is_empty() {
        return sign_in_link(tenancy, app, request);
    }
    let asked = request.request.as_deref().and_then(|sealed| LoginRequest::open(tenancy, sealed).ok());
    password_link(tx, tenancy, app, account, asked.as_ref())
}

/// Where somebody with an account continues: in the login that the sign-up was part of, else at the app's own start.
fn sign_in_link(tenancy: &Tenancy, app: &App, request: &SignUpRequest) -> Result<String> {
    let default = || LoginRequest::to_default(app).map(|request| request.seal(tenancy)).transpose();
    let sealed = match &request.request {
        Some(sealed) => Some(sealed.clone()),
        None => default()?,
    };
    let profile = &app.profile;
    Ok(match sealed {
        Some(sealed) => format!("{}{}?r={sealed}", tenancy.base_url, paths::IDENTIFIER),
        None => profile.ui_url.clone().or_else(|| profile.website_url.clone()).unwrap_or_default(),
    })
}

/// What a page's own address is to passkeys.
pub(crate) fn host_of(origin: &str) -> String {
    Url::parse(origin).ok().and_then(|url| url.host_str().map(email_key)).unwrap_or_default()
}
