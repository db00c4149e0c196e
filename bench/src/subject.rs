//! The real service inside a benchmark's own child process, for what cannot be set up from outside.

use std::{net::IpAddr, path::Path};

use axum::{body::Body, extract::Request};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use identity::{
    login::{self, credentials},
    proof::Method,
};
use kernel::{AppId, Clock, Entropy, Secret, TenantId, UserId};
use serde_json::{Value, json};
use service::{
    Core, LoginLimits, Options, Service,
    installation::{GivenKeys, Opening},
};
use spine::outbound::{Outbound, Targets};
use store::{DatabaseUrl, args};
use web::RateLimits;

use crate::Result;

pub const OPERATOR: &str = "op_benchmarks_only";
pub const PASSWORD: &str = "violet harbour lamp";

/// Opens the service in a folder, on SQLite unless a database is named.
pub async fn open(folder: &Path, database: Option<&str>, adjust: impl FnOnce(&mut Options)) -> Result<Service> {
    let clock = Clock::system();
    let database = match database {
        Some(url) => url.parse()?,
        None => DatabaseUrl::Sqlite(folder.join("bench.db")),
    };
    let operator = Some(Secret::new(OPERATOR.into()));
    let mut options = Options {
        database,
        store_limits: store::Limits::default(),
        rate_limits: RateLimits::new(clock.clone()),
        login_limits: LoginLimits::default(),
        clock,
        entropy: Entropy::os(),
        base_url: "http://bench".into(),
        keys: GivenKeys { operator, master: None, master_previous: None, folder: folder.to_owned() },
        opening: Opening::Serve,
        after_move: false,
        mail_url: Secret::new("log:".into()),
        mail_from: "bench@bench.example".parse().map_err(|problem| format!("mail_from {problem}"))?,
        sms_url: Secret::new("log:".into()),
        translate_url: Secret::new(String::new()),
        files: files::Settings { place: files::Place::Folder(folder.join("files")), max_bytes: 1, workspace_bytes: 1 },
        outbound: Outbound::new(Targets::Public),
        providers: service::Providers::default(),
        payprovider_url: "http://127.0.0.1:1".into(),
        webhooks: signals::Settings::default(),
        test_clock: false,
        metrics_public: false,
        web: web::Settings::default(),
    };
    adjust(&mut options);
    Ok(Service::open(options).await?)
}

/// Posts JSON, with a header such as `x-api-key: …`.
pub async fn post(service: &Service, path: &str, header: (&str, &str), body: &str, expected: u16) -> Result<Bytes> {
    let request = Request::post(path)
        .header("content-type", "application/json")
        .header(header.0, header.1)
        .body(Body::from(body.to_owned()))?;
    send(service, request, path, expected).await
}

/// Gets an answer, with a header such as `x-api-key: …`.
pub async fn get(service: &Service, path: &str, header: (&str, &str), expected: u16) -> Result<Bytes> {
    send(service, Request::get(path).header(header.0, header.1).body(Body::empty())?, path, expected).await
}

pub async fn send(service: &Service, request: Request, path: &str, expected: u16) -> Result<Bytes> {
    let answer = service.app().handle(request, IpAddr::from([127, 0, 0, 1])).await;
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await?.to_bytes();
    if status == expected {
        Ok(body)
    } else {
        Err(format!("{path} answered {status}: {}", String::from_utf8_lossy(&body)).into())
    }
}

/// A workspace for each of so many owners.
pub async fn make_workspaces(service: &Service, key: &str, owners: usize) -> Result<()> {
    for number in 0..owners {
        let owner = json!({ "email": format!("p{number}@bench.example"), "firstName": "Ada", "lastName": "Lovelace" });
        let body = json!({ "owner": owner, "name": "Engines" }).to_string();
        post(service, "/account/tenant", ("x-api-key", key), &body, 200).await?;
    }
    Ok(service.drain().await?)
}

/// Everybody's address and so many login sessions; all have the same password.
pub async fn sign_everybody_in(core: &Core, app: AppId, sessions: usize) -> Result<Vec<Value>> {
    let digest = core.identity.passwords.digest(Secret::new(PASSWORD.into())).await?;
    let people: Vec<(UserId, String)> =
        core.db.read(move |tx| tx.all("SELECT id, email FROM users WHERE app_id = $1", &args![app])).await?;
    let mut told = Vec::new();
    for (user, email) in people {
        let (identity, digest) = (core.identity.clone(), digest.clone());
        let app = core.tenancy.apps.get(app).ok_or("the app is gone")?;
        let begun = core.db.write(move |tx| {
            credentials::set(tx, &identity.tenancy, app.id, user, &digest)?;
            let begin = |_| login::begin(tx, &identity, &app, user, Method::Password, false);
            (0..sessions).map(begin).collect::<kernel::Result<Vec<_>>>()
        });
        let mut signed = Vec::new();
        for begun in begun.await? {
            signed.push(begun.sign(&core.tenancy)?.session);
        }
        told.push(json!({ "email": email, "sessions": signed }));
    }
    Ok(told)
}

/// An access token of a member who signed in a moment ago.
pub async fn access_token(core: &Core, app: AppId, user: UserId, tenant: TenantId) -> Result<String> {
    let begun = core.db.write(move |tx| {
        let (login, now): (UserId, _) = (tx.new_id(), tx.now());
        tx.exec(
            "INSERT INTO refresh_families (id, app_id, user_id, mfa, authenticated_at, expires_at, created_at) \
             VALUES ($1, $2, $3, FALSE, $4, $5, $4)",
            &args![login, app, user, now, now.plus(std::time::Duration::from_hours(24))],
        )?;
        Ok(login)
    });
    let (login, now) = (begun.await?, core.db.clock().now().as_seconds());
    let claims = json!({ "iss": &*core.tenancy.issuer, "sub": user, "aid": app, "tid": tenant, "scope": "", "iat": now,
                         "exp": now + 3600, "sid": login });
    Ok(core.signing_keys.sign("at+jwt", &claims)?)
}

pub async fn listen() -> Result<tokio::net::TcpListener> {
    Ok(tokio::net::TcpListener::bind("127.0.0.1:0").await?)
}
