//! Configuration: `tenantry.toml`, overridden by `TENANTRY_*` variables, overridden by flags.

mod reference;
pub mod settings;
mod values;

use std::{
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use billing::providers::stripe::StripeApi;
use kernel::Secret;
use service::{ProviderSettings, ResponseMode};
use spine::{Sender, mail::MailTransport, sms::SmsTransport, translator::Translator};
use store::DatabaseUrl;
use tenancy::federation::Provider;

pub use reference::reference_page;
pub use values::{Origin, Values};

/// What the program runs with, checked.
pub struct Config {
    pub listen: SocketAddr,
    /// Without a trailing slash.
    pub base_url: String,
    /// Whether somebody said so, and it is not guessed from `listen`.
    pub base_url_given: bool,
    pub data_dir: PathBuf,
    pub database: DatabaseUrl,
    pub operator_key: Option<Secret<String>>,
    pub master_key: Option<Secret<String>>,
    pub master_key_previous: Option<Secret<String>>,
    pub mail_url: Secret<String>,
    pub mail_from: Sender,
    pub sms_url: Secret<String>,
    pub translate_url: Secret<String>,
    pub files: files::Settings,
    pub payprovider_url: String,
    pub allow_private_targets: bool,
    pub trusted_proxies: Vec<String>,
    pub test_clock: bool,
    pub log: String,
    pub log_format: LogFormat,
    pub metrics_public: bool,
    pub requests_per_second: u32,
    pub requests_per_second_per_app: u32,
    pub in_flight: usize,
    pub in_flight_per_address: usize,
    pub connections: usize,
    pub connections_per_address: usize,
    pub refused_keys_per_minute: u32,
    pub credential_failures_per_minute: u32,
    pub login_starts_per_minute: u32,
    pub login_failures_per_account: u32,
    pub login_failures_per_address: u32,
    pub messages_per_minute: u32,
    pub request_timeout: Duration,
    pub drain: Duration,
    pub webhooks_keep: Duration,
    pub webhooks_keep_dead: Duration,
    pub realtime_heartbeat: Duration,
    pub lame_duck: Duration,
    pub store_limits: store::Limits,
    pub otel_endpoint: Option<String>,
    pub providers: Vec<(Provider, ProviderSettings)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Auto,
    Text,
    Json,
}

/// Operator keys that are given, not generated, must not be guessable.
const SHORTEST_OPERATOR_KEY: usize = 32;

impl Config {
    /// Checks every value and names all that are wrong at once.
    pub fn from_values(values: &Values) -> Result<Self, Vec<String>> {
        let mut reader = Reader { values, problems: Vec::new() };
        let config = reader.config();
        if reader.problems.is_empty() { Ok(config) } else { Err(reader.problems) }
    }

    /// The same, once it is known where the server listens: port 0 means a port of the system's choice.
    #[must_use]
    pub fn listening_on(mut self, address: SocketAddr) -> Self {
        if !self.base_url_given {
            self.base_url = base_url_of(address);
        }
        self.listen = address;
        self
    }
}

/// Reads values one by one; a wrong one is noted and replaced by a harmless one, so that reading continues.
struct Reader<'a> {
    values: &'a Values,
    problems: Vec<String>,
}

