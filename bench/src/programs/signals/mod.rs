//! What webhooks and the realtime channel cost: deliveries against bare requests of the same client, how soon they
//! arrive, whether a quiet app waits behind a busy one, and what streams weigh against bare ones.

mod backlog;
mod bare;
mod deliveries;
mod fairness;
mod peer;
mod receiver;
mod server;
mod soak;
mod streams;

use std::net::SocketAddr;

use bench::{
    Flags, Result, Threads,
    database::Database,
    report::{self, Aim},
};
use clap::Args;

/// Measures webhooks and streams.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    flags: Flags,
    /// Events in one measurement of deliveries.
    #[arg(long, default_value_t = 10_000)]
    events: usize,
    /// Deliveries that are due at a receiver that hangs.
    #[arg(long, default_value_t = 100_000)]
    due: usize,
    /// Streams that are open at once. Both sides need as many open files.
    #[arg(long, default_value_t = 10_000)]
    streams: usize,
    /// Instead of all this: so many seconds of streams that come and go beside 100 deliveries a second, and the memory.
    #[arg(long, value_name = "SECONDS")]
    soak: Option<u64>,
    /// Also the same events through graphile-worker; `npm ci` in bench/peers/graphile-worker comes first.
    #[arg(long)]
    peer: bool,
    /// Be one of the processes that are measured.
    #[arg(long, hide = true, value_enum)]
    act_as: Option<Part>,
    #[arg(long, hide = true)]
    database: Option<String>,
    #[arg(long, hide = true)]
    target: Option<SocketAddr>,
    #[arg(long, hide = true)]
    event: Option<String>,
}

/// What a child process of this program is.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Part {
    /// The real service.
    Server,
    /// The same, with facts that were committed before anything is sent.
    Backlog,
    /// The service's HTTP client, with nothing around it.
    BareClient,
    /// Streams of the HTTP library, with nothing around them.
    BareStreams,
}

impl Options {
    fn target(&self) -> Result<SocketAddr> {
        Ok(self.target.ok_or("no target")?)
    }
}

pub fn start(options: &Options) -> Result<()> {
    bench::block_on(Threads::for_part(options.act_as.is_some()), async {
        match options.act_as {
            Some(Part::Server) => server::serve(options.database.as_deref()).await,
            Some(Part::Backlog) => {
                let event = options.event.as_deref().unwrap_or(backlog::CAUSED);
                backlog::serve(options.database.as_deref(), options.target()?, options.events, event).await
            }
            Some(Part::BareClient) => bare::send(options.target()?, options.events).await,
            Some(Part::BareStreams) => bare::stream().await,
            None => run(options).await,
        }
    })
}

async fn run(options: &Options) -> Result<()> {
    let mut aims = Vec::new();
    measure("SQLite", options, None, None, &mut aims).await?;
    if let Some(server) = options.flags.postgres() {
        let database = Database::create(&server).await?;
        println!("\nPostgreSQL runs with fsync = {}", database.fsync().await?);
        let measured = measure("PostgreSQL", options, Some(&server), Some(&database.url()?), &mut aims).await;
        database.remove().await?;
        measured?;
    }
    report::print_aims(&aims);
    Ok(())
}

async fn measure(
    engine: &str,
    options: &Options,
    postgres: Option<&str>,
    database: Option<&str>,
    aims: &mut Vec<Aim>,
) -> Result<()> {
    let server = server::Server::start(database)?;
    if let Some(seconds) = options.soak {
        return soak::run(engine, &server, options.streams, seconds, aims).await;
    }
    let ours = deliveries::run(engine, postgres, &server, options, aims).await?;
    if let (true, None, Some(postgres)) = (options.peer, database, options.flags.postgres()) {
        peer::compare(&postgres, options.events, ours, aims).await?;
    }
    deliveries::latency(engine, &server, aims).await?;
    streams::run(engine, &server, options.streams, aims).await?;
    fairness::run(engine, &server, options.due, aims).await
}
