//! This service towards one connection's identity provider: its names, its key, what it asks and what it expects.

use std::sync::Arc;

use kernel::{AppId, Result, Secret, Timestamp};
use saml::{
    AuthnRequest, Certificates, DecryptionKey, Expected, Refusal, RequestHash, RequestKey, Statement, judge,
    metadata::{ServiceProvider, self_signed},
};
use tenancy::{
    Tenancy,
    federation::{Connection, SigningAlgorithm},
};

use super::{PendingFederation, request_id};

pub(super) struct Party<'a> {
    tenancy: &'a Tenancy,
    app: AppId,
    pub(super) connection: &'a Connection,
    entity_id: String,
    acs_url: String,
}

impl<'a> Party<'a> {
    pub(super) fn new(tenancy: &'a Tenancy, app: AppId, connection: &'a Connection) -> Self {
        let base_url = &tenancy.base_url;
        Self {
            tenancy,
            app,
            connection,
            entity_id: connection.entity_id(base_url),
            acs_url: connection.acs_url(base_url),
        }
    }

    /// What requests are signed with, if they are: the first of several, which are there while keys are rolled over.
    fn keys(&self) -> Result<Vec<RequestKey>> {
        let Some(pem) = self.connection.private_key(&self.tenancy.keyring, self.app)? else { return Ok(Vec::new()) };
        let pem = Secret::new(String::from_utf8_lossy(pem.expose()).into_owned());
        let hash = match self.connection.signed_request_algorithm {
            Some(SigningAlgorithm::Sha512) => RequestHash::Sha512,
            _ => RequestHash::Sha256,
        };
        RequestKey::all_from_pem(&pem, hash)
    }

    /// The key, if requests are signed.
    pub(super) fn request_key(&self) -> Result<Option<RequestKey>> {
        if self.connection.signed_request { Ok(self.keys()?.into_iter().next()) } else { Ok(None) }
    }

    pub(super) fn request<'r>(
        &'r self,
        id: &'r str,
        relay_state: &'r str,
        issued_at: Timestamp,
        force_authn: bool,
        login_hint: Option<&'r str>,
    ) -> AuthnRequest<'r> {
        AuthnRequest {
            id,
            issued_at,
            login_url: &self.connection.login_url,
            acs_url: &self.acs_url,
            entity_id: &self.entity_id,
            force_authn,
            relay_state,
            login_hint,
        }
    }

    /// With the certificates that assertions may be encrypted for.
    pub(super) fn metadata(&self, encryption_certificates: &[Vec<u8>]) -> Result<String> {
        let host = self.tenancy.base_url.split("://").nth(1).unwrap_or_default();
        let certificates = self.keys()?.into_iter().map(|key| self_signed(&key, host, self.connection.created_at));
        let certificates = certificates.collect::<Result<Vec<_>>>()?;
        let metadata = ServiceProvider {
            entity_id: &self.entity_id,
            acs_url: &self.acs_url,
            signing_certificates: &certificates,
            signs_requests: self.connection.signed_request,
            encryption_certificates,
        };
        Ok(metadata.xml())
    }

    /// Judges an answer to a pending login.
    pub(super) fn judge(
        &self,
        pending: &PendingFederation,
        response: &str,
        keys: &[Arc<DecryptionKey>],
        now: Timestamp,
    ) -> Result<std::result::Result<Statement, Refusal>> {
        let certificates = Certificates::from_pem(&self.connection.certificate)?;
        let request_id = request_id(&pending.id);
        let expected = Expected {
            certificates: &certificates,
            decryption_keys: keys,
            issuer: self.connection.idp_entity_id.as_deref(),
            entity_id: &self.entity_id,
            acs_url: &self.acs_url,
            request_id: &request_id,
            now,
            authenticated_since: pending.authenticated_since,
        };
        Ok(judge(response, &expected))
    }
}