impl Reader<'_> {
    fn config(&mut self) -> Config {
        let listen: SocketAddr = self.parse("listen", "an address and port such as 127.0.0.1:4780");
        let data_dir = PathBuf::from(self.text("data_dir"));
        let database = match self.values.get("database_url") {
            None => DatabaseUrl::Sqlite(data_dir.join("tenantry.db")),
            Some(url) => url.parse().unwrap_or_else(|problem: String| {
                self.problem("database_url", &problem);
                DatabaseUrl::Sqlite(PathBuf::new())
            }),
        };
        Config {
            base_url: self.base_url(listen),
            base_url_given: self.values.get("base_url").is_some(),
            listen,
            database,
            operator_key: self.operator_key(),
            master_key: self.secret("master_key"),
            master_key_previous: self.secret("master_key_previous"),
            mail_url: self.url("mail_url", |url| MailTransport::from_url(url).map(|_| ())),
            mail_from: self.parse("mail_from", "an email address such as Shop <no-reply@shop.example>"),
            sms_url: self.url("sms_url", |url| SmsTransport::from_url(url).map(|_| ())),
            translate_url: self.translate_url(),
            files: self.files(&data_dir),
            payprovider_url: self.payprovider_url(),
            allow_private_targets: self.switch("allow_private_targets"),
            trusted_proxies: self.list("trusted_proxies"),
            test_clock: self.switch("test_clock"),
            log: self.text("log"),
            log_format: self.log_format(),
            metrics_public: self.switch("metrics.public"),
            requests_per_second: self.number("limits.requests_per_second", 0),
            requests_per_second_per_app: self.number("limits.requests_per_second_per_app", 0),
            in_flight: self.number("limits.in_flight", 1) as usize,
            in_flight_per_address: self.number("limits.in_flight_per_address", 0) as usize,
            connections: self.number("limits.connections", 1) as usize,
            connections_per_address: self.number("limits.connections_per_address", 0) as usize,
            refused_keys_per_minute: self.number("limits.refused_keys_per_minute", 0),
            credential_failures_per_minute: self.number("limits.credential_failures_per_minute", 0),
            login_starts_per_minute: self.number("limits.login_starts_per_minute", 0),
            login_failures_per_account: self.number("limits.login_failures_per_account", 0),
            login_failures_per_address: self.number("limits.login_failures_per_address", 0),
            messages_per_minute: self.number("limits.messages_per_minute", 0),
            request_timeout: Duration::from_secs(self.number("server.request_timeout_seconds", 1).into()),
            webhooks_keep: days(self.number("webhooks.keep_days", 1)),
            webhooks_keep_dead: days(self.number("webhooks.keep_dead_days", 1)),
            realtime_heartbeat: Duration::from_secs(self.number("realtime.heartbeat_seconds", 1).into()),
            drain: Duration::from_secs(self.number("server.drain_seconds", 0).into()),
            lame_duck: Duration::from_secs(self.number("server.lame_duck_seconds", 0).into()),
            store_limits: store::Limits {
                queue: self.number("store.queue", 1) as usize,
                readers: self.number("store.readers", 1) as usize,
                connections: self.number("store.connections", 1) as usize,
                ..store::Limits::default()
            },
            otel_endpoint: self.values.get("otel.endpoint").map(str::to_owned),
            providers: Provider::ALL.into_iter().filter_map(|one| Some((one, self.provider(one)?))).collect(),
            data_dir,
        }
    }

    fn base_url(&mut self, listen: SocketAddr) -> String {
        let Some(given) = self.values.get("base_url") else { return base_url_of(listen) };
        let trimmed = given.trim_end_matches('/');
        let valid = reqwest::Url::parse(trimmed).is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https") && url.query().is_none() && url.fragment().is_none()
        });
        if !valid {
            self.problem("base_url", "must be an http or https URL without query or fragment");
        }
        trimmed.to_owned()
    }

    fn payprovider_url(&mut self) -> String {
        let url = self.text("payprovider_url");
        if let Err(problem) = StripeApi::new(&url) {
            self.problem("payprovider_url", &problem);
        }
        url
    }

    /// A URL that may hold a password, judged by whoever will use it.
    fn url(&mut self, name: &str, judge: impl FnOnce(&Secret<String>) -> Result<(), String>) -> Secret<String> {
        let url = Secret::new(self.text(name));
        if let Err(problem) = judge(&url) {
            self.problem(name, &problem);
        }
        url
    }

    /// `None` for a provider that was not set up.
    fn provider(&mut self, provider: Provider) -> Option<ProviderSettings> {
        let name = |key: &str| format!("providers.{}.{key}", provider.setting());
        let endpoint = |reader: &mut Self, key: &str| {
            let url = reader.values.get(&name(key))?.trim().to_owned();
            // Checked with a word in place of the one that each app has of its own.
            let checked = url.replace("{tenantId}", "tenant");
            if !reqwest::Url::parse(&checked).is_ok_and(|url| matches!(url.scheme(), "http" | "https")) {
                reader.problem(&name(key), "must be an http or https URL");
            }
            Some(url)
        };
        let settings = ProviderSettings {
            name: self.text(&name("name")),
            issuer: endpoint(self, "issuer"),
            scopes: self.text(&name("scopes")),
            verified_claim: self.text(&name("verified_claim")),
            response_mode: self.response_mode(&name("response_mode")),
            authorization_endpoint: endpoint(self, "authorization_endpoint"),
            token_endpoint: endpoint(self, "token_endpoint"),
            userinfo_endpoint: endpoint(self, "userinfo_endpoint"),
            emails_endpoint: endpoint(self, "emails_endpoint"),
            jwks_uri: endpoint(self, "jwks_uri"),
        };
        if settings.authorization_endpoint.is_none() {
            return settings.issuer.is_some().then_some(settings);
        }
        if settings.token_endpoint.is_none() {
            self.problem(&name("token_endpoint"), "is required beside authorization_endpoint");
        }
        if settings.userinfo_endpoint.is_none() && settings.jwks_uri.is_none() {
            self.problem(&name("userinfo_endpoint"), "or jwks_uri is required beside authorization_endpoint");
        }
        Some(settings)
    }

    fn response_mode(&mut self, name: &str) -> ResponseMode {
        match self.text(name).as_str() {
            "query" => ResponseMode::Query,
            "form_post" => ResponseMode::FormPost,
            _ => {
                self.problem(name, "must be query or form_post");
                ResponseMode::Query
            }
        }
    }

    fn translate_url(&mut self) -> Secret<String> {
        let url = self.secret("translate_url").unwrap_or_else(|| Secret::new(String::new()));
        if let Err(problem) = Translator::from_url(&url) {
            self.problem("translate_url", &problem);
        }
        url
    }

    fn files(&mut self, data_dir: &Path) -> files::Settings {
        let place = match self.secret("files_url") {
            None => files::Place::Folder(data_dir.join("files")),
            Some(url) => files::Place::from_url(&url).unwrap_or_else(|problem| {
                self.problem("files_url", &problem);
                files::Place::Folder(PathBuf::new())
            }),
        };
        files::Settings {
            place,
            max_bytes: self.number("files.max_bytes", 1).into(),
            workspace_bytes: self.number("files.workspace_bytes", 1).into(),
        }
    }

    fn operator_key(&mut self) -> Option<Secret<String>> {
        let key = self.secret("operator_key")?;
        if key.expose().len() < SHORTEST_OPERATOR_KEY {
            self.problem("operator_key", &format!("must have at least {SHORTEST_OPERATOR_KEY} characters"));
        }
        Some(key)
    }

    fn log_format(&mut self) -> LogFormat {
        match self.text("log_format").as_str() {
            "auto" => LogFormat::Auto,
            "text" => LogFormat::Text,
            "json" => LogFormat::Json,
            _ => {
                self.problem("log_format", "must be auto, text or json");
                LogFormat::Auto
            }
        }
    }

    fn text(&self, name: &str) -> String {
        let default = settings::Setting::find(name).map_or("", |setting| setting.default);
        self.values.get(name).unwrap_or(default).to_owned()
    }

    fn secret(&self, name: &str) -> Option<Secret<String>> {
        self.values.get(name).map(|value| Secret::new(value.trim().to_owned()))
    }

    fn list(&self, name: &str) -> Vec<String> {
        let given = self.values.get(name).unwrap_or_default();
        given.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
    }

    fn switch(&mut self, name: &str) -> bool {
        match self.text(name).as_str() {
            "true" | "1" | "yes" | "on" => true,
            "false" | "0" | "no" | "off" => false,
            _ => {
                self.problem(name, "must be true or false");
                false
            }
        }
    }

    fn number(&mut self, name: &str, least: u32) -> u32 {
        match self.text(name).parse() {
            Ok(number) if number >= least => number,
            _ => {
                self.problem(name, &format!("must be a whole number of at least {least}"));
                least
            }
        }
    }

    fn parse<T: FromStr>(&mut self, name: &str, wanted: &str) -> T {
        let default = settings::Setting::find(name).map_or("", |setting| setting.default);
        let given = self.text(name);
        given.parse().unwrap_or_else(|_| {
            self.problem(name, &format!("must be {wanted}"));
            default.parse().ok().expect("the default in the list of settings is valid")
        })
    }

    fn problem(&mut self, name: &str, message: &str) {
        let origin = self.values.origin(name).map_or_else(String::new, |origin| format!(" (from {origin})"));
        self.problems.push(format!("{name} {message}{origin}"));
    }
}

