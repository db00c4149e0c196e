//! Calls to a Stripe-compatible API: form-encoded, with an idempotency key on every write, ten seconds each, tried again a
//! few times where that is safe.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use kernel::{Code, Error, Result, Secret};
use reqwest::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use super::form::ApiForm;

const TIMEOUT: Duration = Duration::from_secs(10);
/// The waits between tries. A call that ran into the timeout is tried once more only, so that whoever waits is answered.
const WAITS: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(800)];
/// The longest answer that is read.
const LONGEST: usize = 1024 * 1024;
/// The version of the API whose forms are sent. Answers and events of others can be read, too.
const VERSION: &str = "2025-03-31.basil";

/// How the provider is reached. Cheap to clone.
#[derive(Clone)]
pub struct StripeApi {
    /// Made for the first call: reading the machine's certificates takes a while, and most installations never call.
    client: Arc<OnceLock<reqwest::Client>>,
    /// Without `/v1`.
    url: Url,
}

/// The provider in the name of one app.
#[derive(Clone)]
pub struct Account {
    api: StripeApi,
    key: Secret<String>,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").finish_non_exhaustive()
    }
}

impl StripeApi {
    /// The error says what is wrong with the URL.
    pub fn new(url: &str) -> Result<Self, String> {
        let url = Url::parse(url.trim_end_matches('/')).map_err(|error| format!("is not a URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.query().is_some() || url.fragment().is_some() {
            return Err("must be http(s)://…, without a query".into());
        }
        Ok(Self { client: Arc::default(), url })
    }

    /// Not guarded: the address is the operator's own choice, and may well be inside the network.
    fn client(&self) -> Called<&reqwest::Client> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let made = spine::outbound::client_builder().connect_timeout(Duration::from_secs(5)).timeout(TIMEOUT).build();
        let made = made.map_err(|error| CallFailure::Failed(format!("cannot make an HTTP client: {error}")))?;
        Ok(self.client.get_or_init(|| made))
    }

    pub fn account(&self, key: Secret<String>) -> Account {
        Account { api: self.clone(), key }
    }
}

/// Why a call did not succeed.
#[derive(Clone, Debug)]
pub enum CallFailure {
    /// The provider said no: trying again changes nothing.
    Refused(String),
    /// It could not be reached, or failed.
    Failed(String),
    /// It did not answer in time.
    Late,
    /// There is no such thing there.
    Missing,
}

impl From<CallFailure> for Error {
    fn from(failure: CallFailure) -> Self {
        let message = match failure {
            CallFailure::Refused(reason) => format!("The payment provider refused: {reason}"),
            CallFailure::Failed(reason) => format!("The payment provider could not be used: {reason}"),
            CallFailure::Late => "The payment provider did not answer in time.".to_owned(),
            CallFailure::Missing => "The payment provider does not know this object.".to_owned(),
        };
        Error::new(Code::ProviderFailed, message)
    }
}

pub type Called<T> = Result<T, CallFailure>;

impl Account {
    /// Which account it is, without saying its key.
    pub fn fingerprint(&self) -> String {
        vault::hash_token(self.key.expose()).chars().take(16).collect()
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Called<T> {
        self.call(Method::GET, path, &ApiForm::new(), None).await
    }

    /// `key` makes a repetition the same call.
    pub async fn post<T: DeserializeOwned>(&self, path: &str, form: &ApiForm, key: &str) -> Called<T> {
        self.call(Method::POST, path, form, Some(key)).await
    }

    pub async fn delete<T: DeserializeOwned>(&self, path: &str, key: &str) -> Called<T> {
        self.call(Method::DELETE, path, &ApiForm::new(), Some(key)).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        form: &ApiForm,
        key: Option<&str>,
    ) -> Called<T> {
        let mut waits = WAITS.iter();
        loop {
            let failure = match self.once(&method, path, form, key).await {
                Ok(answer) => {
                    return serde_json::from_value(answer)
                        .map_err(|error| CallFailure::Failed(format!("its answer cannot be read: {error}")));
                }
                Err(failure) => failure,
            };
            let wait = waits.next();
            match (&failure, wait) {
                (CallFailure::Failed(_), Some(wait)) => tokio::time::sleep(*wait).await,
                (CallFailure::Late, Some(_)) => waits = [].iter(),
                _ => return Err(failure),
            }
        }
    }

    async fn once(&self, method: &Method, path: &str, form: &ApiForm, key: Option<&str>) -> Called<Value> {
        let address = format!("{}/v1/{path}", self.api.url.as_str().trim_end_matches('/'));
        let mut request = self.api.client()?.request(method.clone(), address);
        request = request.bearer_auth(self.key.expose()).header("stripe-version", VERSION);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        if *method == Method::POST {
            let content = "application/x-www-form-urlencoded";
            request = request.header("content-type", content).body(form.encoded());
        }
        let answer = request.send().await.map_err(failed)?;
        let status = answer.status();
        let body = read_limited(answer).await?;
        let read: Option<Value> = serde_json::from_slice(&body).ok();
        if status.is_success() {
            return read.ok_or_else(|| CallFailure::Failed("its answer is not JSON".to_owned()));
        }
        Err(failure(status, read.as_ref()))
    }
}

fn failed(error: reqwest::Error) -> CallFailure {
    if error.is_timeout() { CallFailure::Late } else { CallFailure::Failed(error.without_url().to_string()) }
}

async fn read_limited(mut answer: reqwest::Response) -> Called<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > LONGEST {
            return Err(CallFailure::Failed("its answer is too long".to_owned()));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// What an answer other than success means.
fn failure(status: StatusCode, body: Option<&Value>) -> CallFailure {
    let said = body.and_then(|body| body.pointer("/error/message")).and_then(Value::as_str);
    let said: String = said.unwrap_or("no reason was given").chars().take(300).collect();
    let reason = format!("{} ({said})", status.as_u16());
    match status {
        StatusCode::NOT_FOUND => CallFailure::Missing,
        // What it says of a key is for the app, not for whoever pressed a button.
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            CallFailure::Refused(format!("{} (it does not accept the app’s secret key)", status.as_u16()))
        }
        // Another call with the same key is under way, or there were too many.
        StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => {
            CallFailure::Failed(reason)
        }
        status if status.is_client_error() => CallFailure::Refused(reason),
        _ => CallFailure::Failed(reason),
    }
}
