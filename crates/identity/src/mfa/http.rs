//! The second factor's part of the JSON login flows, and taking a member's factor away.

use kernel::{Error, Phone, Problems, Result, Words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenancy::{
    App, Authority,
    callers::{TenantCaller, UserWrite},
    members::{self, MemberRef},
};
use web::{Json, LimitClass, Path, Routes, State, Success, Valid, Validate, WithHeaders};

use super::{CODE_LIFETIME, SecondFactor, Setup, flows};
use crate::{
    Identity,
    abuse::LIMITED,
    browser::{FOREIGN_ORIGIN, ForRequest, Mode, Request, ShortCode},
    sessions::{self, LoginClaims, SessionAnswer},
    tokens::unstored,
};

pub fn routes() -> Routes<Identity> {
    let steps = Routes::new("Second factor")
        .all_answer(&[(401, REFUSED), (403, FOREIGN_ORIGIN), (429, LIMITED)])
        .post("/auth/auth/startMfaUserSetup", start_setup, "Start setting up a second factor")
        .limited(LimitClass::Message)
        .post("/auth/auth/finishMfaUserSetup", finish_setup, "Finish setting up a second factor")
        .post("/auth/auth/challengeMfa", challenge, "Resend the code")
        .limited(LimitClass::Message)
        .answers(409, "This login does not require a code")
        .post("/auth/auth/commitMfaCode", commit, "Verify the second factor")
        .post("/auth/auth/resetUserMfaSetup", reset, "Reset the second factor with the backup code");
    let factor = Routes::new("Second factor")
        .delete("/account/tenant/user/{user_id}/mfa", clear, "Clear a user's second factor")
        .answers(403, "The person has a role with a privilege that the caller does not have")
        .answers(409, "The user has not accepted the invitation yet");
    steps.merge(factor)
}

const REFUSED: &str = "The session is not valid, or the code is incorrect";

/// The session that a step belongs to.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct InSession {
    /// The login session.
    session: Option<Words>,
    /// An older name of `session`.
    auth_token: Option<Words>,
    /// Always `sdk`.
    #[expect(dead_code, reason = "it has one value, which reading checks")]
    mode: Mode,
}

impl Validate for InSession {
    fn validate(&self, problems: &mut Problems) {
        problems.check("session", self.token().is_some(), "is required");
    }
}

impl InSession {
    fn token(&self) -> Option<&str> {
        self.session.as_deref().or(self.auth_token.as_deref())
    }

    /// The session and its app, which a page of the app asks for.
    fn open(&self, request: &Request, identity: &Identity) -> Result<(LoginClaims, std::sync::Arc<App>)> {
        identity.addresses.check(request.scope.client())?;
        let session = sessions::verify(&identity.tenancy, self.token().unwrap_or_default())?;
        let app = identity.app(request, session.aid)?;
        request.require_origin(&identity.tenancy.apps, &app)?;
        Ok((session, app))
    }
}

/// The body of `POST /auth/auth/startMfaUserSetup`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StartSetup {
    #[serde(flatten)]
    session: InSession,
    /// In international form, for codes by SMS.
    phone_number: Option<Phone>,
    /// `totp` for an authenticator app; `sms` without it.
    method: Option<MethodName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "MfaMethod")]
enum MethodName {
    Sms,
    Totp,
}

impl Validate for StartSetup {
    fn validate(&self, problems: &mut Problems) {
        self.session.validate(problems);
        if self.method != Some(MethodName::Totp) {
            problems.check("phoneNumber", self.phone_number.is_some(), "is required");
        }
    }
}

/// What a person needs to continue: a code that was sent, or a secret for the authenticator app.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SetupStarted {
    success: bool,
    /// Milliseconds for which the code that was sent works.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_in: Option<u64>,
    /// In base32, for typing it in.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    /// For a QR code.
    #[serde(skip_serializing_if = "Option::is_none")]
    otpauth_url: Option<String>,
}

fn code_lifetime() -> u64 {
    u64::try_from(CODE_LIFETIME.as_millis()).unwrap_or(u64::MAX)
}

