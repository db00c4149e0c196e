//! How commands reach the installation: over HTTP when a server is running, else by opening the store themselves and
//! calling the same API in process. Commands cannot tell the difference.

use std::{path::Path, time::Duration};

use axum::{body::Body, http::Request};
use kernel::Secret;
use serde_json::Value;
use service::{Service, installation::Opening};
use store::{DatabaseUrl, FolderLocked};
use tower::ServiceExt as _;
use web::AtHand;

use crate::{config::Config, startup};

/// The operator API.
pub enum Api {
    Remote { client: reqwest::Client, base: String, key: Secret<String> },
    Local(Box<Service>),
}

/// Backups and key generation take their time; nothing here takes longer.
const TIMEOUT: Duration = Duration::from_secs(3600);

impl Api {
    pub async fn open(config: &Config) -> Result<Self, String> {
        if let Some(base) = running_server(config).await {
            return Self::remote(config, base);
        }
        match startup::open(config, Opening::Command).await {
            Ok(service) => Ok(Self::Local(Box::new(service))),
            Err(error) if FolderLocked::is_cause_of(&error) => Err(format!(
                "A server uses {} but does not respond. It may be starting or stopping; try again in a moment.",
                config.data_dir.display()
            )),
            Err(error) => Err(startup::explain(&error)),
        }
    }

    fn remote(config: &Config, base: String) -> Result<Self, String> {
        let key = match &config.operator_key {
            Some(key) => key.clone(),
            None => read_operator_key(&config.data_dir)?,
        };
        Ok(Self::Remote { client: client(TIMEOUT)?, base, key })
    }

    pub async fn get(&self, path: &str) -> Result<Value, String> {
        self.call("GET", path, None).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, String> {
        self.call("POST", path, Some(body)).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Result<Value, String> {
        self.call("PUT", path, Some(body)).await
    }

    pub async fn delete(&self, path: &str) -> Result<Value, String> {
        self.call("DELETE", path, None).await
    }

    /// Saves the answer's body into a file, piece by piece: it may be larger than memory.
    pub async fn download(&self, path: &str, target: &Path) -> Result<(), String> {
        let mut answer = self.send("POST", path, None).await?;
        // For the owner's eyes only: a backup holds everybody's data.
        let mut file = tokio::fs::File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(target)
            .await
            .map_err(|error| format!("Cannot write {}: {error}", target.display()))?;
        let written = answer.copy_to(&mut file).await;
        if written.is_err() {
            let _ = tokio::fs::remove_file(target).await;
        }
        written
    }

    async fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, String> {
        let bytes = self.send(method, path, body).await?.bytes().await?;
        serde_json::from_slice(&bytes).map_err(|error| format!("The response is not JSON: {error}"))
    }

    async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Answer, String> {
        let answer = match self {
            Self::Remote { client, base, key } => {
                let method = method.parse().map_err(|_| format!("{method} is not a method"))?;
                let mut request = client.request(method, format!("{base}{path}")).bearer_auth(key.expose());
                if let Some(body) = body {
                    request = request.json(body);
                }
                Answer::Remote(request.send().await.map_err(|error| format!("The server does not respond: {error}"))?)
            }
            Self::Local(service) => {
                let mut request = Request::builder().method(method).uri(path).extension(AtHand);
                if body.is_some() {
                    request = request.header("content-type", "application/json");
                }
                let body = body.map_or(Body::empty(), |body| Body::from(body.to_string()));
                let request = request.body(body).map_err(|error| error.to_string())?;
                let response = service.app().oneshot(request).await.unwrap_or_else(|never| match never {});
                Answer::Local(response)
            }
        };
        answer.check().await
    }

    /// Ends the store's threads cleanly when it was opened here.
    pub async fn close(self) {
        if let Self::Local(service) = self {
            service.close().await;
        }
    }
}

enum Answer {
    Remote(reqwest::Response),
    Local(axum::response::Response),
}

impl Answer {
    fn status(&self) -> u16 {
        match self {
            Self::Remote(response) => response.status().as_u16(),
            Self::Local(response) => response.status().as_u16(),
        }
    }

    /// A failed call reads as the API's own message, with the fields that were wrong.
    async fn check(self) -> Result<Self, String> {
        let status = self.status();
        if (200..300).contains(&status) {
            return Ok(self);
        }
        let body: Value = serde_json::from_slice(&self.bytes().await?).unwrap_or_default();
        let mut message = body["message"].as_str().unwrap_or("no explanation was given").to_owned();
        for detail in body["details"].as_array().into_iter().flatten() {
            let (field, problem) = (detail["field"].as_str(), detail["message"].as_str());
            message += &format!("\n  - {} {}", field.unwrap_or_default(), problem.unwrap_or_default());
        }
        Err(format!("{message} ({status})"))
    }

    async fn bytes(self) -> Result<Vec<u8>, String> {
        match self {
            Self::Remote(response) => response.bytes().await.map(|bytes| bytes.to_vec()).map_err(broken),
            Self::Local(response) => {
                let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.map_err(broken)?;
                Ok(bytes.to_vec())
            }
        }
    }

    async fn copy_to(&mut self, file: &mut tokio::fs::File) -> Result<(), String> {
        use tokio::io::AsyncWriteExt as _;
        loop {
            let piece = match self {
                Self::Remote(response) => response.chunk().await.map_err(broken)?,
                Self::Local(response) => next_piece(response.body_mut()).await?,
            };
            let Some(piece) = piece else { break };
            file.write_all(&piece).await.map_err(broken)?;
        }
        file.sync_all().await.map_err(broken)
    }
}

async fn next_piece(body: &mut Body) -> Result<Option<axum::body::Bytes>, String> {
    use http_body_util::BodyExt as _;
    while let Some(frame) = body.frame().await {
        if let Ok(piece) = frame.map_err(broken)?.into_data() {
            return Ok(Some(piece));
        }
    }
    Ok(None)
}

fn broken(error: impl std::fmt::Display) -> String {
    format!("The response was cut off: {error}")
}

fn client(timeout: Duration) -> Result<reqwest::Client, String> {
    reqwest::Client::builder().no_proxy().timeout(timeout).build().map_err(|error| error.to_string())
}

/// The address of a server that works on this store, if one answers.
async fn running_server(config: &Config) -> Option<String> {
    let noted = std::fs::read_to_string(startup::address_file(&config.data_dir)).ok();
    // On PostgreSQL a server may run without this data folder; its configured address is worth a try.
    let configured = matches!(config.database, DatabaseUrl::Postgres(_)).then(|| format!("http://{}", config.listen));
    let client = client(Duration::from_secs(2)).ok()?;
    for base in noted.into_iter().map(|text| text.trim().to_owned()).chain(configured) {
        let answer = client.get(format!("{base}/healthz")).send().await;
        if answer.is_ok_and(|answer| answer.status().is_success()) {
            return Some(base);
        }
    }
    None
}

fn read_operator_key(data_dir: &Path) -> Result<Secret<String>, String> {
    let path = data_dir.join("operator.key");
    std::fs::read_to_string(&path).map(|key| Secret::new(key.trim().to_owned())).map_err(|error| {
        format!("Cannot read the operator key from {}: {error}. Set TENANTRY_OPERATOR_KEY instead.", path.display())
    })
}
