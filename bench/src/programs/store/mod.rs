//! Drives `Db` without a server around it: grouped against single commits on SQLite, the ingest batcher against rows one
//! by one on PostgreSQL, point reads on both.

mod alone;
mod events;

use std::time::Duration;

use bench::{
    Flags, Result, Threads,
    database::Database,
    load, process,
    report::{self, Aim, Bound, times},
    series::{Round, Series},
};
use clap::Args;
use events::{Place, Way};
use kernel::{Clock, Entropy, Secret};
use store::{DatabaseUrl, Db, Limits};
use tempfile::TempDir;

/// Measures the storage layer directly.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    flags: Flags,
    /// How many write at once.
    #[arg(long, default_value_t = 256)]
    writers: usize,
    /// How many read at once.
    #[arg(long, default_value_t = 64)]
    readers: usize,
}

/// Rows that point reads choose from.
const ROWS: usize = 50_000;

pub fn start(options: &Options) -> Result<()> {
    bench::block_on(Threads::All, run(options))
}

async fn run(options: &Options) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("tenantry-bench-").tempdir()?;
    let database = match options.flags.postgres() {
        Some(server) => Some(Database::create(&server).await?),
        None => None,
    };
    let outcome = measure(options, &folder, database.as_ref()).await;
    if let Some(database) = database {
        database.remove().await?;
    }
    outcome
}

async fn measure(options: &Options, folder: &TempDir, database: Option<&Database>) -> Result<()> {
    let mut aims = Vec::new();
    let mut sqlite = sqlite_candidates(options, folder).await?;
    let mut postgres = match database {
        Some(database) => postgres_candidates(options, database).await?,
        None => Vec::new(),
    };
    let rounds = options.flags.rounds();
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        for candidate in sqlite.iter_mut().chain(&mut postgres) {
            candidate.take_turn(options.flags.turn()).await?;
        }
    }
    let mut printed = vec![print("SQLite", "writes per commit", &sqlite)];
    judge_sqlite(&printed[0], &mut aims);
    if let Some(database) = database {
        println!("\nPostgreSQL runs with fsync = {}", database.fsync().await?);
        printed.push(print("PostgreSQL", "rows per statement", &postgres));
        judge_postgres(&printed[1], &mut aims);
    }
    for candidate in sqlite.iter().chain(&postgres) {
        candidate.place.db.close().await;
    }

    let keys = open(DatabaseUrl::Sqlite(folder.path().join("keys/keys.db")), Limits::default()).await?;
    keys.migrate(service::MIGRATIONS).await?;
    alone::measure(&keys, rounds, Duration::from_millis(if options.flags.quick { 100 } else { 400 })).await?;
    keys.close().await;

    report::print_aims(&aims);
    if let Some(path) = &options.flags.json {
        let all: Vec<&[Series]> = printed.iter().map(Vec::as_slice).collect();
        report::write_json(path, &all, &aims)?;
    }
    Ok(())
}

async fn open(url: DatabaseUrl, limits: Limits) -> Result<Db> {
    Ok(Db::open(store::Options { url, clock: Clock::system(), entropy: Entropy::os(), limits }).await?)
}

/// One way to work with one database.
struct Candidate {
    series: Series,
    way: Way,
    place: Place,
}

impl Candidate {
    fn new(name: &str, way: Way, place: &Place, callers: usize) -> Self {
        Self { series: Series::new(name, callers), way, place: place.clone() }
    }

    async fn take_turn(&mut self, turn: load::Turn) -> Result<()> {
        let callers = self.place.callers(self.way, self.series.callers);
        let before = self.place.db.counters();
        let mut driven = load::drive(callers, turn, || process::cpu_time(std::process::id())).await?;
        let after = self.place.db.counters();
        let shared = match self.way {
            Way::GetOne | Way::Read | Way::Mixed => None,
            // On PostgreSQL a commit per closure is the rule; there the statements tell.
            _ if self.place.db.is_single_node() => Some(after.commits - before.commits),
            _ => Some(after.statements - before.statements),
        };
        driven.round.shared_by = shared.map(|shared| driven.answered as f64 / shared.max(1) as f64);
        self.series.rounds.push(driven.round);
        Ok(())
    }
}

