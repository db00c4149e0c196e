//! What each command takes.

use std::path::PathBuf;

use clap::{Args, Subcommand};

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
pub enum ImportCommand {
    /// Import workspaces and users: all of them, or none when anything is wrong
    #[command(
        after_help = "The file is JSON, or CSV when its name ends with .csv; `tenantry import template` prints an \
                            example. No mail is sent."
    )]
    Tenants {
        /// The file to import
        file: PathBuf,
        /// Only check the file
        #[arg(long)]
        dry_run: bool,
        /// Wait until everybody is imported
        #[arg(long, conflicts_with = "dry_run")]
        wait: bool,
        /// Send no webhook events for what is created
        #[arg(long)]
        no_webhooks: bool,
        #[command(flatten)]
        of: OfApp,
        #[command(flatten)]
        output: Output,
    },
    /// Print an example of a file
    Template {
        /// What the file is written in
        #[arg(long, value_enum, default_value_t = TemplateFormat::Json)]
        format: TemplateFormat,
    },
}

#[derive(clap::ValueEnum, Clone, Copy)]
pub enum TemplateFormat {
    Json,
    Csv,
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
        /// The file to write, or with parquet the folder; must not exist unless an export is resumed
        file: PathBuf,
        /// jsonl, csv or parquet
        #[arg(long, default_value = "jsonl", value_parser = ["jsonl", "csv", "parquet"])]
        format: String,
        /// From this time on, such as 2026-01-31T09:30:00Z
        #[arg(long)]
        from: Option<String>,
        /// Up to this time
        #[arg(long)]
        to: Option<String>,
        #[command(flatten)]
        output: Output,
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