/// Whether this host of a URL is the machine itself.
pub fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// The base URL of an installation that was given none.
fn base_url_of(listen: SocketAddr) -> String {
    // By this name passkeys work, which they do not by an address.
    if listen.ip().is_loopback() {
        return format!("http://localhost:{}", listen.port());
    }
    format!("http://{listen}")
}

fn days(count: u32) -> Duration {
    Duration::from_secs(u64::from(count) * 24 * 3_600)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(variables: &[(&str, &str)]) -> Result<Config, Vec<String>> {
        let mut values = Values::default();
        values.read_environment(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        Config::from_values(&values)
    }

    #[test]
    fn nothing_given_is_a_working_configuration() {
        let config = config(&[]).expect("defaults are valid");
        assert_eq!(config.base_url, "http://localhost:4780");
        assert_eq!(config.database.to_string(), "sqlite:./tenantry-data/tenantry.db");
        assert!(!config.test_clock);
    }

    #[test]
    fn a_provider_is_there_once_it_says_where_it_is() {
        let issuer = ("TENANTRY_PROVIDERS_DIRECTORYAD_ISSUER", "https://login.example/{tenantId}/v2.0");
        let set = config(&[issuer, ("TENANTRY_PROVIDERS_SOCIALONE_NAME", "Acme")]).expect("valid");
        let [(provider, settings)] = set.providers.as_slice() else { panic!("{:?}", set.providers) };
        assert_eq!((*provider, settings.scopes.as_str()), (Provider::DirectoryAd, "openid email profile"));
        let half = [("TENANTRY_PROVIDERS_SOCIALTWO_AUTHORIZATION_ENDPOINT", "https://a.example/authorize")];
        assert_eq!(config(&half).err().expect("half of it").len(), 2);
        let wrong = [issuer, ("TENANTRY_PROVIDERS_DIRECTORYAD_RESPONSE_MODE", "fragment")];
        assert_eq!(config(&wrong).err().expect("a wrong mode").len(), 1);
    }

    #[test]
    fn every_wrong_value_is_named_with_its_source() {
        let wrong = [
            ("TENANTRY_LISTEN", "nowhere"),
            ("TENANTRY_BASE_URL", "ftp://x"),
            ("TENANTRY_TEST_CLOCK", "maybe"),
            ("TENANTRY_STORE_READERS", "0"),
            ("TENANTRY_OPERATOR_KEY", "short"),
            ("TENANTRY_DATABASE_URL", "mysql://x"),
            ("TENANTRY_MAIL_FROM", "nobody"),
        ];
        let problems = config(&wrong).err().expect("as many problems");
        assert_eq!(problems.len(), wrong.len(), "{problems:?}");
        assert!(
            problems[0].starts_with("database_url") || problems.iter().any(|p| p.contains("(from TENANTRY_LISTEN)"))
        );
    }
}
