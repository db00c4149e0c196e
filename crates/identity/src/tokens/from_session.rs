//! Tokens for somebody who has just signed in: a login session is exchanged for those of one of its workspaces.

use kernel::{Code, Error, MemberId, Result};
use tenancy::{
    App, logins,
    standing::{self, Standing},
};

use super::{
    Granted, ScopeRequest, TokenSetWithProfile, check_factors, check_scope, check_way_in, come_by_themselves, prepare,
};
use crate::{
    Identity, announcements,
    sessions::{self, LoginClaims},
};

pub(crate) async fn from_session(
    identity: &Identity,
    app: &App,
    session: LoginClaims,
    member: Option<MemberId>,
    asked: ScopeRequest,
) -> Result<TokenSetWithProfile> {
    if !session.mfa.is_met() {
        return Err(Error::new(Code::MfaRequired, "Complete two-step verification before you request tokens."));
    }
    let app = app.clone();
    let prepared = identity.tenancy.db.write(move |tx| {
        let authenticated_at = sessions::exchange(tx, &session)?;
        check_scope(tx, &app, &asked)?;
        let standing = choose(standing::of_user(tx, app.id, session.sub, session.reach)?, member)?;
        check_way_in(&standing, session.reach)?;
        if let Err(wanting) = check_factors(&app, &standing, session.has_two_factors()) {
            come_by_themselves(tx, &app, session.reach, &standing)?;
            return Ok(Err(wanting));
        }
        let mfa = session.has_two_factors();
        let login = logins::start(tx, &app, session.sub, mfa, authenticated_at, None, session.reach)?;
        announcements::login_succeeded(
            tx,
            &app,
            &login.id.to_string(),
            &standing,
            session.method,
            login.mfa,
            session.reach,
        )?;
        prepare(tx, &app, login, standing, Granted::everything().narrowed(&asked), None).map(Ok)
    });
    prepared.await??.sign(&identity.tenancy)
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
