//! Ways for SMS to leave, chosen by a URL.

use std::{path::PathBuf, time::Duration};

use kernel::Secret;
use reqwest::StatusCode;
use serde_json::json;
use url::Url;

use crate::{
    delivery::{self, SendFailure},
    outbound::client_builder,
};

/// Where SMS go.
pub enum SmsTransport {
    /// `http(s)://…`: each message is posted as `{ "to", "text" }`, its id in `Idempotency-Key`; user and password in the URL
    /// become basic authentication.
    Http(Box<Gateway>),
    /// `file:DIR`: one `.json` file per message.
    File(PathBuf),
    /// `log:`: the text goes to the log, codes included. For development only.
    Log,
}

pub struct Gateway {
    client: reqwest::Client,
    url: Url,
}

impl SmsTransport {
    /// The error says what is wrong with the URL without repeating it: it may hold a password.
    pub fn from_url(url: &Secret<String>) -> Result<Self, String> {
        let text = url.expose().as_str();
        if text == "log:" {
            return Ok(Self::Log);
        }
        if let Some(folder) = text.strip_prefix("file:") {
            return delivery::file::folder(folder).map(Self::File);
        }
        let url = Url::parse(text).map_err(|error| format!("is not a URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("must be http(s)://…, file:DIR or log:".into());
        }
        // The operator's own choice: it may well be inside the network, and behind a proxy.
        let client = client_builder()
            .connect_timeout(Duration::from_secs(5))
            .timeout(Duration::from_secs(15))
            .build()
            .map_err(|error| format!("cannot make an HTTP client: {error}"))?;
        Ok(Self::Http(Box::new(Gateway { client, url })))
    }

    pub(super) async fn send(&self, id: &str, to: &str, text: &str) -> Result<(), SendFailure> {
        let message = json!({ "to": to, "text": text });
        match self {
            Self::Http(gateway) => gateway.post(id, &message).await,
            Self::File(folder) => {
                delivery::file::write(folder, &format!("{id}.json"), message.to_string().as_bytes()).await
            }
            Self::Log => {
                tracing::info!(to, "SMS, not sent:\n{text}");
                Ok(())
            }
        }
    }
}

impl Gateway {
    async fn post(&self, id: &str, message: &serde_json::Value) -> Result<(), SendFailure> {
        let request = self.client.post(self.url.clone()).header("idempotency-key", id).json(message);
        // The URL may hold a password.
        let answer = request.send().await.map_err(|error| SendFailure::passing(error.without_url()))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status @ (StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS) => {
                Err(SendFailure::passing(format!("the gateway answered {status}")))
            }
            status if status.is_client_error() => Err(SendFailure::permanent(format!("the gateway answered {status}"))),
            status => Err(SendFailure::passing(format!("the gateway answered {status}"))),
        }
    }
}
