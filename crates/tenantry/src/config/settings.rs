//! Every setting, in one list: the parser, `tenantry config show`, `--help` and `docs/configuration.md` are made from it.

use std::sync::LazyLock;

/// What form a value has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Switch,
    Number,
    Secret,
}

pub struct Setting {
    /// As in the file, with a dot between table and key. The environment variable and the flag follow from it.
    pub name: &'static str,
    pub kind: Kind,
    /// As a person reads it; the value itself where it is constant.
    pub default: &'static str,
    pub help: &'static str,
}

impl Setting {
    pub fn find(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().copied().find(|setting| setting.name == name)
    }

    /// `metrics.public` is `TENANTRY_METRICS_PUBLIC`.
    pub fn variable(&self) -> String {
        format!("TENANTRY_{}", self.name.replace('.', "_").to_uppercase())
    }

    /// `metrics.public` is `--metrics-public`.
    pub fn flag(&self) -> String {
        self.name.replace(['.', '_'], "-")
    }
}

const fn text(name: &'static str, default: &'static str, help: &'static str) -> Setting {
    Setting { name, kind: Kind::Text, default, help }
}
const fn number(name: &'static str, default: &'static str, help: &'static str) -> Setting {
    Setting { name, kind: Kind::Number, default, help }
}
const fn switch(name: &'static str, help: &'static str) -> Setting {
    Setting { name, kind: Kind::Switch, default: "false", help }
}
const fn secret(name: &'static str, default: &'static str, help: &'static str) -> Setting {
    Setting { name, kind: Kind::Secret, default, help }
}

/// The settings of one provider.
macro_rules! provider {
    ($name:literal) => {
        [
            text(
                concat!("providers.", $name, ".name"),
                $name,
                "What people know this provider as. It can be used once its issuer, or its endpoints, are set, and an app has \
                 turned it on and set its client.",
            ),
            text(
                concat!("providers.", $name, ".issuer"),
                "none",
                "The provider's issuer, below which its discovery document is found. {tenantId} stands for the app's \
                 directoryAdTenantId.",
            ),
            text(concat!("providers.", $name, ".scopes"), "openid email profile", "What the provider is asked for."),
            text(
                concat!("providers.", $name, ".verified_claim"),
                "email_verified",
                "The claim by which the provider calls an email address verified.",
            ),
            text(
                concat!("providers.", $name, ".response_mode"),
                "query",
                "How the provider's answer comes back: query or form_post.",
            ),
            text(
                concat!("providers.", $name, ".authorization_endpoint"),
                "none",
                "For a provider without discovery: where people sign in.",
            ),
            text(
                concat!("providers.", $name, ".token_endpoint"),
                "none",
                "For a provider without discovery: where codes are exchanged.",
            ),
            text(
                concat!("providers.", $name, ".userinfo_endpoint"),
                "none",
                "For a provider without discovery: where it says who somebody is.",
            ),
            text(
                concat!("providers.", $name, ".emails_endpoint"),
                "none",
                "For a provider without discovery that keeps addresses apart: a list of email, primary and verified.",
            ),
            text(
                concat!("providers.", $name, ".jwks_uri"),
                "none",
                "For a provider without discovery that issues ID tokens: its keys.",
            ),
        ]
    };
}

static OF_PROVIDERS: [[Setting; 10]; 5] = [
    provider!("socialOne"),
    provider!("socialTwo"),
    provider!("socialThree"),
    provider!("socialFour"),
    provider!("directoryAd"),
];

/// Every setting, in the order in which they are shown.
pub static SETTINGS: LazyLock<Vec<&'static Setting>> =
    LazyLock::new(|| GENERAL.iter().chain(OF_PROVIDERS.as_flattened()).collect());

