//! How a delivery is signed: in the form of this service and in that of Standard Webhooks, over the bytes that are sent.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use kernel::{Error, Result, Secret, Timestamp};
use spine::outbound::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use vault::MacKey;

pub(super) const PREFIX: &str = "whsec_";

/// A secret that is ready to sign.
#[derive(Clone)]
pub struct SigningSecret {
    /// Of `Service-Signature`: the whole text.
    own: MacKey,
    /// Of `webhook-signature`: what the text encodes.
    standard: MacKey,
}

impl SigningSecret {
    pub fn new(text: &Secret<String>) -> Result<Self> {
        let text = text.expose();
        let bytes = text.strip_prefix(PREFIX).and_then(|encoded| BASE64_STANDARD.decode(encoded).ok());
        let bytes = bytes.ok_or_else(|| Error::internal("a signing secret is whsec_ and base64"))?;
        Ok(Self { own: MacKey::new(text.as_bytes()), standard: MacKey::new(&bytes) })
    }
}

static SERVICE_SIGNATURE: HeaderName = HeaderName::from_static("service-signature");
static SERVICE_EVENT_ID: HeaderName = HeaderName::from_static("service-event-id");
static SERVICE_EVENT_TYPE: HeaderName = HeaderName::from_static("service-event-type");
static WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
static WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
static WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// The headers of one attempt: who it is for, and one signature per secret, in their order.
pub fn headers(id: &str, event_type: &str, body: &str, at: Timestamp, secrets: &[SigningSecret]) -> Result<HeaderMap> {
    if secrets.is_empty() {
        return Err(Error::internal("there is no secret to sign with"));
    }
    let t = at.as_seconds().to_string();
    let (mut own, mut standard) = (format!("t={t}"), String::new());
    let (stamp, dot, bytes) = (t.as_bytes(), b".".as_slice(), body.as_bytes());
    for secret in secrets {
        own.push_str(",v1=");
        own.push_str(&secret.own.sign_hex(&[stamp, dot, bytes]));
        standard.push_str(if standard.is_empty() { "v1," } else { " v1," });
        BASE64_STANDARD.encode_string(secret.standard.sign(&[id.as_bytes(), dot, stamp, dot, bytes]), &mut standard);
    }
    let id = HeaderValue::from_str(id).map_err(Error::internal)?;
    let mut headers = HeaderMap::with_capacity(7);
    headers.insert(&SERVICE_SIGNATURE, HeaderValue::try_from(own).map_err(Error::internal)?);
    headers.insert(&SERVICE_EVENT_ID, id.clone());
    headers.insert(&SERVICE_EVENT_TYPE, HeaderValue::from_str(event_type).map_err(Error::internal)?);
    headers.insert(&WEBHOOK_ID, id);
    headers.insert(&WEBHOOK_TIMESTAMP, HeaderValue::try_from(t).map_err(Error::internal)?);
    headers.insert(&WEBHOOK_SIGNATURE, HeaderValue::try_from(standard).map_err(Error::internal)?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked out with OpenSSL.
    #[test]
    fn both_forms_are_as_described() {
        let text = format!("{PREFIX}{}", BASE64_STANDARD.encode([7; 32]));
        let secret = SigningSecret::new(&Secret::new(text)).expect("a secret");
        let at = Timestamp::from_seconds(1_700_000_000);
        let headers = headers("evt_1", "tenant.created", "{}", at, &[secret.clone(), secret]).expect("headers");
        let header = |name: &str| headers[name].to_str().expect("text").to_owned();
        let own = "v1=bf2cb3ad9a0ec27c1ec3f40436f35758d059d90c16ae2acb2e1eaadef1d8fb8b";
        assert_eq!(header("service-signature"), format!("t=1700000000,{own},{own}"));
        let standard = "v1,a1DASGgVAakARPzCBfaKZ61ux1lULadh72WCLbrcpuA=";
        assert_eq!(header("webhook-signature"), format!("{standard} {standard}"));
        assert_eq!(header("webhook-timestamp"), "1700000000");
    }
}
