//! An authorization request as it came in, and what is wrong with it. Once the redirect address is known to be the app's own,
//! what is wrong goes back there by its name from RFC 6749 or OpenID Connect. Pure.

use std::time::Duration;

use kernel::{Error, Result, Timestamp};
use tenancy::App;

use super::{LoginRequest, ResponseType, SignUpPreferences, redirects};
use crate::tokens::{DEFAULT_SCOPE, ScopeRequest};

/// The parameters of `/auth/authorize` and `/auth/url/…`, under one set of names.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuthorizationRequest {
    pub(crate) redirect_uri: Option<String>,
    pub(crate) response_type: Option<String>,
    pub(crate) response_mode: Option<String>,
    /// Whether there has to be a scope: the standard says so, the short forms have a default.
    pub(crate) needs_scope: bool,
    pub(crate) scope: Option<String>,
    pub(crate) state: Option<String>,
    pub(crate) nonce: Option<String>,
    pub(crate) code_challenge: Option<String>,
    pub(crate) code_challenge_method: Option<String>,
    pub(crate) prompt: Option<String>,
    pub(crate) max_age: Option<String>,
    pub(crate) login_hint: Option<String>,
    /// As it was written, because anything but `true` and `false` goes back to the app.
    pub(crate) signup: Option<String>,
    pub(crate) sign_up: Option<SignUpPreferences>,
    pub(crate) force_federation: Option<String>,
    pub(crate) federation_connection: Option<String>,
    /// A request object, by value or by reference, which is not supported.
    pub(crate) request: Option<String>,
    pub(crate) request_uri: Option<String>,
    /// Why the request cannot be read any further.
    pub(crate) malformed: Option<String>,
}

/// Why an app's request is refused, by the name that goes back to the app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthorizeRefusal {
    pub(crate) error: &'static str,
    pub(crate) description: String,
}

impl AuthorizeRefusal {
    pub(crate) fn new(error: &'static str, description: impl Into<String>) -> Self {
        Self { error, description: description.into() }
    }

    pub(crate) fn invalid(description: impl Into<String>) -> Self {
        Self::new("invalid_request", description)
    }
}

/// Whether and how the person is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Prompt {
    /// As little as needed.
    #[default]
    AsNeeded,
    /// Not at all: an active login, or an error.
    None,
    /// To prove again who they are.
    Login,
    /// To choose the workspace, or another account.
    Select,
}

pub(crate) const MAX_TEXT: usize = 4096;

impl AuthorizationRequest {
    /// The request with its redirect address, as far as it is needed to answer a refusal. An error when the address is
    /// not the app's: nobody may be sent there, not even with an error.
    pub(crate) fn addressed(&self, app: &App, field: &str) -> Result<LoginRequest> {
        let Some(uri) = redirects::registered(&app.profile, self.redirect_uri.as_deref()) else {
            return Err(match self.redirect_uri {
                Some(_) => Error::invalid(field, "must exactly match one of the app’s registered redirect URIs"),
                None => Error::invalid(field, "is required, because the app has no defaultCallbackUri"),
            });
        };
        // Where scope is required, so is `response_type=code`: another one is refused, in the query like every refusal there.
        let is_id_token = self.response_type.as_deref() == Some("id_token") && !self.needs_scope;
        Ok(LoginRequest {
            app: app.id,
            redirect_uri: uri.to_owned(),
            response_type: if is_id_token { ResponseType::IdToken } else { ResponseType::Code },
            scope: self.scope.clone().unwrap_or_default(),
            state: self.state.clone(),
            nonce: self.nonce.clone(),
            code_challenge: self.code_challenge.clone(),
            not_before: None,
            fresh: false,
            username: self.login_hint.clone().filter(|hint| hint.len() <= 254),
            sign_up: self.sign_up.clone(),
            invitation: None,
            forced: None,
            trial: false,
        })
    }

    /// Checks the rest.
    pub(crate) fn check(
        &self,
        app: &App,
        request: LoginRequest,
        now: Timestamp,
    ) -> Result<(LoginRequest, Prompt), AuthorizeRefusal> {
        if let Some(problem) = &self.malformed {
            return Err(AuthorizeRefusal::invalid(problem.clone()));
        }
        self.check_supported()?;
        self.check_challenge(app, request.response_type)?;
        let prompt = self.prompt()?;
        self.check_fragment(app, request.response_type, prompt)?;
        let scope = match self.scope.as_deref().map(str::trim).filter(|scope| !scope.is_empty()) {
            Some(scope) => scope.to_owned(),
            None if self.needs_scope => return Err(AuthorizeRefusal::new("invalid_scope", "scope is required")),
            None => DEFAULT_SCOPE.to_owned(),
        };
        let not_before = match (prompt, self.max_age()?) {
            (Prompt::Login, _) => Some(now),
            (_, Some(age)) => Some(now.minus(age)),
            (_, None) => None,
        };
        if self.sign_up.is_some() && !app.profile.tenant_self_signup {
            return Err(AuthorizeRefusal::new("access_denied", "this app does not allow self-service sign-up"));
        }
        Ok((LoginRequest { scope, not_before, fresh: prompt == Prompt::Login, ..request }, prompt))
    }

