//! An OpenID Connect provider on a port of its own that says what a test wants, also what no honest one would.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Form, Request, State},
    http::{HeaderMap, StatusCode},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};
use url::Url;
use vault::{PrivateKey, jwt, sha256_bytes};

/// The provider. Gone when it is dropped.
pub struct OpenIdProvider {
    pub issuer: String,
    state: Arc<Said>,
    serving: JoinHandle<()>,
}

type Said = Mutex<Script>;

struct Script {
    key: Arc<PrivateKey>,
    kid: String,
    /// Replaces members of the discovery document.
    discovery: Value,
    /// What comes instead of an honest answer, by endpoint.
    instead: HashMap<&'static str, Instead>,
    /// How many calls get no end of an answer at present.
    held: watch::Sender<usize>,
    /// Moves when an endpoint is to say something else.
    changes: watch::Sender<()>,
    /// The client secret that it asks for; any, unless this is set.
    secret: Option<String>,
    /// By the code that stands for them.
    codes: HashMap<String, Code>,
    /// What `userinfo` says.
    userinfo: Value,
    emails: Value,
    /// The requests that came, by path.
    asked: Vec<String>,
    has_id_tokens: bool,
    issuer: String,
}

/// What an endpoint says instead of an honest answer.
#[derive(Clone, Debug)]
pub enum Instead {
    Answer(u16, String),
    /// Nothing for as long as somebody listens, or until it is to be honest again.
    Silence,
    /// The beginning of an answer, and then nothing more.
    Drip,
    /// More and more, without an end.
    Endless,
    /// What is honest, with so many blanks after it.
    Padded(usize),
}

struct Code {
    challenge: String,
    claims: Value,
    /// Instead of a token of the claims.
    raw: Option<String>,
}

/// A request as it arrived at the provider.
#[derive(Clone, Debug)]
pub struct OpenIdRequest(HashMap<String, String>);

impl OpenIdRequest {
    /// From the address that a browser was sent to.
    pub fn of(location: &str) -> Self {
        let url = Url::parse(location).unwrap_or_else(|_| panic!("{location} is not an address"));
        Self(url.query_pairs().into_owned().collect())
    }

    #[track_caller]
    pub fn get(&self, name: &str) -> &str {
        self.0.get(name).unwrap_or_else(|| panic!("{name} is not in {:?}", self.0))
    }

    pub fn find(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The claims of an honest token about somebody.
    pub fn claims(&self, issuer: &str, email: &str, now: i64) -> Value {
        json!({
            "iss": issuer, "sub": format!("subject of {email}"), "aud": self.get("client_id"), "iat": now, "exp": now + 300,
            "auth_time": now, "nonce": self.get("nonce"), "email": email, "email_verified": true,
            "given_name": "Grace", "family_name": "Hopper",
        })
    }
}

impl OpenIdProvider {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let issuer = format!("http://{}", listener.local_addr().expect("an address"));
        let script = Script {
            key: new_key(),
            kid: "first".into(),
            discovery: json!({}),
            instead: HashMap::new(),
            held: watch::channel(0).0,
            changes: watch::channel(()).0,
            secret: None,
            codes: HashMap::new(),
            userinfo: json!({}),
            emails: json!([]),
            asked: Vec::new(),
            has_id_tokens: true,
            issuer: issuer.clone(),
        };
        let state = Arc::new(Mutex::new(script));
        let routes = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/jwks", get(jwks))
            .route("/token", post(token))
            .route("/userinfo", get(userinfo))
            .route("/emails", get(emails))
            .layer(middleware::from_fn_with_state(Arc::clone(&state), scripted))
            .with_state(Arc::clone(&state));
        let serving =
            tokio::spawn(async move { axum::serve(listener, routes).await.expect("serves until it is dropped") });
        Self { issuer, state, serving }
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        lock(&self.state)
    }

    /// The form or query with which it answers: a code that stands for these claims.
    pub fn answer(&self, asked: &OpenIdRequest, claims: Value) -> Vec<(String, String)> {
        self.keep(asked, claims, None)
    }

    /// The same with a token as it is.
    pub fn answer_raw(&self, asked: &OpenIdRequest, token: &str) -> Vec<(String, String)> {
        self.keep(asked, json!({}), Some(token.to_owned()))
    }

