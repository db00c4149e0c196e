//! What a federation connection must look like. Pure.

use kernel::{HostName, Name, Problems, Result, Secret, WebUrl, Words};
use schemars::JsonSchema;
use serde::Deserialize;
use vault::{is_certificate, is_signing_key};
use web::{Given, Patch, Validate};

use super::{Connection, Domains, Protocol, RequestMethod, SigningAlgorithm};

/// The body of `POST /account/federation/connection`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "NewFederationConnection")]
pub struct NewConnection {
    /// Shown to people when they sign in.
    // Read without it, so that whatever else is missing can be told too; the schema asks for it.
    #[serde(default)]
    #[schemars(required)]
    pub name: Option<Name>,
    /// Where people sign in, an http or https URL. Required for SAML.
    pub login_url: Option<WebUrl>,
    /// One or more X.509 certificates, PEM. Required for SAML.
    #[schemars(extend("format" = "pem-certificate"))]
    pub certificate: Option<Words>,
    /// `saml` unless given.
    #[serde(rename = "type")]
    pub protocol: Option<Protocol>,
    /// Required for OpenID Connect.
    pub client_id: Option<Words>,
    /// What the OpenID Connect provider calls itself, below which its discovery document is found.
    pub issuer: Option<WebUrl>,
    /// Required for OpenID Connect. Never returned.
    pub client_secret: Option<Secret<Words>>,
    /// Of OpenID Connect; `openid email profile` unless given.
    pub scopes: Option<Words>,
    /// GET unless given.
    pub request_method: Option<RequestMethod>,
    pub signed_request: Option<bool>,
    /// Required when requests are signed.
    pub signed_request_algorithm: Option<SigningAlgorithm>,
    /// Required when requests are signed: an RSA or EC key, PEM. Of several the first signs, and all are in the metadata. Never returned.
    #[schemars(extend("format" = "pem-private-key"))]
    pub private_key: Option<Secret<String>>,
    /// Another name for `privateKey`.
    #[schemars(extend("format" = "pem-private-key"))]
    pub signed_request_private_key: Option<Secret<String>>,
    /// What the identity provider calls itself in its answers.
    pub idp_entity_id: Option<Words>,
    /// Whether its word that two factors were shown counts; true unless given.
    pub trust_mfa: Option<bool>,
    /// Addresses in these domains are sent here although nobody knows them yet.
    pub domains: Option<Vec<HostName>>,
}

/// The body of `PUT /account/federation/connection/{connection_id}`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "FederationConnectionChange")]
pub struct ConnectionChange {
    pub name: Given<Name>,
    pub login_url: Given<WebUrl>,
    #[schemars(extend("format" = "pem-certificate"))]
    pub certificate: Given<Words>,
    /// Stays as it is.
    #[serde(rename = "type")]
    pub protocol: Given<Protocol>,
    pub client_id: Patch<Words>,
    pub issuer: Given<WebUrl>,
    pub client_secret: Given<Secret<Words>>,
    pub scopes: Given<Words>,
    pub request_method: Given<RequestMethod>,
    pub signed_request: Given<bool>,
    pub signed_request_algorithm: Patch<SigningAlgorithm>,
    #[schemars(extend("format" = "pem-private-key"))]
    pub private_key: Patch<Secret<String>>,
    /// Another name for `privateKey`.
    #[schemars(extend("format" = "pem-private-key"))]
    pub signed_request_private_key: Patch<Secret<String>>,
    /// `null` clears it: the next accepted answer about an OWNER tells again.
    pub idp_entity_id: Patch<Words>,
    pub trust_mfa: Given<bool>,
    /// `null` clears the list.
    pub domains: Patch<Vec<HostName>>,
}

const NEEDED: &str = "is required when requests are signed";
const OF_OIDC: &str = "is required for OpenID Connect";
const DEFAULT_SCOPES: &str = "openid email profile";

