//! The one error of all domains. It knows no HTTP: `web` turns it into a response in one place.
//!
//! Every cause has a stable [`Code`]; the list below is the whole vocabulary and the source of `docs/errors.md`.

use std::{borrow::Cow, error::Error as StdError, fmt, time::Duration};

use crate::validate::FieldProblem;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What sort of failure this is, in terms that are not HTTP's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Invalid,
    Unauthenticated,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    Conflict,
    PreconditionFailed,
    TooLarge,
    UnsupportedMediaType,
    RateLimited,
    Upstream,
    Unavailable,
    NotOffered,
    Internal,
}

macro_rules! codes {
    ($($name:ident $wire:literal $kind:ident $meaning:literal;)*) => {
        /// A stable, documented cause. One per cause, never renamed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $(#[doc = $meaning] $name,)* }

        impl Code {
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$name => $wire,)* }
            }

            pub const fn kind(self) -> Kind {
                match self { $(Code::$name => Kind::$kind,)* }
            }

            /// One sentence for the documentation.
            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$name => $meaning,)* }
            }
        }
    };
}

codes! {
    ValidationFailed "VALIDATION_FAILED" Invalid "One or more fields are missing or invalid; `details` names each.";
    MalformedJson "MALFORMED_JSON" Invalid "The body is not valid JSON.";
    MalformedRequest "MALFORMED_REQUEST" Invalid "The path, the query string or a header cannot be understood.";
    MissingHeader "MISSING_HEADER" Invalid "A header that this operation requires is missing.";
    Unauthenticated "UNAUTHENTICATED" Unauthenticated "No credential was sent.";
    InvalidCredential "INVALID_CREDENTIAL" Unauthenticated "The credential is unknown, expired, revoked or malformed.";
    Forbidden "FORBIDDEN" Forbidden "The caller is authenticated but not allowed to do this.";
    MissingPrivilege "MISSING_PRIVILEGE" Forbidden "The caller's credential lacks a privilege that this operation requires.";
    NotFound "NOT_FOUND" NotFound "It does not exist, or it belongs to another app.";
    RouteNotFound "ROUTE_NOT_FOUND" NotFound "There is no operation at this path.";
    MethodNotAllowed "METHOD_NOT_ALLOWED" MethodNotAllowed "The path exists, but does not support this method.";
    Conflict "CONFLICT" Conflict "The change conflicts with the current state.";
    DomainTaken "DOMAIN_TAKEN" Conflict "Another app already has this domain.";
    MemberExists "MEMBER_EXISTS" Conflict "The person is already a member of this workspace.";
    LastOwner "LAST_OWNER" Conflict "A workspace keeps at least one enabled OWNER.";
    WorkspaceInUse "WORKSPACE_IN_USE" Conflict "The workspace cannot be deleted yet; its deletion preview lists why.";
    BodyTooLarge "BODY_TOO_LARGE" TooLarge "The request body is larger than this operation accepts.";
    UnsupportedMediaType "UNSUPPORTED_MEDIA_TYPE" UnsupportedMediaType "The `Content-Type` is not one this operation accepts.";
    RateLimited "RATE_LIMITED" RateLimited "Too many requests; try again after the seconds in `Retry-After`.";
    ProviderFailed "PROVIDER_FAILED" Upstream "An external service that this operation depends on failed.";
    Overloaded "OVERLOADED" Unavailable "The service is overloaded; try again after the seconds in `Retry-After`.";
    ShuttingDown "SHUTTING_DOWN" Unavailable "This node is shutting down; try again to reach another one.";
    StorageUnavailable "STORAGE_UNAVAILABLE" Unavailable "The database cannot be reached at the moment.";
    CommitUnknown "COMMIT_UNKNOWN" Unavailable "The connection was lost while committing; the change may or may not have been made.";
    TimedOut "TIMED_OUT" Unavailable "The operation timed out.";
    FlagKeyTaken "FLAG_KEY_TAKEN" Conflict "Another flag or group of the app already has this key.";
    FlagGroupInUse "FLAG_GROUP_IN_USE" Conflict "Flags still use this group.";
    VersionMismatch "VERSION_MISMATCH" PreconditionFailed "The resource has changed since the version in `If-Match`.";
    RoleKeyTaken "ROLE_KEY_TAKEN" Conflict "Another role of this app already has this key.";
    RoleInUse "ROLE_IN_USE" Conflict "Members still have this role; assign them another one first.";
    OwnerRoleProtected "OWNER_ROLE_PROTECTED" Conflict "The OWNER role keeps its key and cannot be deleted.";
    DefaultRoleRequired "DEFAULT_ROLE_REQUIRED" Conflict "An app always has one default role; make another role the default instead.";
    PrivilegeKeyTaken "PRIVILEGE_KEY_TAKEN" Conflict "Another privilege of this app already has this key.";
    BuiltInPrivilege "BUILT_IN_PRIVILEGE" Conflict "Built-in privileges cannot be renamed or deleted, because operations require them.";
    LastPrivilege "LAST_PRIVILEGE" Conflict "A role would be left without any privilege.";
    ConnectionInUse "CONNECTION_IN_USE" Conflict "Workspaces still sign in through this federation connection.";
    PlanKeyTaken "PLAN_KEY_TAKEN" Conflict "Another plan of this app already has this key.";
    PlanInUse "PLAN_IN_USE" Conflict "Workspaces are still on this plan.";
    PrivilegeNotAllowed "PRIVILEGE_NOT_ALLOWED" Forbidden "A requested privilege is not among the app's `allowedTokenPrivileges`.";
    SecretStillSigns "SECRET_STILL_SIGNS" Conflict "The secret signs new API tokens; rotate it before you retire it.";
    TooManySecrets "TOO_MANY_SECRETS" Conflict "The app has too many secrets; retire some first.";
    InvalidScope "INVALID_SCOPE" Invalid "A requested scope is neither an OIDC scope nor a privilege of the app.";
    UnsupportedGrantType "UNSUPPORTED_GRANT_TYPE" Invalid "The token endpoint does not support this grant type.";
    UnknownClient "UNKNOWN_CLIENT" Unauthenticated "No app has this `client_id`.";
    MfaRequired "MFA_REQUIRED" Unauthenticated "A second factor is required to continue.";
    WrongCode "WRONG_CODE" Unauthenticated "The code is incorrect, has expired, or has already been used.";
    OriginNotAllowed "ORIGIN_NOT_ALLOWED" Forbidden "The request's `Origin` is missing or not among the app's allowed origins.";
    LoginMethodOff "LOGIN_METHOD_OFF" Forbidden "The app has turned this sign-in method off.";
    SignupDisabled "SIGNUP_DISABLED" Forbidden "The app does not allow self-service sign-up.";
    FormRejected "FORM_REJECTED" Forbidden "The form was not submitted from its own page in the same browser.";
    PasskeyRejected "PASSKEY_REJECTED" Invalid "The passkey's response does not match the challenge, the page or the credential.";
    CheckoutRequired "CHECKOUT_REQUIRED" Invalid "The plan has to be paid for; start a checkout instead.";
    SubscriptionRunning "SUBSCRIPTION_RUNNING" Conflict "A paid subscription is running; change or cancel it first.";
    TrialUsed "TRIAL_USED" Conflict "The workspace has already used its trial of this plan.";
    CheckoutUnpaid "CHECKOUT_UNPAID" Conflict "The checkout session has not been paid.";
    InvalidSignature "INVALID_SIGNATURE" Invalid "The signature is missing, too old, or not made with the shared secret.";
    NotSimulated "NOT_SIMULATED" Conflict "The subscription is not the sandbox's, or is in no state for this.";
    SubscriptionNotCancelled "SUBSCRIPTION_NOT_CANCELLED" Conflict "The payment provider refused to cancel the workspace's subscription.";
    NoWebhookUrl "NO_WEBHOOK_URL" Conflict "There is no URL to send webhook events to.";
    WebhookDisabled "WEBHOOK_DISABLED" Conflict "The webhook is disabled.";
    InvitationPending "INVITATION_PENDING" Conflict "The user was invited to the workspace and has not accepted yet.";
    QueryTooWide "QUERY_TOO_WIDE" Unavailable "The question takes too long to answer; ask for a shorter time or with fewer conditions.";
    EventsDamaged "EVENTS_DAMAGED" Internal "Some of the app's stored events cannot be read any more.";
    Internal "INTERNAL" Internal "Internal error; look up the request id in the server's log for the cause.";
    SsoRequired "SSO_REQUIRED" Unauthenticated "The workspace is opened through its identity provider only.";
    FederationRefused "FEDERATION_REFUSED" Invalid "The answer of an identity provider cannot be accepted; the audit trail says why.";
    FederationDenied "FEDERATION_DENIED" Forbidden "The identity provider's answer is good, but this person may not come in.";
    ReauthenticationRequired "REAUTHENTICATION_REQUIRED" Unauthenticated "The last sign-in was too long ago for this change, or did not ask for the second factor; sign in again.";
    LastWayIn "LAST_WAY_IN" Conflict "Without this the person could not sign in any more.";
    InvalidFilter "INVALID_FILTER" Invalid "A SCIM filter cannot be read, or names an attribute that the resource does not have.";
    InvalidPath "INVALID_PATH" Invalid "The path of a SCIM patch operation cannot be read, or names an attribute that the resource does not have.";
    NoTarget "NO_TARGET" Invalid "The path of a SCIM patch operation matches nothing that could be changed.";
    ReadOnly "READ_ONLY" Invalid "The attribute of a SCIM resource cannot be changed.";
    GroupExists "GROUP_EXISTS" Conflict "Another group of this workspace already has this name.";
    NotOffered "NOT_OFFERED" NotOffered "This part of a standard is not offered.";
}