    fn keep(&self, asked: &OpenIdRequest, claims: Value, raw: Option<String>) -> Vec<(String, String)> {
        let mut script = self.script();
        let code = format!("code-{}", script.codes.len());
        script.codes.insert(code.clone(), Code { challenge: asked.get("code_challenge").to_owned(), claims, raw });
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        vec![pair("state", asked.get("state")), pair("code", &code), pair("iss", &self.issuer)]
    }

    /// Changes members of the discovery document.
    pub fn discovery(&self, members: Value) {
        self.script().discovery = members;
    }

    /// Answers with this instead of the keys.
    pub fn keys(&self, status: u16, body: &str) {
        self.instead("jwks", Some(Instead::Answer(status, body.to_owned())));
    }

    /// What an endpoint (`discovery`, `jwks`, `token`, `userinfo`, `emails`) says from now on; honest again with `None`.
    pub fn instead(&self, endpoint: &'static str, what: Option<Instead>) {
        let mut script = self.script();
        match what {
            Some(what) => script.instead.insert(endpoint, what),
            None => script.instead.remove(endpoint),
        };
        script.changes.send_replace(());
    }

    /// Waits until so many calls hang at the provider.
    pub async fn until_held(&self, calls: usize) {
        let mut held = self.script().held.subscribe();
        held.wait_for(|held| *held == calls).await.expect("the provider is there");
    }

    /// From now on the client has to show this secret.
    pub fn takes_secret(&self, secret: &str) {
        self.script().secret = Some(secret.to_owned());
    }

    pub fn userinfo(&self, said: Value) {
        self.script().userinfo = said;
    }

    pub fn emails(&self, said: Value) {
        self.script().emails = said;
    }

    /// From now on another key signs, and is the only one that is published.
    pub fn rotate(&self, kid: &str) {
        let mut script = self.script();
        (script.key, script.kid) = (new_key(), kid.to_owned());
    }

    /// From now on there are no ID tokens.
    pub fn without_id_tokens(&self) {
        self.script().has_id_tokens = false;
    }

    /// The paths that were asked for.
    pub fn asked(&self) -> Vec<String> {
        self.script().asked.clone()
    }

    /// The public key's modulus, as it is published.
    pub fn modulus(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.script().key.public().modulus())
    }
}

impl Drop for OpenIdProvider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn new_key() -> Arc<PrivateKey> {
    Arc::new(PrivateKey::generate().expect("a key"))
}

fn lock(state: &Said) -> MutexGuard<'_, Script> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call that hangs, until the other side leaves.
struct Held(watch::Sender<usize>);

impl Held {
    fn new(state: &Said) -> Self {
        let held = lock(state).held.clone();
        held.send_modify(|held| *held += 1);
        Self(held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.send_modify(|held| *held -= 1);
    }
}

/// Says what a test wants instead of an honest answer.
async fn scripted(State(state): State<Arc<Said>>, request: Request, next: Next) -> Response {
    let endpoint = match request.uri().path() {
        "/.well-known/openid-configuration" => "discovery".to_owned(),
        path => path.trim_start_matches('/').to_owned(),
    };
    let Some(instead) = lock(&state).instead.get(endpoint.as_str()).cloned() else { return next.run(request).await };
    let body = |chunks: stream::BoxStream<'static, &'static [u8]>, held: Held| {
        let chunks = chunks.map(move |chunk| {
            let _while_it_is_read = &held;
            Ok::<_, std::convert::Infallible>(Bytes::from_static(chunk))
        });
        Body::from_stream(chunks).into_response()
    };
    match instead {
        Instead::Answer(status, body) => (StatusCode::from_u16(status).expect("a status"), body).into_response(),
        Instead::Silence => {
            let (_held, mut changes) = (Held::new(&state), lock(&state).changes.subscribe());
            while lock(&state).instead.contains_key(endpoint.as_str()) {
                changes.changed().await.expect("the provider is there");
            }
            next.run(request).await
        }
        Instead::Drip => body(stream::once(async { &b"{"[..] }).chain(stream::pending()).boxed(), Held::new(&state)),
        Instead::Padded(blanks) => {
            let (mut parts, honest) = next.run(request).await.into_parts();
            let honest = axum::body::to_bytes(honest, usize::MAX).await.expect("an answer of our own");
            parts.headers.remove("content-length");
            Response::from_parts(parts, Body::from([&honest[..], &vec![b' '; blanks]].concat()))
        }
        Instead::Endless => body(stream::repeat(&[b' '; 1024][..]).boxed(), Held::new(&state)),
    }
}

async fn discovery(State(state): State<Arc<Said>>) -> Response {
    let mut script = lock(&state);
    script.asked.push("discovery".into());
    let issuer = &script.issuer;
    let mut document = json!({
        "issuer": issuer, "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"), "userinfo_endpoint": format!("{issuer}/userinfo"),
        "jwks_uri": format!("{issuer}/jwks"), "authorization_response_iss_parameter_supported": true,
        "token_endpoint_auth_methods_supported": ["client_secret_basic"],
    });
    for (name, value) in script.discovery.as_object().cloned().unwrap_or_default() {
        document[name] = value;
    }
    if let Some(location) = document["redirect"].as_str() {
        return (StatusCode::FOUND, [("location", location.to_owned())]).into_response();
    }
    json_answer(&document)
}