/// Whatever is compared has a database of its own, or the same tables.
async fn sqlite_candidates(options: &Options, folder: &TempDir) -> Result<Vec<Candidate>> {
    let open_in = async |name: &str, batch| {
        let url = DatabaseUrl::Sqlite(folder.path().join(name).join("bench.db"));
        Place::fill(open(url, Limits { batch, ..Limits::default() }).await?, ROWS).await
    };
    let (single, grouped) = (open_in("single", 1).await?, open_in("grouped", Limits::default().batch).await?);
    let (writers, readers) = (options.writers, options.readers);
    Ok(vec![
        Candidate::new("write, a commit each", Way::Write, &single, writers),
        Candidate::new("write, grouped", Way::Write, &grouped, writers),
        Candidate::new("ingest batcher", Way::Ingest, &grouped, writers),
        Candidate::new("get_one", Way::GetOne, &grouped, readers),
        Candidate::new("read closure", Way::Read, &grouped, readers),
        Candidate::new("4 get_one : 1 write", Way::Mixed, &grouped, readers),
    ])
}

async fn postgres_candidates(options: &Options, database: &Database) -> Result<Vec<Candidate>> {
    let url = DatabaseUrl::Postgres(Secret::new(database.url()?));
    let place = Place::fill(open(url, Limits::default()).await?, ROWS).await?;
    let (writers, readers) = (options.writers, options.readers);
    Ok(vec![
        Candidate::new("write, a row each", Way::Write, &place, writers),
        Candidate::new("exec_one, a row each", Way::ExecOne, &place, writers),
        Candidate::new("ingest batcher", Way::Ingest, &place, writers),
        Candidate::new("get_one", Way::GetOne, &place, readers),
        Candidate::new("read closure", Way::Read, &place, readers),
        Candidate::new("4 get_one : 1 write", Way::Mixed, &place, readers),
    ])
}

fn rate(round: &Round) -> f64 {
    round.per_second
}

/// Writes are compared with the first candidate; reads have no baseline here.
fn print(engine: &str, shared: &str, candidates: &[Candidate]) -> Vec<Series> {
    let series: Vec<Series> = candidates.iter().map(|candidate| candidate.series.clone()).collect();
    let compared: Vec<Vec<String>> = series
        .iter()
        .map(|one| vec![one.shared_by().map_or_else(|| "–".into(), |_| times(one.ratio(&series[0], rate)))])
        .collect();
    let table = report::table(&series, Some(shared), &compared, "rate over the first");
    println!("\n{engine}, in process\n\n{table}");
    series
}

fn judge_sqlite(series: &[Series], aims: &mut Vec<Aim>) {
    let (single, grouped) = (&series[0], &series[1]);
    let shared = grouped.shared_by().map_or(0.0, |spread| spread.min);
    aims.push(Aim::new("SQLite: writes per commit, least of all rounds", shared, Bound::AtLeast(16.0), ""));
    let ratio = grouped.ratio(single, rate).median;
    aims.push(Aim::new("SQLite: grouped writes over a commit each", ratio, Bound::AtLeast(3.0), "x"));
}

fn judge_postgres(series: &[Series], aims: &mut Vec<Aim>) {
    let (single, batched) = (&series[0], &series[2]);
    let shared = batched.shared_by().map_or(0.0, |spread| spread.min);
    aims.push(Aim::new(
        "PostgreSQL: ingested rows per statement, least of all rounds",
        shared,
        Bound::AtLeast(16.0),
        "",
    ));
    let ratio = batched.ratio(single, rate).median;
    aims.push(Aim::new("PostgreSQL: ingest batcher over a closure each", ratio, Bound::AtLeast(2.5), "x"));
}
