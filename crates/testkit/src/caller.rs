//! Somebody who sends requests to a service in process.

use axum::{body::Body, extract::Request};
use http::{HeaderName, HeaderValue, Method, header};
use http_body_util::BodyExt as _;
use kernel::{AppId, TenantId};
use serde_json::Value;
use tower::ServiceExt as _;

use crate::Answer;

/// A caller with the headers that it sends each time. Cheap to clone.
#[derive(Clone)]
pub struct Caller {
    service: web::App,
    headers: Vec<(HeaderName, HeaderValue)>,
    app: Option<AppId>,
    key_id: Option<String>,
}

impl Caller {
    pub fn new(service: web::App) -> Self {
        Self { service, headers: Vec::new(), app: None, key_id: None }
    }

    /// The same caller, sending this header too; it takes the place of one with the same name.
    #[must_use]
    pub fn header(&self, name: &str, value: &str) -> Self {
        let name: HeaderName = name.parse().expect("a header's name");
        let mut caller = self.clone();
        caller.headers.retain(|(known, _)| *known != name);
        caller.headers.push((name, value.parse().expect("a header's value")));
        caller
    }

    /// Somebody who sends nothing of what this caller sends.
    #[must_use]
    pub fn without_headers(&self) -> Self {
        Self { headers: Vec::new(), ..self.clone() }
    }

    #[must_use]
    pub fn with_operator_key(&self, key: &str) -> Self {
        self.header("authorization", &format!("Bearer {key}"))
    }

    #[must_use]
    pub fn with_api_key(&self, app: AppId, key: &str) -> Self {
        Self { app: Some(app), ..self.header("x-api-key", key) }
    }

    /// A signed-in user, who also names the app.
    #[must_use]
    pub fn with_access_token(&self, app: AppId, token: &str) -> Self {
        let caller = self.header("authorization", &format!("Bearer {token}")).header("x-app-id", &app.to_string());
        Self { app: Some(app), ..caller }
    }

    /// The same caller, acting in this workspace.
    #[must_use]
    pub fn in_workspace(&self, tenant: TenantId) -> Self {
        self.header("x-tenant-id", &tenant.to_string())
    }

    #[must_use]
    pub(crate) fn with_key_id(self, id: &str) -> Self {
        Self { key_id: Some(id.to_owned()), ..self }
    }

    /// The app that this caller's key belongs to.
    pub fn app_id(&self) -> AppId {
        self.app.expect("this caller has an app's key")
    }

    /// The id of this caller's key.
    pub fn key_id(&self) -> &str {
        self.key_id.as_deref().expect("this caller was made by key_with")
    }

    /// What this caller sends under a header's name: its own key, for one.
    pub fn header_sent(&self, name: &str) -> String {
        let (_, value) = self.headers.iter().find(|(sent, _)| sent == name).expect("this caller sends such a header");
        value.to_str().expect("a test's header is text").to_owned()
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, None).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.call(Method::DELETE, path, None).await
    }

    pub async fn post(&self, path: &str, body: impl Into<Value>) -> Answer {
        self.call(Method::POST, path, Some(body.into())).await
    }

    pub async fn put(&self, path: &str, body: impl Into<Value>) -> Answer {
        self.call(Method::PUT, path, Some(body.into())).await
    }

    /// Any method, with or without a JSON body.
    pub async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        match body {
            Some(body) => self.header("content-type", "application/json").send(method, path, body.to_string()).await,
            None => self.send(method, path, Body::empty()).await,
        }
    }

    /// A body as it is, for what is not JSON or not quite.
    pub async fn send(&self, method: Method, path: &str, body: impl Into<Body>) -> Answer {
        let head = method == Method::HEAD;
        let mut request = Request::new(body.into());
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().expect("a path");
        for (name, value) in &self.headers {
            request.headers_mut().insert(name, value.clone());
        }
        let response = self.service.clone().oneshot(request).await.unwrap_or_else(|never| match never {});
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("the body arrives whole").to_bytes();
        let stated = parts.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        assert!(head || stated.is_none_or(|length: usize| length == body.len()), "{path} states a wrong length");
        Answer::new(parts.status, parts.headers, body)
    }
}
