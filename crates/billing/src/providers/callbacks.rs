//! `POST /account/payprovider/webhook/{id}`: what a payment provider tells. The raw body is verified before anything of it is
//! read, and an event that comes again is taken in once.

use ::store::Tx;
use kernel::{AppId, Code, Error, Result};
use serde::Deserialize;
use serde_json::Value;
use tenancy::{
    Tenancy, apps,
    credentials::{self, Credential},
};

use super::{signature::is_genuine, store, stripe};

/// As much of an event as is always there.
#[derive(Debug, Deserialize)]
struct EventHead {
    id: String,
    #[serde(rename = "type", default)]
    kind: Value,
}

/// Whether the event is new. What it asks for is kept with it, and done after the answer.
pub(super) fn receive(tx: &mut Tx<'_>, tenancy: &Tenancy, app: AppId, header: &str, body: &[u8]) -> Result<bool> {
    apps::get(tx, app)?;
    let invalid = || Error::new(Code::InvalidSignature, "The body was not signed with this app's webhook secret.");
    let secret = credentials::find(tx, tenancy, app, Credential::PayproviderWebhookSecret)?.ok_or_else(invalid)?;
    if !is_genuine(header, body, &secret, tx.now()) {
        return Err(invalid());
    }
    let event: EventHead = serde_json::from_slice(body)
        .map_err(|error| Error::new(Code::MalformedJson, format!("The body is not an event: {error}.")))?;
    if event.id.is_empty() || event.id.len() > 255 || event.id.contains('\0') {
        return Err(Error::invalid("id", "must have 1 to 255 characters"));
    }
    let text = std::str::from_utf8(body).ok().filter(|_| event.kind.as_str().is_some_and(stripe::events::matters));
    store::insert_event(tx, app, &event.id, text)
}
