//! From the configuration to an open service.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use kernel::{Clock, Code, Entropy, Error, Result};
use service::{
    LoginLimits, Options, Providers, Service,
    installation::{GivenKeys, Opening, Recovered},
};
use spine::outbound::{Outbound, Targets};
use store::{DatabaseUrl, MoveEstimate, MoveProgress, Moved};
use web::{LimitClass, Quota, RateLimits, TrustedProxies};

use crate::config::Config;

/// Opens the service for a command, without its background work.
pub async fn open(config: &Config) -> Result<Service> {
    Service::open(options(config, Opening::Command)?).await
}

/// Opens the service to serve it, without starting its background work yet.
pub async fn serve(config: &Config, after_move: bool) -> Result<Service> {
    Service::open(Options { after_move, ..options(config, Opening::Serve)? }).await
}

/// Moves the embedded store into an empty database of PostgreSQL.
pub async fn migrate_to(
    config: &Config,
    target: DatabaseUrl,
    watcher: Arc<dyn Fn(&MoveProgress) + Send + Sync>,
) -> Result<Moved> {
    service::installation::migrate_to(options(config, Opening::Command)?, target, watcher).await
}

/// How long that would take.
pub async fn estimate_move(config: &Config, target: DatabaseUrl) -> Result<MoveEstimate> {
    service::installation::estimate_move(options(config, Opening::Command)?, target).await
}

/// The socket of an embedded store's server, in the folder that the server holds the lock of: nobody else can be there.
pub fn socket(config: &Config) -> Option<PathBuf> {
    match &config.database {
        DatabaseUrl::Sqlite(path) => Some(path.with_file_name("server.sock")),
        DatabaseUrl::Postgres(_) => None,
    }
}

/// Loads a backup into the configured store, which must be empty.
pub async fn restore(config: &Config, file: &Path) -> Result<Recovered> {
    service::installation::restore(options(config, Opening::Serve)?, file).await
}

/// What a person at a terminal should read: the message, and the cause where it helps.
pub fn explain(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{} ({source})", error.public()),
        None => error.public().to_owned(),
    }
}

fn options(config: &Config, opening: Opening) -> Result<Options> {
    let clock = Clock::system();
    let ranges: Vec<_> = config.trusted_proxies.iter().map(|range| parse_range(range)).collect::<Result<_>>()?;
    Ok(Options {
        database: config.database.clone(),
        store_limits: config.store_limits.clone(),
        rate_limits: RateLimits::new(clock.clone())
            .with(LimitClass::General, per_second(config.requests_per_second))
            .with(LimitClass::App, per_second(config.requests_per_second_per_app))
            .with(LimitClass::Key, per_minute(config.refused_keys_per_minute))
            .with(LimitClass::Credential, per_minute(config.credential_failures_per_minute))
            .with(LimitClass::Start, per_minute(config.login_starts_per_minute))
            .with(LimitClass::Message, in_small_bursts(config.messages_per_minute)),
        login_limits: LoginLimits {
            per_account: config.login_failures_per_account,
            per_address: config.login_failures_per_address,
        },
        clock,
        entropy: Entropy::os(),
        base_url: config.base_url.clone(),
        keys: GivenKeys {
            operator: config.operator_key.clone(),
            master: config.master_key.clone(),
            master_previous: config.master_key_previous.clone(),
            folder: config.data_dir.clone(),
        },
        opening,
        after_move: false,
        mail_url: config.mail_url.clone(),
        mail_from: config.mail_from.clone(),
        sms_url: config.sms_url.clone(),
        translate_url: config.translate_url.clone(),
        files: config.files.clone(),
        payprovider_url: config.payprovider_url.clone(),
        outbound: Outbound::new(Targets::of_service(&config.base_url, config.allow_private_targets)),
        providers: Providers::new(config.providers.clone()),
        webhooks: signals::Settings {
            keep_delivered: config.webhooks_keep,
            keep_dead: config.webhooks_keep_dead,
            heartbeat: config.realtime_heartbeat,
            most_streams: signals::streams_beside(config.connections),
        },
        test_clock: config.test_clock,
        metrics_public: config.metrics_public,
        web: web::Settings {
            https: config.base_url.starts_with("https://"),
            trusted_proxies: TrustedProxies::new(ranges),
            timeout: config.request_timeout,
            max_in_flight: config.in_flight,
            max_in_flight_per_address: config.in_flight_per_address,
            ..web::Settings::default()
        },
    })
}

fn per_second(count: u32) -> Quota {
    Quota { per_minute: count.saturating_mul(60), burst: count.saturating_mul(2) }
}

fn per_minute(count: u32) -> Quota {
    Quota { per_minute: count, burst: count }
}

/// For what costs something: at once only a part of what a minute allows.
fn in_small_bursts(count: u32) -> Quota {
    Quota { per_minute: count, burst: count.div_ceil(3) }
}

/// A range such as 10.0.0.0/8, or a single address.
fn parse_range(text: &str) -> Result<web::IpNet> {
    let single = || text.parse::<std::net::IpAddr>().map(web::IpNet::from);
    text.parse().or_else(|_| single()).map_err(|_| {
        Error::new(
            Code::ValidationFailed,
            format!("trusted_proxies: {text} is not an address or a range such as 10.0.0.0/8."),
        )
    })
}