static GENERAL: &[Setting] = &[
    text("listen", "127.0.0.1:4780", "Address and port to listen on."),
    text(
        "base_url",
        "http://localhost:<port>",
        "The URL under which browsers and other services reach this one. The token issuer is <base_url>/auth. Must be \
         given when listen is not an address of this machine alone.",
    ),
    text("data_dir", "./tenantry-data", "Folder for the embedded database and the generated keys."),
    text(
        "database_url",
        "sqlite:<data_dir>/tenantry.db",
        "Where the data lives: sqlite:PATH, or postgres://user:password@host:port/database (PostgreSQL 15 or later).",
    ),
    secret(
        "operator_key",
        "generated into <data_dir>/operator.key",
        "The key of the operator API under /admin. At least 32 characters. A new store adopts the one it is given; \
         every further node needs the same one.",
    ),
    secret(
        "master_key",
        "generated into <data_dir>/master.key",
        "32 bytes in base64 or hex that encrypt secrets at rest. Keep a copy apart from the backups: without it these \
         secrets are lost.",
    ),
    secret(
        "master_key_previous",
        "none",
        "The previous master key, accepted while a job re-encrypts everything with the current one.",
    ),
    text(
        "mail_url",
        "log:",
        "How mail is sent: smtp://user:password@host:port (STARTTLS is required unless the host is this machine; \
         ?tls=opportunistic or ?tls=none say otherwise), smtps://…, file:DIR (one .eml per \
         message), or log: (printed to the log; for development).",
    ),
    text(
        "mail_from",
        "Tenantry <no-reply@localhost>",
        "Sender of mail for apps without a verified sender of their own.",
    ),
    text(
        "sms_url",
        "log:",
        "How text messages are sent: http(s)://… (a JSON POST of { to, text }; a message that is sent again has the same \
         Idempotency-Key header), file:DIR, or log: (for development).",
    ),
    secret(
        "translate_url",
        "none",
        "A translator that speaks LibreTranslate's protocol: http(s)://…, with its API key as password \
         (https://:key@host). Without one, texts that the app does not translate itself stay as they are.",
    ),
    secret(
        "files_url",
        "file:<data_dir>/files",
        "Where uploaded files are kept: file:DIR, or a bucket of an S3-compatible storage, \
         s3://KEY:SECRET@host[:port]/bucket?region=…&path_style=true. region is us-east-1 unless said; with path_style the \
         bucket is not a part of the host's name; ?tls=none speaks plain HTTP. Special characters of the secret are written \
         as %2F (for /) and so on. Several nodes need S3 or a folder that they share.",
    ),
    number("files.max_bytes", "67108864", "The largest file that can be uploaded, in bytes."),
    number("files.workspace_bytes", "1073741824", "What all files of a workspace may take up together, in bytes."),
    text(
        "payprovider_url",
        "https://api.stripe.com",
        "The Stripe-compatible API of the payment provider, without /v1, for apps whose secret key is not the sandbox's.",
    ),
    switch(
        "allow_private_targets",
        "Let webhooks, identity providers and files to import be on private and loopback addresses. Without it only \
         servers on the internet are called; a service on a loopback base_url may call its own machine too.",
    ),
    text(
        "trusted_proxies",
        "none",
        "Address ranges, separated by commas, whose X-Forwarded-For header is trusted, read from right to left.",
    ),
    switch("test_clock", "Run on a clock that POST /admin/test-clock moves forward. For testing only."),
    text("log", "info", "What is logged: a level, or directives such as info,store=debug."),
    text("log_format", "auto", "text, json, or auto: text on a terminal, json otherwise."),
    switch("metrics.public", "Serve /metrics without the operator key."),
    number("limits.requests_per_second", "0", "Requests per second and client address; 0 means no limit."),
    number(
        "limits.requests_per_second_per_app",
        "0",
        "Requests per second that come with keys and tokens of one app, those of its users included; beyond that they get 429. \
         0 means no limit.",
    ),
    number("limits.in_flight", "2048", "Requests served at the same time; beyond that callers get 503."),
    number(
        "limits.in_flight_per_address",
        "1024",
        "Requests of one client address (IPv6: of a /64) that arrive or are served at the same time; beyond that it gets 429. \
         0 means no limit.",
    ),
    number("limits.connections", "10000", "Connections that are open at the same time; beyond that new ones wait."),
    number(
        "limits.connections_per_address",
        "2048",
        "Connections of one address (IPv6: of a /64) that are open at the same time; beyond that new ones are closed. \
         Trusted proxies are not counted. 0 means no limit.",
    ),
    number(
        "limits.refused_keys_per_minute",
        "3000",
        "Refused keys and tokens per minute and client address; 0 means no limit. They cannot be guessed: this bounds the work \
         that refusing takes.",
    ),
    number(
        "limits.credential_failures_per_minute",
        "100",
        "Refused answers of identity providers, and requests to change one's password, per minute and client address; \
         0 means no limit.",
    ),
    number(
        "limits.login_starts_per_minute",
        "1000",
        "Logins through identity providers that are begun per minute and client address, each of which is remembered for ten \
         minutes; 0 means no limit.",
    ),
    number(
        "limits.login_failures_per_account",
        "10",
        "Wrong passwords per minute, account and client network, before each further one doubles the wait. Also wrong \
         second-factor codes per person in any hour, beyond which none is judged. 0 means no limit.",
    ),
    number(
        "limits.login_failures_per_address",
        "100",
        "Failed logins per minute and client network, whatever the account; 0 means no limit.",
    ),
    number(
        "limits.messages_per_minute",
        "300",
        "Requests per minute and client address that send an email or an SMS; 0 means no limit.",
    ),
    number("server.request_timeout_seconds", "30", "A request that takes longer is answered with 503."),
    number(
        "server.lame_duck_seconds",
        "0",
        "How long a server that was told to stop still accepts requests while /readyz says no; 5 is a good value behind a \
         load balancer.",
    ),
    number("server.drain_seconds", "25", "How long a stopping server waits for the requests it is serving."),
    number("store.queue", "4096", "Transactions that may wait for the database; beyond that callers get 503."),
    number("store.readers", "2", "Reader threads of the embedded database."),
    number(
        "store.connections",
        "8",
        "Connection threads on PostgreSQL. Nodes × (connections + 5) must stay below its max_connections.",
    ),
    number("webhooks.keep_days", "30", "Days that delivered webhook events are kept."),
    number("webhooks.keep_dead_days", "90", "Days that webhook events are kept that could not be delivered."),
    number("realtime.heartbeat_seconds", "25", "How often an open realtime stream is sent a comment."),
    text("otel.endpoint", "none", "OTLP/HTTP endpoint for traces. Needs a build with the otel feature."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_variables_and_flags() {
        let setting = Setting::find("metrics.public").expect("known");
        assert_eq!(
            (setting.variable().as_str(), setting.flag().as_str()),
            ("TENANTRY_METRICS_PUBLIC", "metrics-public")
        );
    }

    #[test]
    fn no_two_settings_share_a_name_variable_or_flag() {
        for (index, one) in SETTINGS.iter().enumerate() {
            for other in &SETTINGS[index + 1..] {
                assert!(one.variable() != other.variable() && one.flag() != other.flag(), "{}", one.name);
            }
        }
    }
}
