//! The `tenantry` program: the server, and the commands around it.

mod api;
mod cli;
mod commands;
mod config;
mod startup;

use std::process::ExitCode;

use api::Api;
use cli::{Cli, Command, ConfigCommand, DevCommand, EventsCommand, ImportCommand, SinkCommand};
use config::Values;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let outcome = cli::parse().and_then(|(cli, values)| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.map_err(|error| format!("Cannot start: {error}"))?.block_on(run(cli, &values))
    });
    match outcome {
        Ok(code) => code,
        Err(message) => {
            eprintln!("tenantry: {message}");
            ExitCode::FAILURE
        }
    }
}

/// A text that was asked for; whoever stops reading has what they wanted.
fn said(text: &str) -> ExitCode {
    let _ = commands::say(text);
    ExitCode::SUCCESS
}

async fn run(cli: Cli, values: &Values) -> Result<ExitCode, String> {
    let config = cli::checked(values);
    match cli.command.unwrap_or(Command::Serve { after_move: false }) {
        // These work with a wrong configuration, too: they help to fix it.
        Command::Config(ConfigCommand::Show(output)) => {
            commands::config::show(values, config.as_ref().ok(), output);
            config.map(|_| ExitCode::SUCCESS)
        }
        Command::Completions { shell } => Ok(said(String::from_utf8_lossy(&cli::completions(shell)).trim_end())),
        Command::Events(EventsCommand::Sink(SinkCommand::Ddl { table })) => {
            Ok(said(eventlog::ddl(table.as_deref()).trim_end()))
        }
        Command::Import(ImportCommand::Template { format }) => Ok(said(commands::imports::template(format).trim_end())),
        Command::Openapi => Ok(said(&format!("{:#}", service::documents().openapi))),
        Command::Dev(DevCommand::Generate { check }) => commands::generate::run(check).map(|()| ExitCode::SUCCESS),
        Command::Serve { after_move } => {
            Box::pin(commands::serve::run(config?, after_move)).await.map(|()| ExitCode::SUCCESS)
        }
        Command::MigrateTo { target, dry_run, output } => {
            commands::migrate_to::run(&config?, &target, dry_run, output).await.map(|()| ExitCode::SUCCESS)
        }
        Command::Archive(command) => commands::archives::run(command).await.map(|()| ExitCode::SUCCESS),
        Command::Restore { file, output } => {
            commands::backup::restore(&config?, &file, output).await.map(|()| ExitCode::SUCCESS)
        }
        command => {
            let config = config?;
            let api = Api::open(&config, cli.url.as_deref()).await?;
            let outcome = operate(&api, command).await;
            api.close().await;
            outcome
        }
    }
}

/// The commands that speak to the operator API.
async fn operate(api: &Api, command: Command) -> Result<ExitCode, String> {
    match command {
        Command::App(command) => commands::apps::run(api, command).await?,
        Command::Key(command) => commands::keys::run(api, command).await?,
        Command::Webhook(command) => commands::webhooks::run(api, command).await?,
        Command::Billing(command) => commands::billing::run(api, command).await?,
        Command::Flag(command) => commands::flags::run(api, command).await?,
        Command::Keys(command) => commands::signing_keys::run(api, command).await?,
        Command::OperatorKey(command) => commands::operator_key::run(api, command).await?,
        Command::Secret(command) => commands::secrets::run(api, command).await?,
        Command::Backup { file, with_files, output } => {
            commands::backup::backup(api, &file, with_files, output).await?;
        }
        Command::Events(command) => commands::events::run(api, command).await?,
        Command::Audit(command) => {
            let well = commands::events::audit(api, command).await?;
            return Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Command::Import(command) => {
            let imported = commands::imports::run(api, command).await?;
            return Ok(if imported { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Command::Doctor(output) => {
            let well = commands::doctor::run(api, output).await?;
            return Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Command::Serve { .. }
        | Command::MigrateTo { .. }
        | Command::Config(_)
        | Command::Openapi
        | Command::Completions { .. }
        | Command::Restore { .. }
        | Command::Archive(_)
        | Command::Dev(_) => {}
    }
    Ok(ExitCode::SUCCESS)
}
