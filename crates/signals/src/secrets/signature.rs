//! How a delivery is signed: in the form of this service and in that of Standard Webhooks, over the bytes that are sent.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use kernel::{Error, Result, Secret, Timestamp};
use spine::outbound::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use vault::{hmac_sha256, hmac_sha256_hex};

pub(super) const PREFIX: &str = "whsec_";

/// A secret that is ready to sign.
#[derive(Clone)]
pub struct SigningSecret {
    /// The whole text, which is the key of `Service-Signature`.
    text: Secret<String>,
    /// What the text encodes, which is the key of `webhook-signature`.
    bytes: Secret<Vec<u8>>,
}

impl SigningSecret {
    pub fn new(text: Secret<String>) -> Result<Self> {
        let bytes = text.expose().strip_prefix(PREFIX).and_then(|encoded| BASE64_STANDARD.decode(encoded).ok());
        let bytes = bytes.ok_or_else(|| Error::internal("a signing secret is whsec_ and base64"))?;
        Ok(Self { text, bytes: Secret::new(bytes) })
    }
}

/// The headers of one attempt: who it is for, and one signature per secret, in their order.
pub fn headers(id: &str, event_type: &str, body: &str, at: Timestamp, secrets: &[SigningSecret]) -> Result<HeaderMap> {
    if secrets.is_empty() {
        return Err(Error::internal("there is no secret to sign with"));
    }
    let t = at.as_seconds().to_string();
    let own = format!("{t}.{body}");
    let standard = format!("{id}.{t}.{body}");
    let (mut signature, mut standard_signatures) = (format!("t={t}"), Vec::new());
    for secret in secrets {
        signature.push_str(",v1=");
        signature.push_str(&hmac_sha256_hex(secret.text.expose().as_bytes(), own.as_bytes()));
        let tag = hmac_sha256(secret.bytes.expose(), standard.as_bytes());
        standard_signatures.push(format!("v1,{}", BASE64_STANDARD.encode(tag)));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in [
        (HeaderName::from_static("service-signature"), signature.as_str()),
        (HeaderName::from_static("service-event-id"), id),
        (HeaderName::from_static("service-event-type"), event_type),
        (HeaderName::from_static("webhook-id"), id),
        (HeaderName::from_static("webhook-timestamp"), &t),
        (HeaderName::from_static("webhook-signature"), &standard_signatures.join(" ")),
        (CONTENT_TYPE, "application/json"),
    ] {
        headers.insert(name, HeaderValue::from_str(value).map_err(Error::internal)?);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked out with OpenSSL.
    #[test]
    fn both_forms_are_as_described() {
        let text = format!("{PREFIX}{}", BASE64_STANDARD.encode([7; 32]));
        let secret = SigningSecret::new(Secret::new(text)).expect("a secret");
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