    fn check_supported(&self) -> Result<(), AuthorizeRefusal> {
        if self.request.is_some() {
            return Err(AuthorizeRefusal::new("request_not_supported", "request objects are not supported"));
        }
        if self.request_uri.is_some() {
            return Err(AuthorizeRefusal::new("request_uri_not_supported", "request objects are not supported"));
        }
        let mode_of_type = match self.response_type.as_deref() {
            Some("code") => "query",
            Some("id_token") if !self.needs_scope => "fragment",
            None => return Err(AuthorizeRefusal::invalid("response_type is required")),
            Some(_) => return Err(AuthorizeRefusal::new("unsupported_response_type", "response_type must be code")),
        };
        if self.response_mode.as_deref().is_some_and(|mode| mode != mode_of_type) {
            return Err(AuthorizeRefusal::invalid(format!("response_mode must be {mode_of_type}")));
        }
        if !matches!(self.signup.as_deref(), None | Some("true" | "false")) {
            return Err(AuthorizeRefusal::invalid("signup must be true or false"));
        }
        let texts =
            [("state", &self.state), ("nonce", &self.nonce), ("scope", &self.scope), ("login_hint", &self.login_hint)];
        for (name, text) in texts {
            if text.as_ref().is_some_and(|text| text.len() > MAX_TEXT) {
                return Err(AuthorizeRefusal::invalid(format!("{name} must not be longer than {MAX_TEXT} bytes")));
            }
        }
        self.check_federation()
    }

    /// Whether there is what is asked for is seen later; here it only has to make sense.
    fn check_federation(&self) -> Result<(), AuthorizeRefusal> {
        let known = ["directory-ad", "social-one", "social-two", "social-three", "social-four", "saml", "oidc"];
        let kind = self.force_federation.as_deref();
        if kind.is_some_and(|kind| !known.contains(&kind)) {
            return Err(AuthorizeRefusal::invalid(format!("force_federation must be one of {}", known.join(", "))));
        }
        let connects = self.federation_connection.is_some() || matches!(kind, Some("saml" | "oidc"));
        if connects && self.sign_up.is_some() {
            return Err(AuthorizeRefusal::invalid("nobody signs up through a workspace’s connection"));
        }
        Ok(())
    }

    /// RFC 7636, with S256 alone. A challenge without a method would mean `plain`.
    fn check_challenge(&self, app: &App, response_type: ResponseType) -> Result<(), AuthorizeRefusal> {
        match (self.code_challenge.as_deref(), self.code_challenge_method.as_deref()) {
            (Some(challenge), Some("S256")) if is_challenge(challenge) => Ok(()),
            (Some(_), Some("S256")) => Err(AuthorizeRefusal::invalid("code_challenge must be a SHA-256 in base64url")),
            (Some(_), _) => Err(AuthorizeRefusal::invalid("code_challenge_method must be S256")),
            (None, Some(_)) => Err(AuthorizeRefusal::invalid("code_challenge is required with code_challenge_method")),
            (None, None) if app.profile.require_pkce && response_type == ResponseType::Code => {
                Err(AuthorizeRefusal::invalid("code_challenge is required by this app"))
            }
            (None, None) => Ok(()),
        }
    }

    /// A token in a fragment is not bound to whoever asked for it as a code is by PKCE. So an app that insists on that gets
    /// none; and where nobody sees a page, `nonce` has to tell whose it is.
    fn check_fragment(&self, app: &App, response_type: ResponseType, prompt: Prompt) -> Result<(), AuthorizeRefusal> {
        if response_type == ResponseType::Code {
            return Ok(());
        }
        if app.profile.require_pkce {
            let why = "this app requires PKCE: response_type must be code";
            return Err(AuthorizeRefusal::new("unsupported_response_type", why));
        }
        if prompt == Prompt::None && self.nonce.as_deref().unwrap_or_default().is_empty() {
            return Err(AuthorizeRefusal::invalid("nonce is required for id_token with prompt=none"));
        }
        Ok(())
    }

