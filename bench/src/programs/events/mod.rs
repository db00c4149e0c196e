//! What the event log costs: taking events in, beside the in-memory route, bare inserts and a service written by hand for
//! Node.js and PostgreSQL; how soon they count; what others notice of it; and questions to very many of them.

mod bare;
mod intake;
mod load;
mod sample;
mod volume;

use bench::{
    Flags, Result, Threads,
    database::Database,
    report::{self, Aim},
    series::Series,
    server,
};
use clap::{Args, ValueEnum};

/// Measures the event log.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    flags: Flags,
    /// How many events there are when questions are asked, in ascending order.
    #[arg(long, default_value = "1000000,10000000", value_delimiter = ',')]
    events: Vec<usize>,
    /// Connections that are kept open, each with one request at a time.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Only this part.
    #[arg(long)]
    part: Option<Part>,
    /// Be the server that is measured.
    #[arg(long, hide = true)]
    serve: bool,
    #[arg(long, hide = true)]
    database: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Taking events in, over loopback HTTP.
    Intake,
    /// How soon they count, and point reads beside, over loopback HTTP.
    Load,
    /// Questions to very many events, in this process.
    Volume,
}

impl Options {
    fn has(&self, part: Part) -> bool {
        self.part.is_none_or(|only| only == part)
    }
}

pub fn start(options: &Options) -> Result<()> {
    if options.serve {
        return bench::block_on(Threads::All, Box::pin(server::serve(options.database.as_deref())));
    }
    let (mut series, mut aims) = (Vec::new(), Vec::new());
    bench::block_on(Threads::One, Box::pin(over_http(options, &mut series, &mut aims)))?;
    if options.has(Part::Volume) {
        bench::block_on(Threads::All, Box::pin(volumes(options, &mut aims)))?;
    }
    report::print_aims(&aims);
    match &options.flags.json {
        Some(path) => report::write_json(path, &[&series], &aims),
        None => Ok(()),
    }
}

async fn over_http(options: &Options, series: &mut Vec<Series>, aims: &mut Vec<Aim>) -> Result<()> {
    if options.has(Part::Intake) {
        *series = intake::measure(options, aims).await?;
    }
    if options.has(Part::Load) {
        load::measure("SQLite", None, options, aims).await?;
        if let Some(server) = options.flags.postgres() {
            let database = Database::create(&server).await?;
            let measured = load::measure("PostgreSQL", Some(&database), options, aims).await;
            database.remove().await?;
            measured?;
        }
    }
    Ok(())
}

async fn volumes(options: &Options, aims: &mut Vec<Aim>) -> Result<()> {
    Box::pin(volume::measure("SQLite", None, &options.events, aims)).await?;
    if let Some(server) = options.flags.postgres() {
        let database = Database::create(&server).await?;
        let measured = Box::pin(volume::measure("PostgreSQL", Some(&database), &options.events, aims)).await;
        database.remove().await?;
        measured?;
    }
    Ok(())
}
