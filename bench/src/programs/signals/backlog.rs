//! Facts that were committed while nothing was sent, and what it costs to deliver them once something is: without the
//! changes that cause them, which cost more than their deliveries.

use std::{net::SocketAddr, time::Duration};

use axum::{body::Body, extract::Request};
use bench::{
    Result,
    child::Child,
    database::Database,
    process,
    subject::{OPERATOR, open, post, send},
};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use kernel::Timestamp;
use serde_json::{Value, json};
use service::Service;
use spine::outbound::{Outbound, Targets};
use web::logging::Logging;

/// Changes that are made at once.
const AT_ONCE: usize = 64;
/// A service that uses no more than `LITTLE` processor time in this long has nothing left to do.
const REST: Duration = Duration::from_millis(500);
const LITTLE: Duration = Duration::from_millis(20);

/// What became of a backlog.
pub struct Handled {
    /// Of the service, for each fact.
    pub cpu_micros: f64,
    /// From the first look at the facts until the last answer.
    pub per_second: f64,
}

/// Has a service of its own handle so many facts, of which the receiver gets those of a type.
pub async fn handle(postgres: Option<&str>, target: SocketAddr, count: usize, event: &str) -> Result<Handled> {
    let database = match postgres {
        Some(server) => Some(Database::create_another(server, "backlog").await?),
        None => None,
    };
    let (target, events) = (target.to_string(), count.to_string());
    let mut arguments = vec!["--act-as", "backlog", "--target", &target, "--events", &events, "--event", event];
    let url = database.as_ref().map(Database::url).transpose()?;
    arguments.extend(url.iter().flat_map(|url| ["--database", url]));
    let told = Child::start(&arguments).map(|child| child.told.clone());
    if let Some(database) = database {
        database.remove().await?;
    }
    let told = told?;
    let figure = |name: &str| told[name].as_f64().unwrap_or(f64::NAN);
    Ok(Handled { cpu_micros: figure("cpu") * 1e6 / count as f64, per_second: count as f64 / figure("seconds") })
}

/// Commits the facts, then handles them, and tells how long that took and what it cost.
pub async fn serve(database: Option<&str>, target: SocketAddr, count: usize, event: &str) -> Result<()> {
    let _log = web::logging::init(&Logging::default())?;
    let folder = tempfile::Builder::new().prefix("tenantry-bench-").tempdir()?;
    let adjusted = |options: &mut service::Options| options.outbound = Outbound::new(Targets::Any);
    let service = open(folder.path(), database, adjusted).await?;
    let first = service.first_run().await?.ok_or("the store is not new")?;
    let webhook = json!({ "url": format!("http://{target}/hooks"), "enabled": true, "events": [event] });
    let path = format!("/admin/apps/{}/webhook", first.app.id);
    put(&service, &path, ("authorization", &format!("Bearer {OPERATOR}")), &webhook).await?;
    rename_often(&service, &first.api_key, count).await?;

    let (before, started) = (process::cpu_time(std::process::id())?, service.core().db.clock().now());
    service.start();
    let cpu = rested().await?.saturating_sub(before);
    let (delivered, last) = delivered(&service).await?;
    let expected = if event == CAUSED { count } else { 0 };
    if usize::try_from(delivered)? != expected {
        return Err(format!("{delivered} of {expected} events were delivered").into());
    }
    let seconds = last.map_or(f64::NAN, |last| last.since(started).as_secs_f64());
    println!("{}", json!({ "cpu": cpu.as_secs_f64(), "seconds": seconds }));
    Ok(())
}

/// The type of event that a new name of a workspace is.
pub const CAUSED: &str = "tenant.updated";

async fn rename_often(service: &Service, key: &str, count: usize) -> Result<()> {
    let owner = json!({ "email": "events@bench.example", "firstName": "Ada", "lastName": "Lovelace" });
    let body = json!({ "owner": owner, "name": "Events" }).to_string();
    let made: Value = serde_json::from_slice(&post(service, "/account/tenant", ("x-api-key", key), &body, 200).await?)?;
    let path = &format!("/account/tenant/{}", made["id"].as_str().ok_or("a workspace without an id")?);
    let rename = |number| async move {
        put(service, path, ("x-api-key", key), &json!({ "name": format!("Events {number}") })).await
    };
    stream::iter(0..count).map(rename).buffer_unordered(AT_ONCE).try_collect().await
}

async fn put(service: &Service, path: &str, header: (&str, &str), body: &Value) -> Result<()> {
    let request = Request::put(path).header("content-type", "application/json").header(header.0, header.1);
    send(service, request.body(Body::from(body.to_string()))?, path, 200).await.map(|_| ())
}

/// The processor time that was used when there was nothing left to do.
async fn rested() -> Result<Duration> {
    let mut used = process::cpu_time(std::process::id())?;
    loop {
        tokio::time::sleep(REST).await;
        let now = process::cpu_time(std::process::id())?;
        if now.saturating_sub(used) <= LITTLE {
            return Ok(used);
        }
        used = now;
    }
}

async fn delivered(service: &Service) -> Result<(i64, Option<Timestamp>)> {
    const DELIVERED: &str = "SELECT count(*), max(delivered_at) FROM webhook_deliveries WHERE status = 'delivered'";
    Ok(service.core().db.read(|tx| tx.one(DELIVERED, &[])).await?)
}
