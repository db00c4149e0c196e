//! Hosted portals: pages for a workspace's people beside the app's own. A code opens one, once: a handover code of somebody
//! who is signed in, or one that a key made for the plan page alone. The browser then has a session of its own, in a cookie
//! per app, which lasts no longer than the login that it continues. Here because it needs both login and billing.

mod entrance;
mod links;
mod member_page;
mod members_page;
mod plan_page;
mod profile_page;
mod settings_page;
mod store;
mod visit;

use std::{sync::Arc, time::Duration};

use ::store::Tx;
use http::HeaderMap;
use identity::{
    handover,
    hosted::cookies::{Cookie, Jar},
};
use kernel::{Actor, AppId, Author, Code, Error, MemberId, Result, TenantId, Timestamp};
use tenancy::{
    App, Tenancy,
    callers::SignedIn,
    logins::{self, LoginId},
    standing, workspaces,
};
use vault::hash_token;
use web::{Routes, Scope};

use crate::Core;

/// How long somebody stays in a portal.
const LIFETIME: Duration = Duration::from_hours(8);
/// How long a key's code works, and then the session that it opens.
const OF_KEY: Duration = Duration::from_hours(1);
const LENGTH: usize = 43;

pub fn routes() -> Routes<Core> {
    links::routes()
        .merge(entrance::routes())
        .merge(plan_page::routes())
        .merge(members_page::routes())
        .merge(member_page::routes())
        .merge(settings_page::routes())
        .merge(profile_page::routes())
}

/// A browser's way into a portal, as it is stored.
#[derive(Clone, Debug)]
struct PortalSession {
    app: AppId,
    tenant: TenantId,
    code_digest: String,
    holder: Holder,
    expires_at: Timestamp,
}

/// In whose name somebody is in a portal.
#[derive(Clone, Debug)]
enum Holder {
    /// A member, as their access token allowed: `None` is all of the role's privileges.
    Member { member: MemberId, login: LoginId, privileges: Option<String> },
    /// Whoever a key sent.
    Key(Actor),
}

/// Somebody in a portal, as of now.
#[derive(Clone)]
struct Visitor {
    app: Arc<App>,
    tenant: TenantId,
    actor: Actor,
    privileges: Vec<String>,
    /// Who it is, unless a key sent them.
    person: Option<SignedIn>,
    /// What only this browser knows.
    cookie: String,
}

impl Visitor {
    fn holds(&self, privilege: &str) -> bool {
        self.privileges.iter().any(|held| held == privilege)
    }

    /// 403 without the privilege; `message` says what it is for.
    fn require(&self, privilege: &str, message: &'static str) -> Result<()> {
        if self.holds(privilege) { Ok(()) } else { Err(Error::new(Code::MissingPrivilege, message)) }
    }

    /// 401 for whoever a key sent: it opens the plan page alone.
    fn person(&self) -> Result<&SignedIn> {
        self.person.as_ref().ok_or_else(refused)
    }

    fn is_member(&self, member: MemberId) -> bool {
        self.person.as_ref().is_some_and(|person| person.member() == member)
    }

    fn author(&self, scope: &Scope) -> Author {
        scope.author(self.actor.clone())
    }

    fn form_context(&self) -> String {
        format!("portal:{}", self.app.id)
    }
}

/// Makes a code for whoever a key sends to the plan page.
fn issue_for_key(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<String> {
    workspaces::billing_view(tx, app, tenant)?;
    let code = tx.entropy().base62(LENGTH);
    let actor = tx.author().actor.clone();
    store::insert_code(tx, app, tenant, &hash_token(&code), &actor, tx.now().plus(OF_KEY))?;
    Ok(code)
}

/// Where somebody comes in with a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    /// For people, and whoever a key sent.
    Plan,
    /// For people.
    Members,
}

/// Uses a code up. The app, and the new cookie, which is in the answer and nowhere else.
fn enter(tx: &mut Tx<'_>, code: &str, door: Door) -> Result<(AppId, String, Duration)> {
    let (digest, now) = (hash_token(code), tx.now());
    let (session, lifetime) = match handover::app_of(tx, code)? {
        Some(app) => {
            let came = handover::redeem(tx, app, code)?;
            let live = standing::of_login(tx, app, came.family, came.member)?;
            let (_, member) = live.ok_or_else(logins::ended)?;
            let privileges = came.granted.privileges.map(|words| words.join(" "));
            let holder = Holder::Member { member: came.member, login: came.family, privileges };
            let expires_at = now.plus(LIFETIME);
            (PortalSession { app, tenant: member.tenant, code_digest: digest, holder, expires_at }, LIFETIME)
        }
        None if door == Door::Members => return Err(refused()),
        None => {
            let (app, tenant, actor) = store::redeem_code(tx, &digest)?.ok_or_else(refused)?;
            let (holder, expires_at) = (Holder::Key(actor), now.plus(OF_KEY));
            (PortalSession { app, tenant, code_digest: digest, holder, expires_at }, OF_KEY)
        }
    };
    let cookie = tx.entropy().base62(LENGTH);
    store::insert_session(tx, &hash_token(&cookie), &session)?;
    Ok((session.app, cookie, lifetime))
}

/// The app whose session in this browser a code has opened before.
fn entered_before(tx: &mut Tx<'_>, code: &str, cookies: &[(AppId, String)]) -> Result<Option<(AppId, String)>> {
    let digest = hash_token(code);
    for (app, cookie) in cookies {
        let known = store::session(tx, *app, &hash_token(cookie))?;
        if known.is_some_and(|session| session.code_digest == digest) {
            return Ok(Some((*app, cookie.clone())));
        }
    }
    Ok(None)
}

/// Whoever has this cookie, unless their time is over: 401.
fn visitor(tx: &mut Tx<'_>, app: &Arc<App>, cookie: &str, scope: &Arc<Scope>) -> Result<Visitor> {
    let session = store::session(tx, app.id, &hash_token(cookie))?.ok_or_else(logins::ended)?;
    let (actor, privileges, person) = match session.holder {
        Holder::Member { member, login, privileges } => {
            let person = handover::continued(tx, app, (login, member), privileges.as_deref(), scope)?;
            let person = person.ok_or_else(logins::ended)?;
            (Actor::user(person.user()), person.privileges.clone(), Some(person))
        }
        Holder::Key(actor) => {
            workspaces::billing_view(tx, app.id, session.tenant).map_err(|_| logins::ended())?;
            (actor, vec!["TENANT_READ".to_owned(), "TENANT_WRITE".to_owned()], None)
        }
    };
    Ok(Visitor { app: Arc::clone(app), tenant: session.tenant, actor, privileges, person, cookie: cookie.to_owned() })
}

/// The portal cookies of a browser, of whichever apps.
fn cookies(tenancy: &Tenancy, headers: &HeaderMap) -> Vec<(AppId, String)> {
    let texts = headers.get_all(http::header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let names = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let apps = names.filter_map(|(name, _)| name.rsplit('-').next()?.parse::<AppId>().ok()).take(50);
    let cookie = |app: AppId| {
        let jar = Jar::new(app, &tenancy.base_url);
        jar.read(headers, Cookie::Portal).map(|value| (app, value.to_owned()))
    };
    apps.filter_map(cookie).collect()
}

fn refused() -> Error {
    Error::credential(
        "This link is not valid: it has expired or has already been used. Go back to the app and try again.",
    )
}
