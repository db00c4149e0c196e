//! What others need to verify tokens: the discovery document and the public keys, both from memory.

use http::{HeaderMap, HeaderValue, header};
use kernel::{Error, Result};
use schemars::JsonSchema;
use serde::Serialize;
use vault::{JWKS_MAX_AGE, JwkSet};
use web::{IfNoneMatch, Json, Prewritten, Redirect, Routes, State, Tagged, WithHeaders};

use super::{OIDC_SCOPES, claims::ABOUT_CLAIMS};
use crate::Identity;

pub fn routes() -> Routes<Identity> {
    Routes::new("Token verification")
        .get("/auth/.well-known/openid-configuration", configuration, "The OpenID Connect discovery document")
        .any_origin()
        .get("/auth/.well-known/jwks.json", jwks, "Get the public keys that verify tokens")
        .description(
            "**All apps of an installation share these keys: a good signature alone proves nothing about your app. Accept an \
             access token only if `alg` is `PS256`, `typ` is `at+jwt`, `iss` is the `issuer` of the discovery document, `aud` is \
             your app's id and `exp` is in the future.** Never take the algorithm from the token.",
        )
        .any_origin()
        .get("/.well-known/openid-configuration", redirect, "Redirect to the discovery document")
        .any_origin()
}

/// OpenID Connect Discovery 1.0 §3.
#[derive(Serialize, JsonSchema)]
struct Configuration {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    userinfo_endpoint: String,
    revocation_endpoint: String,
    introspection_endpoint: String,
    end_session_endpoint: String,
    jwks_uri: String,
    response_types_supported: [&'static str; 1],
    response_modes_supported: [&'static str; 1],
    grant_types_supported: [&'static str; 2],
    subject_types_supported: [&'static str; 1],
    id_token_signing_alg_values_supported: [&'static str; 1],
    scopes_supported: [&'static str; 7],
    token_endpoint_auth_methods_supported: [&'static str; 1],
    /// Introspection asks for an app's key in `x-api-key`, for which no method has a name.
    revocation_endpoint_auth_methods_supported: [&'static str; 1],
    code_challenge_methods_supported: [&'static str; 1],
    authorization_response_iss_parameter_supported: bool,
    claims_supported: Vec<&'static str>,
    claims_parameter_supported: bool,
    request_parameter_supported: bool,
    request_uri_parameter_supported: bool,
}

async fn configuration(State(identity): State<Identity>) -> Result<WithHeaders<Json<Configuration>>> {
    let issuer = &identity.tenancy.issuer;
    let mut claims_supported = ABOUT_CLAIMS.to_vec();
    claims_supported.extend(["iss", "aud", "iat", "exp", "auth_time", "nonce", "sid"]);
    let configuration = Configuration {
        issuer: issuer.to_string(),
        authorization_endpoint: format!("{issuer}/authorize"),
        token_endpoint: format!("{issuer}/token"),
        userinfo_endpoint: format!("{issuer}/userinfo"),
        revocation_endpoint: format!("{issuer}/revoke"),
        introspection_endpoint: format!("{issuer}/introspect"),
        end_session_endpoint: format!("{issuer}/logout"),
        jwks_uri: format!("{issuer}/.well-known/jwks.json"),
        response_types_supported: ["code"],
        response_modes_supported: ["query"],
        grant_types_supported: ["authorization_code", "refresh_token"],
        subject_types_supported: ["public"],
        id_token_signing_alg_values_supported: ["PS256"],
        scopes_supported: OIDC_SCOPES,
        token_endpoint_auth_methods_supported: ["none"],
        revocation_endpoint_auth_methods_supported: ["none"],
        code_challenge_methods_supported: ["S256"],
        authorization_response_iss_parameter_supported: true,
        claims_supported,
        claims_parameter_supported: false,
        request_parameter_supported: false,
        request_uri_parameter_supported: false,
    };
    Ok(WithHeaders::new(Json(configuration)).with(header::CACHE_CONTROL, "public, max-age=300"))
}

/// The key set as it was rendered when it last changed.
async fn jwks(known: IfNoneMatch, State(identity): State<Identity>) -> Result<WithHeaders<Tagged<Prewritten<JwkSet>>>> {
    let jwks = identity.tenancy.signing_keys.jwks();
    let cached = format!("public, max-age={}", JWKS_MAX_AGE.as_secs());
    let cached = HeaderValue::try_from(cached).map_err(Error::internal)?;
    let tagged = Tagged::new(jwks.etag.clone(), &known, || Prewritten::new(jwks.body.clone()));
    Ok(WithHeaders(HeaderMap::from_iter([(header::CACHE_CONTROL, cached)]), tagged))
}

/// Where some clients look first.
async fn redirect(State(identity): State<Identity>) -> Result<Redirect> {
    Ok(Redirect(format!("{}/.well-known/openid-configuration", identity.tenancy.issuer)))
}
