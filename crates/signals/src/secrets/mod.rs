//! The secrets that sign deliveries. Each endpoint has one that is current, and for five minutes after a rotation the
//! ones before it sign too, so that a receiver can be changed over without losing anything.

mod signature;
mod store;

use std::time::Duration;

use ::store::Tx;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use kernel::{AppId, Error, Result, Secret, Timestamp, id_kinds};
use schemars::JsonSchema;
use serde::Serialize;
use spine::emit;
use vault::{Keyring, Place};

pub use signature::{SigningSecret, headers};
pub(crate) use store::without_secret;

use crate::{
    endpoints::{EndpointId, is_of_profile},
    facts::WebhookSecretRotated,
};

id_kinds! {
    /// A signing secret's row.
    WebhookSecretId(WebhookSecretKind) = "whsecret";
}

/// How long a secret that was replaced still signs.
pub const GRACE: Duration = Duration::from_secs(5 * 60);

/// A secret, for whoever has to configure the receiver.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretView {
    /// `whsec_` and base64.
    pub secret: String,
    /// Since when it signs.
    pub rotated_at: Timestamp,
}

/// Makes the endpoint's first secret, unless it has one.
pub fn ensure(tx: &mut Tx<'_>, keyring: &Keyring, app: AppId, endpoint: EndpointId) -> Result<()> {
    if store::current(tx, app, endpoint)?.is_some() {
        return Ok(());
    }
    create(tx, keyring, app, endpoint).map(|_| ())
}

/// The endpoint's current secret, which is made when it has none yet.
pub fn current(tx: &mut Tx<'_>, keyring: &Keyring, app: AppId, endpoint: EndpointId) -> Result<SecretView> {
    ensure(tx, keyring, app, endpoint)?;
    let sealed = store::current(tx, app, endpoint)?.ok_or_else(|| Error::not_found("signing secret"))?;
    Ok(SecretView { rotated_at: sealed.created_at, secret: open(keyring, &sealed)?.into_exposed() })
}

/// Puts a new secret in the place of the current one. The caller holds the app's lock.
pub fn rotate(tx: &mut Tx<'_>, keyring: &Keyring, app: AppId, endpoint: EndpointId) -> Result<SecretView> {
    store::replace(tx, app, endpoint, tx.now().plus(GRACE))?;
    let secret = create(tx, keyring, app, endpoint)?;
    let endpoint_id = (!is_of_profile(endpoint, app)).then_some(endpoint);
    emit(tx, app, &WebhookSecretRotated { endpoint_id })?;
    Ok(SecretView { secret, rotated_at: tx.now() })
}

/// What signs for these endpoints now, newest first.
pub fn signing(
    tx: &mut Tx<'_>,
    keyring: &Keyring,
    endpoints: &[EndpointId],
) -> Result<Vec<(EndpointId, SigningSecret)>> {
    let sealed = store::signing(tx, endpoints)?;
    sealed.iter().map(|sealed| Ok((sealed.endpoint, SigningSecret::new(&open(keyring, sealed)?)?))).collect()
}

/// Nothing is signed for the endpoint any more.
pub(crate) fn delete(tx: &mut Tx<'_>, app: AppId, endpoint: EndpointId) -> Result<()> {
    store::delete(tx, app, endpoint)
}

fn create(tx: &mut Tx<'_>, keyring: &Keyring, app: AppId, endpoint: EndpointId) -> Result<String> {
    let id: WebhookSecretId = tx.new_id();
    let secret = format!("{}{}", signature::PREFIX, BASE64_STANDARD.encode(tx.entropy().bytes::<32>()));
    let sealed = keyring.seal(&place(&id.to_string(), app), secret.as_bytes());
    store::insert(tx, id, app, endpoint, &sealed)?;
    Ok(secret)
}

fn open(keyring: &Keyring, sealed: &store::SealedSecret) -> Result<Secret<String>> {
    let secret = keyring.open(&place(&sealed.id.to_string(), sealed.app), &sealed.sealed)?;
    String::from_utf8(secret.into_exposed()).map(Secret::new).map_err(|_| Error::internal("a signing secret is text"))
}

fn place(id: &str, app: AppId) -> Place<'_> {
    Place { table: "webhook_secrets", column: "sealed", row: id, app: Some(app) }
}
