//! The command line. Flags for settings are made from the list of settings.

mod commands;

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

pub use commands::{
    AppCommand, ArchiveCommand, ArchiveKeyFiles, AuditCommand, BillingCommand, ConfigCommand, DevCommand,
    EventsCommand, FlagCommand, ImportCommand, KeyCommand, KeysCommand, OfApp, OperatorKeyCommand, Output,
    SecretCommand, SinkCommand, TemplateFormat, WebhookCommand,
};

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
    /// Bring workspaces and people from another system
    #[command(subcommand)]
    Import(ImportCommand),
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
        /// Put the files of workspaces into it, too
        #[arg(long)]
        with_files: bool,
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
