//! Signed-in users: an access token, whose membership is read on every call, so that a disabled or removed member is
//! refused at once here, whatever the token says.

use std::{marker::PhantomData, sync::Arc, time::Duration};

use axum::extract::FromRequestParts;
use http::request::Parts;
use kernel::{Actor, AppId, Author, Authored, Code, Error, MemberId, Result, TenantId, UserId};
use web::{Access, Describe, Failure, Operation, Scope, optional_header, required_header};

use super::{
    access_tokens::{AccessClaims, GRACE},
    operator::bearer,
    privileges::Permission,
};
use crate::{
    Tenancy, logins,
    standing::{self, Membership, Standing},
};

/// A signed-in user as of now.
#[derive(Clone, Debug)]
pub struct SignedIn {
    pub claims: Arc<AccessClaims>,
    pub membership: Membership,
    /// The token's privileges, cut by what the role grants now.
    pub privileges: Vec<String>,
    /// The request that they sent.
    pub scope: Arc<Scope>,
}

impl Authored for SignedIn {
    fn author(&self) -> Author {
        self.scope.author(Actor::user(self.user()))
    }
}

impl SignedIn {
    async fn new(
        tenancy: &Tenancy,
        scope: &Arc<Scope>,
        claims: Arc<AccessClaims>,
        membership: Membership,
    ) -> Result<Self> {
        app_is_there(tenancy, &claims).await?;
        let granted = |key: &&str| membership.privileges.iter().any(|held| held == key);
        let privileges = claims.scope.split(' ').filter(granted).map(str::to_owned).collect();
        Ok(Self { claims, membership, privileges, scope: Arc::clone(scope) })
    }

    pub fn app(&self) -> AppId {
        self.claims.aid
    }

    pub fn tenant(&self) -> TenantId {
        self.claims.tid
    }

    pub fn user(&self) -> UserId {
        self.claims.sub
    }

    pub fn member(&self) -> MemberId {
        self.membership.member
    }

    pub fn holds(&self, privilege: &str) -> bool {
        self.privileges.iter().any(|held| held == privilege)
    }

    /// 403 without the privilege.
    pub fn require(&self, privilege: &str) -> Result<()> {
        if self.holds(privilege) {
            return Ok(());
        }
        Err(Error::new(Code::MissingPrivilege, format!("This operation requires the privilege {privilege}.")))
    }
}

async fn app_is_there(tenancy: &Tenancy, claims: &AccessClaims) -> Result<()> {
    match tenancy.apps.find(claims.aid).await? {
        Some(_) => Ok(()),
        None => Err(Error::credential("The access token's app no longer exists.")),
    }
}

/// Tells the request's record whose it is.
fn note(scope: &Scope, claims: &AccessClaims) -> Result<()> {
    scope.set_tenant(claims.tid);
    scope.set_user(claims.sub);
    scope.caller_of(claims.aid)
}

/// The token that a request carries.
fn presented(parts: &Parts) -> Result<&str> {
    bearer(parts)
        .ok_or_else(|| Error::new(Code::Unauthenticated, "Send an access token as Authorization: Bearer <token>."))
}

pub(super) async fn authenticate(parts: &Parts, tenancy: &Tenancy) -> Result<SignedIn> {
    let user = authenticate_token(tenancy, &Scope::of(&parts.extensions), presented(parts)?, Duration::ZERO).await?;
    same_app(parts, &user.claims)?;
    Ok(user)
}

/// 403 when the request names another app than the token's, also where it need not name one.
fn same_app(parts: &Parts, claims: &AccessClaims) -> Result<()> {
    match optional_header(&parts.headers, "x-app-id")? {
        Some(named) if named.parse() != Ok(claims.aid) => {
            Err(Error::new(Code::Forbidden, "x-app-id does not match the app of the access token."))
        }
        _ => Ok(()),
    }
}

/// Checks an access token: signature, issuer, expiry, and login and membership as they are now. One that expired less
/// than `grace` ago still counts.
pub async fn authenticate_token(
    tenancy: &Tenancy,
    scope: &Arc<Scope>,
    token: &str,
    grace: Duration,
) -> Result<SignedIn> {
    let user = admit(tenancy, scope, genuine(tenancy, scope, token)?, grace).await?;
    note(scope, &user.claims)?;
    Ok(user)
}

