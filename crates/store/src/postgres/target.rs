//! The database URL, read the way PostgreSQL's own clients read it.

use std::{path::PathBuf, time::Duration};

use kernel::{Code, Error, Result};
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

use super::tls::Verify;

/// Where to connect and how far to trust it.
pub(super) struct Target {
    pub(super) config: Config,
    pub(super) verify: Verify,
    pub(super) roots: Option<PathBuf>,
    /// For messages: host, port and database, never the password.
    pub(super) name: String,
}

/// What the driver reads itself. Anything else is noted and left out, since hosting providers add parameters of their
/// own that only some clients know.
const DRIVER_KNOWS: &[&str] = &[
    "user",
    "password",
    "dbname",
    "options",
    "application_name",
    "sslnegotiation",
    "host",
    "hostaddr",
    "port",
    "connect_timeout",
    "tcp_user_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "target_session_attrs",
    "channel_binding",
    "load_balance_hosts",
];

impl Target {
    pub(super) fn parse(url: &str) -> Result<Self> {
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let mut kept = Vec::new();
        let mut mode = "prefer".to_owned();
        let mut roots = None;
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=').unwrap_or((parameter, "")) {
                ("sslmode", value) => mode = value.to_owned(),
                ("sslrootcert", value) => roots = Some(PathBuf::from(decoded(value)?)),
                (key, _) if DRIVER_KNOWS.contains(&key) => kept.push(parameter),
                (key, _) => tracing::warn!(parameter = key, "unknown parameter in the database URL"),
            }
        }
        let mut config: Config = format!("{address}?{}", kept.join("&")).parse().map_err(|_| {
            refusal(
                "The database URL cannot be understood: write postgres://user:password@host:port/database, with \
                 special characters in the password as %XX.",
            )
        })?;
        // Trust is asked for by name; a root certificate alone asks for it as well.
        let (ssl, verify) = match mode.as_str() {
            "disable" => (SslMode::Disable, Verify::Nothing),
            "allow" | "prefer" => (SslMode::Prefer, Verify::Nothing),
            "require" if roots.is_none() => (SslMode::Require, Verify::Nothing),
            "require" | "verify-ca" => (SslMode::Require, Verify::Authority),
            "verify-full" => (SslMode::Require, Verify::Full),
            _ => {
                return Err(refusal(
                    "The database URL's sslmode must be disable, prefer, require, verify-ca or verify-full.",
                ));
            }
        };
        config.ssl_mode(ssl);
        set_defaults(&mut config);
        let name = name(&config);
        Ok(Self { config, verify, roots, name })
    }
}

/// A server that silently vanished is noticed within about half a minute.
fn set_defaults(config: &mut Config) {
    if config.get_application_name().is_none() {
        config.application_name("tenantry");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(5));
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(Duration::from_secs(30));
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_idle(Duration::from_secs(15)).keepalives_interval(Duration::from_secs(5));
        config.keepalives_retries(3);
    }
}

fn name(config: &Config) -> String {
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .enumerate()
        .map(|(index, host)| {
            let port = config.get_ports().get(index).or(config.get_ports().first()).unwrap_or(&5432);
            match host {
                Host::Tcp(host) => format!("{host}:{port}"),
                Host::Unix(path) => format!("{}:{port}", path.display()),
            }
        })
        .collect();
    format!("PostgreSQL at {}, database {}", hosts.join(" or "), config.get_dbname().unwrap_or("of the user's name"))
}

fn decoded(value: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let pair = tail.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        match (first, pair.and_then(|pair| u8::from_str_radix(pair, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).map_err(|_| refusal("The database URL's sslrootcert is not a path in UTF-8."))
}

fn refusal(message: &'static str) -> Error {
    Error::new(Code::StorageUnavailable, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sslmode_decides_how_far_to_trust() {
        let parse = |query: &str| {
            let target = Target::parse(&format!("postgres://me:secret@db.example:6000/app?{query}")).expect("valid");
            (target.config.get_ssl_mode(), target.verify)
        };
        assert_eq!(parse(""), (SslMode::Prefer, Verify::Nothing));
        assert_eq!(parse("sslmode=disable"), (SslMode::Disable, Verify::Nothing));
        assert_eq!(parse("sslmode=require&pool_mode=x"), (SslMode::Require, Verify::Nothing));
        assert_eq!(parse("sslmode=require&sslrootcert=/x.pem"), (SslMode::Require, Verify::Authority));
        assert_eq!(parse("sslmode=verify-full"), (SslMode::Require, Verify::Full));
        assert!(Target::parse("postgres://db.example/app?sslmode=maybe").is_err());
    }

    #[test]
    fn a_target_is_named_without_its_password() {
        let target = Target::parse("postgres://me:s3cret@db.example:6000/app?sslrootcert=%2Fa%20b.pem").expect("valid");
        assert_eq!(target.name, "PostgreSQL at db.example:6000, database app");
        assert_eq!(target.roots, Some(PathBuf::from("/a b.pem")));
        let error = Target::parse("postgres://me:s3cret@db.example:port/app").err().expect("refused");
        assert!(!format!("{error:?}").contains("s3cret"));
    }
}
