//! What federation costs: a SAML answer beside the one verification and the one write that it cannot do without, the worst
//! messages that a stranger can send, and a directory that provisions very many people.

mod answers;
mod hostile;
mod provider;
mod server;
mod subject;
mod sync;

use bench::{
    Flags, Result, Threads,
    database::Database,
    report::{self, Aim},
    series::Series,
};
use clap::{Args, ValueEnum};
use server::Server;

/// Measures sign-in through identity providers, and provisioning.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    flags: Flags,
    /// Connections that are kept open, each with one request at a time.
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// Logins that are answered in a round.
    #[arg(long, default_value_t = 1000)]
    answers: usize,
    /// People that the directory provisions.
    #[arg(long, default_value_t = 10_000)]
    users: usize,
    /// Only this part.
    #[arg(long)]
    only: Option<FederationPart>,
    /// Be the server that is measured.
    #[arg(long, hide = true)]
    serve: bool,
    #[arg(long, hide = true)]
    database: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FederationPart {
    Answers,
    Messages,
    Sync,
}

impl Options {
    fn answers(&self) -> usize {
        if self.flags.quick { 200 } else { self.answers.max(1) }
    }

    fn users(&self) -> usize {
        if self.flags.quick { 1_000 } else { self.users.max(1) }
    }

    fn wants(&self, part: FederationPart) -> bool {
        self.only.is_none_or(|only| only == part)
    }
}

pub fn start(options: &Options) -> Result<()> {
    bench::block_on(Threads::for_part(options.serve), async {
        match options.serve {
            true => Box::pin(subject::serve(options.database.as_deref())).await,
            false => Box::pin(run(options)).await,
        }
    })
}

async fn run(options: &Options) -> Result<()> {
    let mut aims = Vec::new();
    let mut all = measure("SQLite", options, None, &mut aims).await?;
    if options.wants(FederationPart::Messages) {
        // Judging does not depend on the engine. On a server of its own, which has nothing left to do for a directory.
        all.extend(hostile::measure(options, &Server::start(None).await?, &mut aims).await?);
    }
    if let Some(server) = options.flags.postgres() {
        let database = Database::create(&server).await?;
        println!("\nPostgreSQL runs with fsync = {}", database.fsync().await?);
        let measured = measure("PostgreSQL", options, Some(database.url()?), &mut aims).await;
        database.remove().await?;
        all.extend(measured?);
    }
    report::print_aims(&aims);
    match &options.flags.json {
        Some(path) => report::write_json(path, &[&all], &aims),
        None => Ok(()),
    }
}

async fn measure(
    engine: &str,
    options: &Options,
    database: Option<String>,
    aims: &mut Vec<Aim>,
) -> Result<Vec<Series>> {
    let server = Server::start(database.as_deref()).await?;
    let mut all = Vec::new();
    if options.wants(FederationPart::Answers) {
        all.extend(answers::measure(engine, options, &server, aims).await?);
    }
    if options.wants(FederationPart::Sync) {
        all.extend(sync::measure(engine, options, &server, aims).await?);
    }
    Ok(all)
}