    fn prompt(&self) -> Result<Prompt, AuthorizeRefusal> {
        let words: Vec<&str> = self.prompt.as_deref().unwrap_or_default().split_whitespace().collect();
        if words.contains(&"none") {
            return if words.len() == 1 {
                Ok(Prompt::None)
            } else {
                Err(AuthorizeRefusal::invalid("prompt=none stands alone"))
            };
        }
        let asked = |word: &str| words.contains(&word);
        Ok(match (asked("login"), asked("select_account")) {
            (true, _) => Prompt::Login,
            (false, true) => Prompt::Select,
            (false, false) => Prompt::AsNeeded,
        })
    }

    fn max_age(&self) -> Result<Option<Duration>, AuthorizeRefusal> {
        let Some(text) = self.max_age.as_deref() else { return Ok(None) };
        let seconds: u32 =
            text.parse().map_err(|_| AuthorizeRefusal::invalid("max_age must be a number of seconds"))?;
        Ok(Some(Duration::from_secs(seconds.into())))
    }

    pub(crate) fn asked_scope(request: &LoginRequest) -> ScopeRequest {
        ScopeRequest::or_default(Some(&request.scope))
    }
}

fn is_challenge(text: &str) -> bool {
    text.len() == 43 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

#[cfg(test)]
mod tests {
    use kernel::AppId;
    use proptest::prelude::*;
    use tenancy::apps::Profile;

    use super::*;

    const REDIRECT: &str = "https://app.example/callback";

    fn app(require_pkce: bool) -> App {
        let profile = Profile { redirect_uris: vec![REDIRECT.into()], require_pkce, ..Profile::default() };
        App { id: AppId::from_u128(1), profile, created_at: Timestamp::from_seconds(0), version: 1 }
    }

    /// What is there, what is nearly right, and anything at all.
    fn text(known: &'static [&'static str]) -> impl Strategy<Value = Option<String>> {
        let known = prop::sample::select(known).prop_map(str::to_owned);
        prop::option::weighted(0.7, prop_oneof![3 => known, 1 => any::<String>()])
    }

    fn any_request() -> impl Strategy<Value = AuthorizationRequest> {
        let kind = (text(&["code", "id_token", "token"]), text(&["query", "fragment", "form_post"]), any::<bool>());
        let challenge = text(&["E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "short"]);
        let how = (text(&["none", "login", "select_account", "none login"]), text(&["0", "60", "-1", "soon"]));
        let words = (text(&["openid", "openid email", " "]), text(&["s"]), text(&["n"]), text(&["ada@example.com"]));
        (kind, challenge, text(&["S256", "plain"]), how, words, text(&["saml"])).prop_map(
            |((response_type, response_mode, needs_scope), challenge, method, how, words, federation)| {
                AuthorizationRequest {
                    redirect_uri: Some(REDIRECT.into()),
                    response_type,
                    response_mode,
                    needs_scope,
                    scope: words.0,
                    state: words.1,
                    nonce: words.2,
                    login_hint: words.3,
                    code_challenge: challenge,
                    code_challenge_method: method,
                    prompt: how.0,
                    max_age: how.1,
                    force_federation: federation,
                    ..AuthorizationRequest::default()
                }
            },
        )
    }

    proptest! {
        #[test]
        fn what_passes_is_what_can_be_kept(asked in any_request(), require_pkce: bool) {
            let app = app(require_pkce);
            let addressed = asked.addressed(&app, "redirect_uri").unwrap();
            prop_assert_eq!(&addressed.redirect_uri, REDIRECT);
            let now = Timestamp::from_seconds(1_000_000);
            match asked.check(&app, addressed, now) {
                Err(refusal) => prop_assert!(!refusal.error.is_empty() && refusal.error.is_ascii()),
                Ok((request, prompt)) => {
                    prop_assert!(!request.scope.trim().is_empty());
                    prop_assert!(request.code_challenge.as_deref().is_none_or(is_challenge));
                    let is_code = request.response_type == ResponseType::Code;
                    prop_assert!(request.code_challenge.is_some() || !require_pkce);
                    prop_assert!(is_code || !require_pkce && (prompt != Prompt::None || request.nonce.is_some()));
                    prop_assert!(request.not_before.is_none_or(|at| at <= now));
                    prop_assert!(prompt != Prompt::Login || request.not_before == Some(now));
                    prop_assert_eq!(request.state, asked.state);
                    prop_assert!(matches!(asked.force_federation.as_deref(), None | Some("saml")));
                }
            }
        }
    }

    #[test]
    fn an_address_that_is_not_the_apps_is_never_answered() {
        for foreign in ["https://evil.example", "https://app.example/callback/", ""] {
            let asked = AuthorizationRequest { redirect_uri: Some(foreign.into()), ..AuthorizationRequest::default() };
            assert!(asked.addressed(&app(false), "redirect_uri").is_err(), "{foreign}");
        }
        assert!(AuthorizationRequest::default().addressed(&app(false), "redirectUri").is_err(), "there is no default");
    }
}