impl Validate for NewConnection {
    fn validate(&self, problems: &mut Problems) {
        problems.check("name", self.name.is_some(), "is required");
        match self.protocol.unwrap_or_default() {
            Protocol::Saml => {
                problems.check("loginUrl", self.login_url.is_some(), "is required");
                problems.check("certificate", self.certificate.is_some(), "is required");
            }
            Protocol::Oidc => {
                problems.check("issuer", self.issuer.is_some(), OF_OIDC);
                problems.check("clientId", self.client_id.is_some(), OF_OIDC);
                problems.check("clientSecret", self.client_secret.is_some(), OF_OIDC);
            }
        }
        if let Some(pem) = &self.certificate {
            certificate(problems, pem);
        }
        keys(problems, self.private_key.as_ref(), self.signed_request_private_key.as_ref());
        if self.signed_request == Some(true) {
            problems.check("signedRequestAlgorithm", self.signed_request_algorithm.is_some(), NEEDED);
            problems.check("privateKey", self.key().is_some(), NEEDED);
        }
    }
}

impl NewConnection {
    pub(super) fn key(&self) -> Option<&Secret<String>> {
        self.private_key.as_ref().or(self.signed_request_private_key.as_ref())
    }

    /// `None` for SAML, which has none.
    pub(super) fn scopes(&self) -> Option<String> {
        let given = self.scopes.as_deref().map(with_openid);
        match self.protocol.unwrap_or_default() {
            Protocol::Saml => None,
            Protocol::Oidc => Some(given.unwrap_or_else(|| DEFAULT_SCOPES.to_owned())),
        }
    }
}