async fn start_setup(
    request: Request,
    ForRequest(identity): ForRequest,
    Valid(body): Valid<StartSetup>,
) -> Result<WithHeaders<Json<SetupStarted>>> {
    let (session, app) = body.session.open(&request, &identity)?;
    let setup = match (body.method, body.phone_number) {
        (Some(MethodName::Totp), _) => Setup::Totp,
        (_, Some(phone)) => Setup::Sms { phone: phone.into() },
        (_, None) => return Err(Error::invalid("phoneNumber", "is required")),
    };
    let answer = match flows::start_setup(&identity, &app, session, setup).await? {
        None => SetupStarted { success: true, expires_in: Some(code_lifetime()), secret: None, otpauth_url: None },
        Some(new) => {
            SetupStarted { success: true, expires_in: None, secret: Some(new.base32), otpauth_url: Some(new.url) }
        }
    };
    Ok(unstored(answer))
}

/// A code for a session.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CodeBody {
    #[serde(flatten)]
    session: InSession,
    mfa_code: ShortCode,
}

impl Validate for CodeBody {
    fn validate(&self, problems: &mut Problems) {
        self.session.validate(problems);
    }
}

/// The session, completed, and the way out when the phone is lost.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SetupFinished {
    #[serde(flatten)]
    session: SessionAnswer,
    /// Shown only now; resets the second factor.
    backup_code: String,
}

async fn finish_setup(
    request: Request,
    ForRequest(identity): ForRequest,
    Valid(body): Valid<CodeBody>,
) -> Result<WithHeaders<Json<SetupFinished>>> {
    let (session, _) = body.session.open(&request, &identity)?;
    let (session, backup_code) =
        flows::finish_setup(&identity, &request.source(), session, body.mfa_code.into()).await?;
    Ok(unstored(SetupFinished { session, backup_code }))
}

/// What to do for the second factor.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct MfaChallenge {
    success: bool,
    method: MethodName,
    /// Milliseconds for which a code works.
    expires_in: u64,
}

async fn challenge(
    request: Request,
    ForRequest(identity): ForRequest,
    Valid(body): Valid<InSession>,
) -> Result<Json<MfaChallenge>> {
    let (session, app) = body.open(&request, &identity)?;
    let (method, expires_in) = match flows::challenge(&identity, &app, session).await? {
        SecondFactor::Sms { .. } => (MethodName::Sms, code_lifetime()),
        SecondFactor::Totp { .. } => (MethodName::Totp, 30_000),
    };
    Ok(Json(MfaChallenge { success: true, method, expires_in }))
}

async fn commit(
    request: Request,
    ForRequest(identity): ForRequest,
    Valid(body): Valid<CodeBody>,
) -> Result<WithHeaders<Json<SessionAnswer>>> {
    let (session, _) = body.session.open(&request, &identity)?;
    Ok(unstored(flows::commit(&identity, &request.source(), session, body.mfa_code.into()).await?))
}

/// The body of `POST /auth/auth/resetUserMfaSetup`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Reset {
    #[serde(flatten)]
    session: InSession,
    backup_code: ShortCode,
}

impl Validate for Reset {
    fn validate(&self, problems: &mut Problems) {
        self.session.validate(problems);
    }
}

async fn reset(
    request: Request,
    ForRequest(identity): ForRequest,
    Valid(body): Valid<Reset>,
) -> Result<WithHeaders<Json<SessionAnswer>>> {
    let (session, _) = body.session.open(&request, &identity)?;
    Ok(unstored(flows::reset(&identity, &request.source(), session, body.backup_code.into()).await?))
}

async fn clear(
    caller: TenantCaller<UserWrite>,
    State(identity): State<Identity>,
    Path(who): Path<MemberRef>,
) -> Result<Success> {
    let (app, tenant, authority) = (caller.app_id(), caller.tenant(), Authority::of_key(&caller));
    let room = identity.clone();
    let cleared = identity.tenancy.db.by(&caller).write(move |tx| {
        let member = members::get(tx, app, tenant, who)?;
        authority.may_change_person(tx, app, member.user_id)?;
        authority.may_become(tx, app, member.user_id)?;
        super::clear(tx, &room.tenancy, app, member.user_id)
    });
    cleared.await?;
    Ok(Success)
}