fn genuine(tenancy: &Tenancy, scope: &Arc<Scope>, token: &str) -> Result<Arc<AccessClaims>> {
    let Some(claims) = tenancy.access_tokens.verify(token) else {
        scope.key_refused()?;
        return Err(Error::credential("The access token is not valid."));
    };
    Ok(claims)
}

/// Whether the claims of a genuine access token still count, as [`authenticate_token`] has it.
pub async fn admit(
    tenancy: &Tenancy,
    scope: &Arc<Scope>,
    claims: Arc<AccessClaims>,
    grace: Duration,
) -> Result<SignedIn> {
    tenancy.access_tokens.check(&claims, grace)?;
    let membership = standing::membership(&tenancy.db, claims.signed_in_as()).await?;
    SignedIn::new(tenancy, scope, claims, membership.ok_or_else(logins::ended)?).await
}

pub(super) fn refused(message: &'static str) -> Error {
    Error::credential(message)
}

/// A signed-in user with the permission `P`, by access token alone; the app is the token's.
pub struct BearerCaller<P>(pub SignedIn, pub PhantomData<fn() -> P>);

impl<S: AsRef<Tenancy> + Send + Sync, P: Permission> FromRequestParts<S> for BearerCaller<P> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let user = authenticate(parts, state.as_ref()).await?;
        P::check(&user)?;
        Ok(Self(user, PhantomData))
    }
}

impl<P: Permission> Describe for BearerCaller<P> {
    fn describe(operation: &mut Operation) {
        operation.access(Access::Bearer { permission: P::NAME });
    }
}

/// A signed-in user by access token alone, as what is known of them: for telling them, whatever they may do.
pub struct DescribedCaller {
    pub claims: Arc<AccessClaims>,
    pub standing: Standing,
}

impl<S: AsRef<Tenancy> + Send + Sync> FromRequestParts<S> for DescribedCaller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let (tenancy, scope) = (state.as_ref(), Scope::of(&parts.extensions));
        let claims = genuine(tenancy, &scope, presented(parts)?)?;
        tenancy.access_tokens.check(&claims, Duration::ZERO)?;
        let standing = standing::signed_in(&tenancy.db, claims.signed_in_as()).await?.ok_or_else(logins::ended)?;
        app_is_there(tenancy, &claims).await?;
        note(&scope, &claims)?;
        same_app(parts, &claims)?;
        Ok(Self { claims, standing })
    }
}

impl Describe for DescribedCaller {
    fn describe(operation: &mut Operation) {
        operation.access(Access::Bearer { permission: None });
    }
}

/// A signed-in user whose access token may have expired a moment ago: for refreshing with it.
pub struct RefreshingCaller(pub SignedIn);

impl<S: AsRef<Tenancy> + Send + Sync> FromRequestParts<S> for RefreshingCaller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let (scope, token) = (Scope::of(&parts.extensions), presented(parts)?);
        let user = authenticate_token(state.as_ref(), &scope, token, GRACE).await?;
        same_app(parts, &user.claims)?;
        Ok(Self(user))
    }
}

impl Describe for RefreshingCaller {
    fn describe(operation: &mut Operation) {
        operation.access(Access::Bearer { permission: None });
    }
}

/// A signed-in user with the permission `P`, whose request also names the app in `x-app-id`.
pub struct UserCaller<P>(pub SignedIn, pub PhantomData<fn() -> P>);

impl<S: AsRef<Tenancy> + Send + Sync, P: Permission> FromRequestParts<S> for UserCaller<P> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        Ok(Self(authenticate_with_app::<P>(parts, state.as_ref()).await?, PhantomData))
    }
}

impl<P: Permission> Describe for UserCaller<P> {
    fn describe(operation: &mut Operation) {
        operation.access(Access::User { permission: P::NAME });
    }
}

/// The user of a request that also names the app, with the permission `P`.
pub(super) async fn authenticate_with_app<P: Permission>(parts: &Parts, tenancy: &Tenancy) -> Result<SignedIn> {
    let user = authenticate(parts, tenancy).await?;
    required_header(&parts.headers, "x-app-id")?;
    P::check(&user)?;
    Ok(user)
}
