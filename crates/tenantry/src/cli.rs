//! The command line. Flags for settings are made from the list of settings.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::config::{
    Config, Origin, Values,
    settings::{Kind, SETTINGS},
};

/// Login, workspaces, billing, flags and events for a B2B SaaS, in one program.
#[derive(Parser)]
#[command(
    name = "tenantry",
    version,
    max_term_width = 100,
    after_help = "Settings are described in docs/configuration.md."
)]
pub struct Cli {
    /// The configuration file [default: tenantry.toml, if there is one]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The server that a command speaks to, with the operator key [env: TENANTRY_URL] [default: the one of this data
    /// folder, or none]
    #[arg(long, global = true, value_name = "URL")]
    pub url: Option<String>,
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run the service (the default)
    Serve {
        /// Use an embedded store that was moved to PostgreSQL all the same
        #[arg(long)]
        after_move: bool,
    },
    /// Create, list, show, change, delete, export and import apps
    #[command(subcommand)]
    App(AppCommand),
    /// Create, list and revoke an app's API keys
    #[command(subcommand)]
    Key(KeyCommand),
    /// Feature flags: list, read, and apply from files that live in a repository
    #[command(subcommand)]
    Flag(FlagCommand),
    /// Webhooks: try a receiver, look at deliveries, send them again, and listen while developing
    #[command(subcommand)]
    Webhook(WebhookCommand),
    /// The event log: watch it and export it
    #[command(subcommand)]
    Events(EventsCommand),
    /// The audit trail: verify that it is as it was written
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Billing: try out what time and money do to a subscription
    #[command(subcommand)]
    Billing(BillingCommand),
    /// The keys that sign tokens
    #[command(subcommand, name = "signing-key", visible_alias = "keys")]
    Keys(KeysCommand),
    /// The key of the operator API
    #[command(subcommand)]
    OperatorKey(OperatorKeyCommand),
    /// The secrets that sign an app's API tokens
    #[command(subcommand)]
    Secret(SecretCommand),
    /// Check this installation for problems and how to fix them
    Doctor(Output),
    /// Show the configuration that a program started here would have
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the OpenAPI document
    Openapi,
    /// Print completions of the command line for a shell: source <(tenantry completions bash)
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Back up the whole store to one file, while the service keeps running
    Backup {
        /// The file to write; must not exist
        file: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Load a backup into an empty store
    Restore {
        /// A file made by `tenantry backup`
        file: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Archives of apps, as made by `tenantry app export`
    #[command(subcommand)]
    Archive(ArchiveCommand),
    /// Move the embedded store to an empty database of PostgreSQL, while the server is stopped
    MigrateTo {
        /// Where to: postgres://user:password@host:port/database, or - to read that from standard input
        target: String,
        /// Only check both sides and estimate how long it takes
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        output: Output,
    },
    /// For developers of Tenantry
    #[command(subcommand, hide = true)]
    Dev(DevCommand),
}

/// How a command answers.
#[derive(Args, Clone, Copy)]
pub struct Output {
    /// Answer in JSON, for scripts
    #[arg(long)]
    pub json: bool,
}

#[derive(Subcommand)]
pub enum AppCommand {
    /// Create an app and print its API key, which is not shown again
    Create {
        /// What people see
        name: String,
        /// A host name that no other app has
        #[arg(long)]
        domain: String,
        /// The address of the app's frontend
        #[arg(long)]
        ui_url: Option<String>,
        /// Where logins may return to; may be given several times
        #[arg(long = "redirect-uri", value_name = "URI")]
        redirect_uris: Vec<String>,
        /// Where logins return to when nothing else is asked for
        #[arg(long, value_name = "URI")]
        default_callback_uri: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// List the apps, newest first
    List(Output),
    /// Show an app's profile
    Get {
        /// The app's id
        app: String,
        #[command(flatten)]
        output: Output,
    },
    /// Change an app's profile
    Update {
        /// The app's id
        app: String,
        /// What people see
        #[arg(long)]
        name: Option<String>,
        /// The address of the app's frontend
        #[arg(long)]
        ui_url: Option<String>,
        /// Where logins may return to, instead of what was registered; may be given several times
        #[arg(long = "redirect-uri", value_name = "URI")]
        redirect_uris: Vec<String>,
        /// Where logins return to when nothing else is asked for
        #[arg(long, value_name = "URI")]
        default_callback_uri: Option<String>,
        /// Any other member of the profile, as `tenantry app get` shows it; the value in JSON, or plain text
        #[arg(long = "set", value_name = "MEMBER=VALUE", value_parser = member_and_value)]
        set: Vec<(String, serde_json::Value)>,
        #[command(flatten)]
        output: Output,
    },
    /// Delete an app with its workspaces, people and everything else in it
    Delete {
        /// The app's id
        app: String,
        /// The app's domain, to show that this is the one
        #[arg(long, value_name = "DOMAIN")]
        confirm: String,
        #[command(flatten)]
        output: Output,
    },
    /// Export an app with everything in it to an encrypted archive, while the service keeps running
    Export {
        /// The app's id
        app: String,
        /// The file to write; must not exist
        file: PathBuf,
        #[command(flatten)]
        key: ArchiveKeyFiles,
        #[command(flatten)]
        output: Output,
    },
    /// Import an app from an archive; its ids stay
    Import {
        /// A file made by `tenantry app export`
        file: PathBuf,
        /// Check everything and say what would be imported, but store nothing
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        key: ArchiveKeyFiles,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Subcommand)]
pub enum ArchiveCommand {
    /// Check that an archive is whole and say what is in it; needs no server
    Verify {
        /// A file made by `tenantry app export`
        file: PathBuf,
        #[command(flatten)]
        key: ArchiveKeyFiles,
        #[command(flatten)]
        output: Output,
    },
}

/// What an archive is encrypted with.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub struct ArchiveKeyFiles {
    /// A file with the passphrase on its first line
    #[arg(long, value_name = "FILE")]
    pub passphrase_file: Option<PathBuf>,
    /// A file with 32 bytes in base64 or hex, as made by `openssl rand -base64 32`
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

#[derive(Subcommand)]
pub enum KeyCommand {
    /// Create an API key and print it; it is not shown again
    Create {
        /// The app's id
        app: String,
        /// What the key is for
        #[arg(long, default_value = "Created on the command line")]
        name: String,
        /// A privilege to hold; may be given several times [default: all but the destructive two]
        #[arg(long = "privilege", value_name = "KEY")]
        privileges: Vec<String>,
        #[command(flatten)]
        output: Output,
    },
    /// List an app's API keys; the keys themselves are never shown
    List {
        /// The app's id
        app: String,
        #[command(flatten)]
        output: Output,
    },
    /// Revoke an API key at once
    Revoke {
        /// The app's id
        app: String,
        /// The key's id
        key: String,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Subcommand)]
pub enum WebhookCommand {
    /// Send a signed sample to the receiver now
    Test {
        #[command(flatten)]
        of: OfApp,
        /// The event type [default: tenant.created]
        #[arg(long = "type", value_name = "TYPE")]
        event_type: Option<String>,
        /// Where to send it [default: the app's webhook]
        #[arg(long = "to", value_name = "URL")]
        to: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// List deliveries, newest first
    Deliveries {
        #[command(flatten)]
        of: OfApp,
        /// pending, delivered, failed or dlq
        #[arg(long)]
        status: Option<String>,
        #[arg(long, default_value_t = 20)]
        limit: u32,
        #[command(flatten)]
        output: Output,
    },
    /// Send a delivery again, as a new one
    Replay {
        #[command(flatten)]
        of: OfApp,
        /// The delivery's id
        delivery: String,
        #[command(flatten)]
        output: Output,
    },
    /// Send again what was not delivered, oldest first
    Recover {
        #[command(flatten)]
        of: OfApp,
        /// From this time on, such as 2026-01-31T09:30:00Z
        #[arg(long)]
        since: String,
        /// Up to this time [default: now]
        #[arg(long)]
        until: Option<String>,
        /// Only this event type; may be given several times
        #[arg(long = "type", value_name = "TYPE")]
        types: Vec<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Print events as they happen and forward them, signed, without touching the app's webhook
    Listen {
        #[command(flatten)]
        of: OfApp,
        /// Where to forward them, such as http://localhost:3000/hooks
        #[arg(long, value_name = "URL")]
        forward: Option<String>,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Subcommand)]
pub enum EventsCommand {
    /// Print events as they arrive
    Tail {
        #[command(flatten)]
        of: OfApp,
        /// Only events of this name, such as 'order.*'
        #[arg(long, value_name = "NAME")]
        event: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Export an app's events into a file; run it again to resume one that was interrupted
    Export {
        #[command(flatten)]
        of: OfApp,
        /// The file to write; must not exist unless it is resumed
        file: PathBuf,
        /// jsonl or csv
        #[arg(long, default_value = "jsonl", value_parser = ["jsonl", "csv"])]
        format: String,
        /// From this time on, such as 2026-01-31T09:30:00Z
        #[arg(long)]
        from: Option<String>,
        /// Up to this time
        #[arg(long)]
        to: Option<String>,
    },
    /// Where events are sent as well
    #[command(subcommand)]
    Sink(SinkCommand),
}

#[derive(Subcommand)]
pub enum SinkCommand {
    /// Print the table that ClickHouse needs
    Ddl {
        /// Its name, with or without a database
        #[arg(long)]
        table: Option<String>,
    },
    /// Show where an app's events are sent, and whether they arrive
    Show {
        #[command(flatten)]
        of: OfApp,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Subcommand)]
pub enum AuditCommand {
    /// Verify the service's own entries; fails when one was changed, removed or put in
    Verify {
        #[command(flatten)]
        of: OfApp,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Subcommand)]
pub enum BillingCommand {
    /// Let something happen to a subscription of the sandbox, events and mails included
    Simulate {
        /// The workspace's id
        workspace: String,
        /// renewal_paid, renewal_failed, dunning_exhausted, trial_ended or period_ended
        event: String,
        #[command(flatten)]
        of: OfApp,
        #[command(flatten)]
        output: Output,
    },
}

/// Which app a command is about.
#[derive(Args, Clone)]
pub struct OfApp {
    /// The app's id [default: the only app there is]
    #[arg(long, value_name = "ID")]
    pub app: Option<String>,
}

#[derive(Subcommand)]
pub enum FlagCommand {
    /// List the flags, and keys that code uses without a flag
    List {
        #[command(flatten)]
        of: OfApp,
        #[command(flatten)]
        output: Output,
    },
    /// Show a flag, in a form that can be applied
    Get {
        /// The flag's key
        key: String,
        #[command(flatten)]
        of: OfApp,
        #[command(flatten)]
        output: Output,
    },
    /// Create or change flags and groups from a file
    #[command(
        after_help = "The file is YAML or JSON: one flag, a list of flags, or { app?, groups?: [...], flags?: [...] }. \
                      Whatever the file does not mention stays unchanged."
    )]
    Apply {
        /// The file, or - for standard input
        file: PathBuf,
        #[command(flatten)]
        of: OfApp,
        /// Only print what would be done
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Delete a flag
    Delete {
        /// The flag's key
        key: String,
        #[command(flatten)]
        of: OfApp,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Subcommand)]
pub enum KeysCommand {
    /// Publish a new signing key; it takes over once every verifier had time to see it
    Rotate {
        /// The key that identity providers encrypt SAML assertions for; the one before opens for another 30 days
        #[arg(long)]
        saml: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Revoke a compromised signing key; everything it signed is refused immediately
    Revoke {
        /// The key's id
        kid: String,
        #[command(flatten)]
        output: Output,
    },
    /// List the signing keys
    List {
        /// The keys that identity providers encrypt SAML assertions for
        #[arg(long)]
        saml: bool,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Subcommand)]
pub enum OperatorKeyCommand {
    /// Replace the operator key; the one before it works for another hour
    Rotate {
        /// End the one before it at once, because somebody else may have it
        #[arg(long)]
        now: bool,
        /// A file that holds the new key [default: one is generated into operator.key in the data folder]
        #[arg(long, value_name = "FILE")]
        key_file: Option<PathBuf>,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Subcommand)]
pub enum SecretCommand {
    /// Sign with a new secret; tokens of older secrets stay valid until those are retired
    Rotate {
        /// The app's id
        app: String,
        #[command(flatten)]
        output: Output,
    },
    /// List an app's secrets and how many tokens each has signed; the secrets themselves are never shown
    List {
        /// The app's id
        app: String,
        #[command(flatten)]
        output: Output,
    },
    /// Retire a secret and revoke every token that it signed
    Retire {
        /// The app's id
        app: String,
        /// The secret's id
        secret: String,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Subcommand)]
pub enum ConfigCommand {
    /// Every setting with its value and where that comes from; a server that runs may have been given others
    Show(Output),
}

#[derive(Subcommand)]
pub enum DevCommand {
    /// Write the generated files under docs/, or check that they are fresh
    Generate {
        /// Write nothing; fail when a file is stale
        #[arg(long)]
        check: bool,
    },
}

/// `requirePkce=true`, `name=Shop`, `logo=null`.
fn member_and_value(text: &str) -> Result<(String, serde_json::Value), String> {
    let (member, value) = text.split_once('=').ok_or("must be MEMBER=VALUE")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| serde_json::Value::from(value));
    Ok((member.to_owned(), value))
}

/// The parsed command line and the values of the settings, from all sources.
pub fn parse() -> Result<(Cli, Values), String> {
    let matches = command().get_matches();
    let mut cli = Cli::from_arg_matches(&matches).map_err(|error| error.to_string())?;
    cli.url = cli.url.or_else(|| std::env::var("TENANTRY_URL").ok()).filter(|url| !url.is_empty());
    let mut values = Values::default();
    match &cli.config {
        Some(file) => values.read_file(file)?,
        None if PathBuf::from("tenantry.toml").exists() => values.read_file("tenantry.toml".as_ref())?,
        None => {}
    }
    for unknown in values.read_environment(std::env::vars()) {
        eprintln!("Warning: {unknown} is not a setting; `tenantry config show` lists them all.");
    }
    read_flags(&mut values, &matches);
    warn_of_secrets(&values);
    Ok((cli, values))
}

/// The script with which a shell completes what is typed.
pub fn completions(shell: clap_complete::Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "tenantry", &mut script);
    script
}

pub fn checked(values: &Values) -> Result<Config, String> {
    Config::from_values(values)
        .map_err(|problems| format!("The configuration is not valid:\n  - {}", problems.join("\n  - ")))
}

fn command() -> clap::Command {
    SETTINGS.iter().copied().fold(Cli::command(), |command, setting| {
        let variable = setting.variable();
        let flag = Arg::new(setting.name)
            .long(setting.flag())
            .global(true)
            .action(ArgAction::Set)
            .help_heading("Settings")
            .value_name(if setting.kind == Kind::Switch { "BOOL" } else { "VALUE" })
            .help(format!("{} [env: {variable}] [default: {}]", setting.help, setting.default))
            .hide_short_help(true);
        // A switch given without a value is on.
        command.arg(match setting.kind {
            Kind::Switch => flag.num_args(0..=1).default_missing_value("true").require_equals(true),
            _ => flag,
        })
    })
}

fn read_flags(values: &mut Values, matches: &ArgMatches) {
    // Global flags may stand after a subcommand; clap copies them down, so the innermost match has them all.
    let mut innermost = matches;
    while let Some((_, inner)) = innermost.subcommand() {
        innermost = inner;
    }
    for setting in SETTINGS.iter().copied() {
        if let Ok(Some(value)) = innermost.try_get_one::<String>(setting.name) {
            values.set(setting, value.clone(), Origin::Flag(setting.flag()));
        }
    }
}

/// Every user of the machine can read the arguments of its processes.
fn warn_of_secrets(values: &Values) {
    for setting in SETTINGS.iter().copied().filter(|setting| setting.kind == Kind::Secret) {
        if let Some(Origin::Flag(flag)) = values.origin(setting.name) {
            let variable = setting.variable();
            eprintln!(
                "Warning: --{flag} can be read in the list of processes; use {variable} or the configuration file."
            );
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_well_formed() {
        super::command().debug_assert();
    }
}