/// Without `openid` there is no ID token.
fn with_openid(scopes: &str) -> String {
    let words: Vec<&str> = scopes.split_whitespace().filter(|word| *word != "openid").collect();
    ["openid"].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

impl Validate for ConnectionChange {
    fn validate(&self, problems: &mut Problems) {
        self.certificate.value().inspect(|pem| certificate(problems, pem));
        keys(problems, self.private_key.value(), self.signed_request_private_key.value());
    }
}

impl ConnectionChange {
    /// Everything but the private key, which has to be sealed.
    pub(super) fn applied_to(&self, connection: Connection) -> Connection {
        Connection {
            name: self.name.clone().or(connection.name),
            client_id: self.client_id.clone().apply(connection.client_id),
            login_url: self.login_url.clone().or(connection.login_url),
            certificate: self.certificate.value().map_or(connection.certificate, |pem| pem.trim().to_owned()),
            issuer: self.issuer.value().map(|issuer| issuer.to_string()).or(connection.issuer),
            scopes: self.scopes.value().map(|scopes| with_openid(scopes)).or(connection.scopes),
            request_method: self.request_method.or(connection.request_method),
            signed_request: self.signed_request.or(connection.signed_request),
            signed_request_algorithm: self.signed_request_algorithm.apply(connection.signed_request_algorithm),
            idp_entity_id: self.idp_entity_id.clone().apply(connection.idp_entity_id),
            trust_mfa: self.trust_mfa.or(connection.trust_mfa),
            domains: self.domains.map(|given| Domains::of(given)).apply(Some(connection.domains)).unwrap_or_default(),
            ..connection
        }
    }

    pub(super) fn key(&self) -> &Patch<Secret<String>> {
        if self.private_key.is_missing() { &self.signed_request_private_key } else { &self.private_key }
    }
}

/// A connection stays of the type that it was made with, and takes no members of the other.
pub(super) fn check_type(before: &Connection, change: &ConnectionChange) -> Result<()> {
    let mut problems = Problems::new();
    let is_other = change.protocol.value().is_some_and(|protocol| *protocol != before.protocol);
    problems.check("type", !is_other, "cannot be changed: create another connection");
    match before.protocol {
        Protocol::Saml => {
            problems.check("issuer", change.issuer.value().is_none(), "belongs to OpenID Connect");
            problems.check("clientSecret", change.client_secret.value().is_none(), "belongs to OpenID Connect");
            problems.check("scopes", change.scopes.value().is_none(), "belongs to OpenID Connect");
        }
        Protocol::Oidc => {
            problems.check("loginUrl", change.login_url.value().is_none(), "belongs to SAML");
            problems.check("certificate", change.certificate.value().is_none(), "belongs to SAML");
            problems.check("clientId", change.client_id != Patch::Null, OF_OIDC);
        }
    }
    problems.finish()
}

/// A connection that signs its requests keeps what it signs with, whatever a partial change left out.
pub(super) fn check_signing(connection: &Connection) -> Result<()> {
    let mut problems = Problems::new();
    if connection.signed_request {
        problems.check("signedRequestAlgorithm", connection.signed_request_algorithm.is_some(), NEEDED);
        problems.check("privateKey", connection.sealed_private_key.is_some(), NEEDED);
    }
    problems.finish()
}

fn certificate(problems: &mut Problems, pem: &str) {
    problems.check("certificate", is_certificate(pem), "must be an X.509 certificate in PEM");
}

fn keys(problems: &mut Problems, key: Option<&Secret<String>>, alias: Option<&Secret<String>>) {
    for (field, key) in [("privateKey", key), ("signedRequestPrivateKey", alias)] {
        if let Some(key) = key {
            problems.check(field, is_signing_key(key), "must be an RSA or EC private key in PEM, or several in a row");
        }
    }
    let differ = key.zip(alias).is_some_and(|(key, alias)| key != alias);
    problems.check("signedRequestPrivateKey", !differ, "must be the same as privateKey, or left out");
}

#[cfg(test)]
mod tests {
    use kernel::Timestamp;

    use super::*;
    use crate::federation::ConnectionId;

    fn signing() -> Connection {
        Connection {
            id: ConnectionId::from_u128(1),
            protocol: Protocol::Saml,
            name: "Acme".into(),
            client_id: Some("acme".into()),
            login_url: "https://idp.example/sso".into(),
            certificate: "pem".into(),
            issuer: None,
            scopes: None,
            request_method: RequestMethod::Get,
            signed_request: true,
            signed_request_algorithm: Some(SigningAlgorithm::Sha256),
            idp_entity_id: None,
            trust_mfa: true,
            domains: Domains::default(),
            created_at: Timestamp::from_micros(0),
            last_success_at: None,
            last_failure_at: None,
            last_failure_step: None,
            sealed_private_key: Some("sealed".into()),
            sealed_client_secret: None,
        }
    }

    fn change(json: &str) -> ConnectionChange {
        web::from_json(json.as_bytes()).expect("a valid change")
    }

    #[test]
    fn a_partial_change_cannot_take_away_what_requests_are_signed_with() {
        let checked = |json: &str| check_signing(&change(json).applied_to(signing()));
        assert!(checked("{}").is_ok());
        assert!(checked(r#"{"signedRequestAlgorithm":"sha512"}"#).is_ok());
        assert!(checked(r#"{"signedRequestAlgorithm":null,"signedRequest":false}"#).is_ok());
        let error = checked(r#"{"signedRequestAlgorithm":null}"#).expect_err("still signs");
        assert_eq!(error.details()[0].field, "signedRequestAlgorithm");
        let keyless = Connection { sealed_private_key: None, ..signing() };
        assert_eq!(check_signing(&keyless).expect_err("no key").details()[0].field, "privateKey");
    }

    #[test]
    fn both_names_of_the_key_are_understood() {
        assert_eq!(change(r#"{"signedRequestPrivateKey":null}"#).key(), &Patch::Null);
        assert_eq!(change(r#"{"privateKey":null}"#).key(), &Patch::Null);
        assert_eq!(change("{}").key(), &Patch::Missing);
    }

    #[test]
    fn every_wrong_member_is_named() {
        let new = r#"{"name":" ","loginUrl":"ftp://x","certificate":"x","signedRequest":true,"privateKey":"x"}"#;
        let error = web::from_json::<NewConnection>(new.as_bytes()).expect_err("nothing fits");
        let fields: Vec<_> = error.details().iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(fields, ["name", "loginUrl", "certificate", "privateKey", "signedRequestAlgorithm"]);
        let missing = |new: &[u8]| -> Vec<String> {
            let error = web::from_json::<NewConnection>(new).expect_err("all is missing");
            error.details().iter().map(|problem| problem.field.clone()).collect()
        };
        assert_eq!(missing(b"{}"), ["name", "loginUrl", "certificate"]);
        assert_eq!(missing(br#"{"type":"oidc","name":null}"#), ["name", "issuer", "clientId", "clientSecret"]);
    }
}