/// A failure with a public face and, separately, what caused it. Only the public part ever leaves the process.
pub struct Error(Box<Inner>);

struct Inner {
    code: Code,
    public: Cow<'static, str>,
    details: Vec<FieldProblem>,
    retry_after: Option<Duration>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error whose message is written for the caller.
    pub fn new(code: Code, public: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner { code, public: public.into(), details: Vec::new(), retry_after: None, source: None }))
    }

    /// Something inside went wrong. The cause is logged, the caller learns nothing but the request id.
    pub fn internal(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(Code::Internal, "Something went wrong on our side. Quote the request id when you report it.")
            .with_source(source)
    }

    /// `what` is a noun as a user says it: "app", "API key".
    pub fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("There is no such {what}."))
    }

    /// A credential that is unknown, expired, revoked or malformed; `public` says which it was and what to do.
    pub fn credential(public: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::InvalidCredential, public)
    }

    /// One wrong field; for several collect [`crate::Problems`].
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::invalid_fields(vec![FieldProblem { field: field.into(), message: message.into() }])
    }

    pub fn invalid_fields(details: Vec<FieldProblem>) -> Self {
        let public = match details.as_slice() {
            [only] => format!("{} {}", only.field, only.message),
            several => format!("{} fields are missing or invalid; see details.", several.len()),
        };
        let mut error = Self::new(Code::ValidationFailed, public);
        error.0.details = details;
        error
    }

    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    pub fn with_retry_after(mut self, after: Duration) -> Self {
        self.0.retry_after = Some(after);
        self
    }

    pub fn code(&self) -> Code {
        self.0.code
    }

    pub fn kind(&self) -> Kind {
        self.0.code.kind()
    }

    /// The message for the caller.
    pub fn public(&self) -> &str {
        &self.0.public
    }

    pub fn details(&self) -> &[FieldProblem] {
        &self.0.details
    }

    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code().as_str(), self.public())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        for problem in self.details() {
            write!(f, "; {} {}", problem.field, problem.message)?;
        }
        let mut cause = self.source();
        while let Some(error) = cause {
            write!(f, "; caused by: {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

/// What somebody said who panicked.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_upper_snake() {
        let mut seen = std::collections::HashSet::new();
        for code in Code::ALL {
            assert!(seen.insert(code.as_str()), "{} is listed twice", code.as_str());
            assert!(code.as_str().chars().all(|c| c.is_ascii_uppercase() || c == '_'), "{}", code.as_str());
        }
    }

    #[test]
    fn an_internal_error_shows_its_cause_only_to_the_log() {
        let error = Error::internal("the disk is on fire");
        assert!(!error.public().contains("disk"));
        assert!(!error.to_string().contains("disk"));
        assert!(format!("{error:?}").contains("the disk is on fire"));
    }
}
