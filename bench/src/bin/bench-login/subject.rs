//! The server that is measured: the real service with people who can sign in, and beside it a port on which the same
//! process makes nothing but signatures.

use std::{net::IpAddr, path::Path};

use axum::{body::Body, extract::Request};
use bench::Result;
use http_body_util::BodyExt as _;
use identity::{
    login::{self, credentials},
    proof::Method,
};
use kernel::{AppId, Clock, Entropy, Secret, UserId};
use serde_json::{Value, json};
use service::{
    Core, LoginLimits, Options, Service,
    installation::{GivenKeys, Opening},
};
use spine::outbound::{Outbound, Targets};
use store::{DatabaseUrl, args};
use vault::SigningKeys;
use web::{Conventions, Json, RateLimits, Routes, State, logging::Logging};

/// Signatures that one request for them makes, in threes.
pub const THREES: usize = 10;
/// So many that no row of a person is what is waited for.
const PEOPLE: usize = 64;
pub const PASSWORD: &str = "violet harbour lamp";

async fn open(folder: &Path, database: Option<&str>) -> Result<Service> {
    let clock = Clock::system();
    let database = match database {
        Some(url) => url.parse()?,
        None => DatabaseUrl::Sqlite(folder.join("bench.db")),
    };
    let options = Options {
        database,
        store_limits: store::Limits::default(),
        rate_limits: RateLimits::new(clock.clone()),
        login_limits: LoginLimits::default(),
        clock,
        entropy: Entropy::os(),
        base_url: "http://bench".into(),
        keys: GivenKeys { operator: None, master: None, master_previous: None, folder: folder.to_owned() },
        opening: Opening::Serve,
        mail_url: Secret::new("log:".into()),
        mail_from: "bench@bench.example".into(),
        sms_url: Secret::new("log:".into()),
        translate_url: Secret::new(String::new()),
        files: files::Settings { folder: folder.join("files"), max_bytes: 1, workspace_bytes: 1 },
        payprovider_url: "http://127.0.0.1:1".into(),
        outbound: Outbound::new(Targets::Public),
        providers: service::Providers::default(),
        webhooks: signals::Settings::default(),
        test_clock: false,
        metrics_public: false,
        web: web::Settings::default(),
    };
    Ok(Service::open(options).await?)
}

/// Three signatures each time, of next to nothing.
async fn sign(State(keys): State<SigningKeys>) -> web::Result<Json<Value>> {
    for _ in 0..THREES * 3 {
        keys.sign("bench", &json!({}))?;
    }
    Ok(Json(json!({})))
}

pub async fn serve(database: Option<&str>) -> Result<()> {
    let _log = web::logging::init(&Logging::default())?;
    let folder = tempfile::Builder::new().prefix("tenantry-bench-").tempdir()?;
    let service = open(folder.path(), database).await?;
    let first = service.first_run().await?.ok_or("the store is not new")?;
    let app = first.app.id;
    for number in 0..PEOPLE {
        let owner = json!({ "email": format!("p{number}@bench.example"), "firstName": "Ada", "lastName": "Lovelace" });
        let body = json!({ "owner": owner, "name": "Engines" });
        make_workspace(&service, &first.api_key, &body).await?;
    }
    service.drain().await?;
    let people = people(service.core(), app).await?;
    service.start();

    let core = service.core();
    let router = Routes::new("Signatures").post("/", sign, "Signatures").into_router(core.signing_keys.clone());
    let limits = RateLimits::new(core.db.clock().clone()).into();
    let apps = std::sync::Arc::new(core.tenancy.apps.clone());
    let signatures = Conventions::new(web::Settings::default(), core.db.ids().clone(), limits, apps).wrap(router);
    let (listener, signing) = (listen().await?, listen().await?);
    let told = json!({
        "address": listener.local_addr()?, "signing": signing.local_addr()?, "app": app, "key": first.api_key,
        "people": people,
    });
    println!("{told}");
    let forever = std::future::pending::<()>;
    let limits = web::server::Limits::default();
    tokio::join!(
        web::server::serve(listener, service.app(), limits, forever()),
        web::server::serve(signing, signatures, limits, forever())
    );
    Ok(())
}

async fn listen() -> Result<tokio::net::TcpListener> {
    Ok(tokio::net::TcpListener::bind("127.0.0.1:0").await?)
}

async fn make_workspace(service: &Service, key: &str, body: &Value) -> Result<()> {
    let request = Request::post("/account/tenant")
        .header("content-type", "application/json")
        .header("x-api-key", key)
        .body(Body::from(body.to_string()))?;
    let answer = service.app().handle(request, IpAddr::from([127, 0, 0, 1])).await;
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await?.to_bytes();
    if status == 200 { Ok(()) } else { Err(format!("answered {status}: {}", String::from_utf8_lossy(&body)).into()) }
}

/// Everybody's address and a login session; all have the same password.
async fn people(core: &Core, app: AppId) -> Result<Vec<Value>> {
    let digest = core.identity.passwords.digest(Secret::new(PASSWORD.into())).await?;
    let people: Vec<(UserId, String)> =
        core.db.read(move |tx| tx.all("SELECT id, email FROM users WHERE app_id = $1", &args![app])).await?;
    let mut told = Vec::new();
    for (user, email) in people {
        let (identity, digest) = (core.identity.clone(), digest.clone());
        let app = core.tenancy.apps.get(app).ok_or("the app is gone")?;
        let begun = core.db.write(move |tx| {
            credentials::set(tx, &identity.tenancy, app.id, user, &digest)?;
            login::begin(tx, &identity, &app, user, Method::Password, false)
        });
        told.push(json!({ "email": email, "session": begun.await?.sign(&core.tenancy)?.session }));
    }
    Ok(told)
}
