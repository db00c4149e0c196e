//! What an operator wants to know of a connection beside what it was set to: what the identity provider has to be told, until when its
//! certificates are valid, and what became of the last logins.

use kernel::{Result, Timestamp};
use saml::Certificates;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Connection, Protocol};

/// A connection, with all that is known of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FederationConnection")]
pub struct ConnectionDetails {
    #[serde(flatten)]
    connection: Connection,
    /// Where SAML responses are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    acs_url: Option<String>,
    /// Where this service's SAML metadata is.
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata_url: Option<String>,
    /// What the SAML identity provider knows this service as.
    #[serde(skip_serializing_if = "Option::is_none")]
    entity_id: Option<String>,
    /// The redirect address to register at an OpenID Connect provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    callback_url: Option<String>,
    /// Of the identity provider; their dates are shown and not enforced.
    certificates: Vec<CertificateDates>,
    last_success_at: Option<Timestamp>,
    last_failure: Option<ConnectionFailure>,
}

/// A certificate by its subject.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CertificateDates {
    subject: String,
    valid_from: Timestamp,
    valid_until: Timestamp,
}

/// A login that was refused.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct ConnectionFailure {
    at: Timestamp,
    /// The step that refused it.
    step: String,
}

impl ConnectionDetails {
    pub(super) fn of(connection: Connection, base_url: &str) -> Result<Self> {
        let is_saml = connection.protocol == Protocol::Saml;
        let saml = |text: String| is_saml.then_some(text);
        let dates = Certificates::describe(&connection.certificate)?.into_iter().map(|described| CertificateDates {
            subject: described.subject,
            valid_from: described.valid_from,
            valid_until: described.valid_until,
        });
        let failed = connection.last_failure_at.zip(connection.last_failure_step.clone());
        Ok(Self {
            acs_url: saml(connection.acs_url(base_url)),
            metadata_url: saml(connection.metadata_url(base_url)),
            entity_id: saml(connection.entity_id(base_url)),
            callback_url: (!is_saml).then(|| connection.callback_url(base_url)),
            certificates: dates.collect(),
            last_success_at: connection.last_success_at,
            last_failure: failed.map(|(at, step)| ConnectionFailure { at, step }),
            connection,
        })
    }
}
