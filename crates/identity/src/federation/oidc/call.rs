//! Calls to a provider: ten seconds, no redirects, 256 KiB.

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use kernel::Secret;
use serde::de::DeserializeOwned;
use spine::outbound::{Answer, BodyLimit, Failure, Limits, Method, Outbound, Request, Url, header};

use super::OidcFailure;

const LIMITS: Limits =
    Limits { total: Duration::from_secs(10), connect: Duration::from_secs(5), body: BodyLimit::Whole(256 * 1024) };

/// A call under construction.
pub(super) struct Call(Request);

impl Call {
    pub(super) fn get(url: Url) -> Self {
        let request = Request { method: Method::GET, url, headers: header::HeaderMap::new(), body: Vec::new().into() };
        Self(request).header(header::ACCEPT, "application/json")
    }

    pub(super) fn form(url: Url, fields: &[(&str, &str)]) -> Self {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let mut call = Self::get(url);
        (call.0.method, call.0.body) = (Method::POST, body.into());
        call.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
    }

    /// With the client's id and secret, each encoded as RFC 6749 §2.3.1 asks.
    pub(super) fn basic(self, id: &str, secret: &Secret<String>) -> Self {
        let encoded = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let pair = format!("{}:{}", encoded(id), encoded(secret.expose()));
        self.header(header::AUTHORIZATION, &format!("Basic {}", BASE64_STANDARD.encode(pair)))
    }

    pub(super) fn bearer(self, token: &str) -> Self {
        self.header(header::AUTHORIZATION, &format!("Bearer {token}"))
    }

    /// A value that cannot stand in a header is left out: the provider will say what it misses.
    fn header(mut self, name: header::HeaderName, value: &str) -> Self {
        if let Ok(mut value) = header::HeaderValue::try_from(value) {
            value.set_sensitive(name == header::AUTHORIZATION);
            self.0.headers.insert(name, value);
        }
        self
    }
}

/// Whatever is answered there, also when it refuses.
pub(super) async fn ask(outbound: &Outbound, call: Call) -> Result<Answer, Failure> {
    outbound.send(call.0, &LIMITS).await
}

/// Whatever the provider says, also when it refuses.
pub(super) async fn send(outbound: &Outbound, call: Call, step: &'static str) -> Result<Answer, OidcFailure> {
    ask(outbound, call).await.map_err(|failure| OidcFailure::unavailable(step, &failure.to_string()))
}

/// The body of a 200.
pub(super) async fn bytes(outbound: &Outbound, call: Call, step: &'static str) -> Result<Vec<u8>, OidcFailure> {
    let answer = send(outbound, call, step).await?;
    match answer.status.as_u16() {
        200 => Ok(answer.body),
        status => Err(OidcFailure::unavailable(step, &format!("the provider answered {status}"))),
    }
}

pub(super) async fn json<T: DeserializeOwned>(
    outbound: &Outbound,
    call: Call,
    step: &'static str,
) -> Result<T, OidcFailure> {
    let body = bytes(outbound, call, step).await?;
    serde_json::from_slice(&body).map_err(|_| OidcFailure::unavailable(step, "the answer is not what it should be"))
}
