//! A small application to try the conventions on, and a caller for it.

use std::{sync::Arc, time::Duration};

use axum::{body::Body, extract::FromRequestParts, response::Response};
use http::{Method, Request, StatusCode, request::Parts};
use http_body_util::BodyExt;
use kernel::{AppId, Clock, Code, Entropy, Error, IdSource, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tower::ServiceExt;
use web::{
    Access, App, ClientAddress, Conventions, Created, Describe, Empty, Failure, Json, LimitClass, Operation, Origins,
    Page, Params, Patch, Path, Quota, RateLimits, RequestId, Result, Routes, Scope, Settings, State, Success, Valid,
    Validate,
};

pub(crate) const OWN_ORIGIN: &str = "https://own.example";
pub(crate) const OTHER_ORIGIN: &str = "https://other.example";

pub(crate) fn own_app() -> AppId {
    AppId::from_u128(1)
}

/// Two apps with an origin each.
struct TwoApps;

impl Origins for TwoApps {
    fn any_app_allows(&self, origin: &str) -> bool {
        [OWN_ORIGIN, OTHER_ORIGIN].contains(&origin)
    }

    fn app_allows(&self, app: AppId, origin: &str) -> bool {
        app == own_app() && origin == OWN_ORIGIN
    }
}

/// A caller who is known by any key but "wrong".
struct Caller;

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let key = web::required_header(&parts.headers, "x-api-key")?;
        if key == "wrong" {
            return Err(Error::new(Code::InvalidCredential, "The key is not known.").into());
        }
        Scope::of(&parts.extensions).set_app(own_app());
        Ok(Self)
    }
}

impl Describe for Caller {
    fn describe(operation: &mut Operation) {
        operation.access(Access::Key { privilege: Some("APP_WRITE") });
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Item {
    name: kernel::Words,
    #[serde(default)]
    count: u32,
    #[serde(default)]
    parts: Vec<Part>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Part {
    weight: f64,
    label: Option<String>,
}

impl Validate for Item {}

#[derive(Deserialize, JsonSchema)]
struct ItemChange {
    #[serde(default)]
    label: Patch<String>,
}

impl Validate for ItemChange {}

async fn create(_: Caller, Valid(item): Valid<Item>) -> Result<Created<Item>> {
    Ok(Created(item))
}

async fn change(Path(_): Path<AppId>, Valid(change): Valid<ItemChange>) -> Result<Json<Option<String>>> {
    Ok(Json(change.label.apply(Some("kept".to_owned()))))
}

async fn list(Params(page): Params<Page>, State(name): State<&'static str>) -> Result<Json<(i64, &'static str)>> {
    Ok(Json((page.offset(), name)))
}

async fn conflict(_: Caller) -> Result<Success> {
    Err(Error::new(Code::Conflict, "Already so."))
}

async fn who(ClientAddress(address): ClientAddress, RequestId(id): RequestId) -> Result<Json<(String, String)>> {
    Ok(Json((address.to_string(), id)))
}

async fn explode() -> Result<Empty> {
    panic!("secret detail of the inside")
}

async fn fail() -> Result<Empty> {
    Err(Error::internal("secret detail of the inside"))
}

async fn hang() -> Result<Empty> {
    std::future::pending().await
}

async fn nothing() -> Result<Empty> {
    Ok(Empty)
}

pub(crate) fn routes() -> Routes<&'static str> {
    Routes::new("Items")
        .get("/items", list, "List items")
        .post("/items", create, "Create an item")
        .answers(409, "An item has this name already")
        .put("/items/{item_id}", change, "Change an item")
        .description("What is left out keeps its value.")
        .delete("/items/{item_id}", conflict, "Delete an item")
        .get("/public", nothing, "For every page")
        .any_origin()
        .merge(
            Routes::new("Trouble")
                .get("/who", who, "Who am I?")
                .get("/panic", explode, "Panics")
                .get("/fail", fail, "Fails inside")
                .get("/hang", hang, "Never ends")
                .timeout(Duration::from_millis(20))
                .get("/stuck", hang, "Never ends either")
                .get("/health", nothing, "Always answers")
                .always_admitted()
                .post("/small", create, "Takes little")
                .body_limit(64)
                .post("/login", nothing, "Is limited")
                .limited(LimitClass::Credential),
        )
}

pub(crate) struct Shop {
    pub(crate) app: App,
    pub(crate) clock: Clock,
}

pub(crate) fn shop() -> Shop {
    shop_with(Settings::default())
}

pub(crate) fn shop_with(settings: Settings) -> Shop {
    let clock = Clock::frozen(Timestamp::from_seconds(1_700_000_000));
    let ids = IdSource::new(clock.clone(), Entropy::seeded_for_tests(1));
    let limits = RateLimits::new(clock.clone()).with(LimitClass::Credential, Quota { per_minute: 6, burst: 2 });
    let app = Conventions::new(settings, ids, Arc::new(limits), Arc::new(TwoApps)).wrap(routes().into_router("shop"));
    Shop { app, clock }
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect(&self.body)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The failure's code, once its whole shape is what every failure's is.
    pub(crate) fn error(&self) -> String {
        let body = self.json();
        assert_eq!(body["statusCode"], self.status.as_u16());
        assert_eq!(body["requestId"].as_str(), self.header("x-request-id"));
        assert!(body["message"].as_str().is_some_and(|message| !message.is_empty()));
        body["error"].as_str().unwrap().to_owned()
    }
}

impl Shop {
    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response: Response = self.app.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status, headers: parts.headers, body: String::from_utf8(bytes.to_vec()).unwrap() }
    }

    pub(crate) async fn call(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send(request(method, path, headers, Body::empty())).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, &[]).await
    }

    /// Posts JSON with a key.
    pub(crate) async fn post(&self, path: &str, json: &str) -> Answer {
        let headers = [("content-type", "application/json"), ("x-api-key", "k")];
        self.send(request(Method::POST, path, &headers, Body::from(json.to_owned()))).await
    }
}

pub(crate) fn request(method: Method, path: &str, headers: &[(&str, &str)], body: Body) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body).unwrap()
}
