//! What moving costs: very many people imported while others work, beside the bare insertion of the same rows; judging a batch
//! beside parsing it; and an archive of all of them.

mod batch;
mod import;
mod raw;

use bench::{Flags, Result, Threads, database::Database, report, server};
use clap::Args;

/// Measures imports and archives.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    flags: Flags,
    /// Workspaces that are imported.
    #[arg(long, default_value_t = 2_000)]
    workspaces: usize,
    /// People in each, its owner included.
    #[arg(long, default_value_t = 50)]
    people: usize,
    /// Only judge the batch.
    #[arg(long)]
    judge: bool,
    /// Be the server that is measured.
    #[arg(long, hide = true)]
    serve: bool,
    #[arg(long, hide = true)]
    database: Option<String>,
}

pub fn start(options: &Options) -> Result<()> {
    bench::block_on(Threads::for_part(options.serve), async {
        match options.serve {
            true => Box::pin(server::serve(options.database.as_deref())).await,
            false => Box::pin(run(options)).await,
        }
    })
}

async fn run(options: &Options) -> Result<()> {
    let mut aims = Vec::new();
    import::measure("SQLite", options, None, &mut aims).await?;
    if let Some(server) = options.flags.postgres() {
        let database = Database::create(&server).await?;
        println!("\nPostgreSQL runs with fsync = {}", database.fsync().await?);
        let measured = import::measure("PostgreSQL", options, Some(&database), &mut aims).await;
        database.remove().await?;
        measured?;
    }
    report::print_aims(&aims);
    match &options.flags.json {
        Some(path) => report::write_json(path, &[], &aims),
        None => Ok(()),
    }
}