async fn jwks(State(state): State<Arc<Said>>) -> Response {
    let mut script = lock(&state);
    script.asked.push("jwks".into());
    let (n, e) = (script.key.public().modulus(), script.key.public().exponent());
    let encoded = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    json_answer(
        &json!({ "keys": [{ "kty": "RSA", "kid": script.kid, "use": "sig", "n": encoded(n), "e": encoded(e) }] }),
    )
}

/// Takes a code once, from whoever shows a secret and the verifier of its challenge.
async fn token(
    State(state): State<Arc<Said>>,
    headers: HeaderMap,
    Form(form): Form<HashMap<String, String>>,
) -> Response {
    let mut script = lock(&state);
    script.asked.push("token".into());
    let refuse = |error: &str| (StatusCode::BAD_REQUEST, json_answer(&json!({ "error": error }))).into_response();
    if !headers.contains_key("authorization") && !form.contains_key("client_secret") {
        return refuse("invalid_client");
    }
    if script.secret.is_some() && shown_secret(&headers, &form) != script.secret {
        return refuse("invalid_client");
    }
    let Some(code) = script.codes.remove(form.get("code").map_or("", String::as_str)) else {
        return refuse("invalid_grant");
    };
    let verifier = form.get("code_verifier").cloned().unwrap_or_default();
    if BASE64_URL_SAFE_NO_PAD.encode(sha256_bytes(verifier.as_bytes())) != code.challenge {
        return refuse("invalid_grant");
    }
    let signed = || jwt::sign_ps256(&script.key, &script.kid, "JWT", &code.claims).expect("signs");
    let id_token = script.has_id_tokens.then(|| code.raw.clone().unwrap_or_else(signed));
    json_answer(&json!({ "access_token": "access", "token_type": "Bearer", "id_token": id_token }))
}

/// By `client_secret_basic` or `client_secret_post`.
fn shown_secret(headers: &HeaderMap, form: &HashMap<String, String>) -> Option<String> {
    let basic = headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Basic "));
    let Some(basic) = basic else { return form.get("client_secret").cloned() };
    let pair = String::from_utf8(BASE64_STANDARD.decode(basic).ok()?).ok()?;
    let encoded = pair.split_once(':')?.1;
    let mut decoded = url::form_urlencoded::parse(encoded.as_bytes());
    decoded.next().map(|(secret, _)| secret.into_owned())
}

async fn userinfo(State(state): State<Arc<Said>>, headers: HeaderMap) -> Response {
    let mut script = lock(&state);
    script.asked.push("userinfo".into());
    if headers.get("authorization").is_none_or(|token| token != "Bearer access") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    json_answer(&script.userinfo)
}

async fn emails(State(state): State<Arc<Said>>) -> Response {
    json_answer(&lock(&state).emails)
}

fn json_answer(value: &Value) -> Response {
    ([("content-type", "application/json")], value.to_string()).into_response()
}
