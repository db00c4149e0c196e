//! What the benchmarks share: a load that runs for a while, figures per round, and tables with the aims next to them.
//!
//! Nothing here fails because something was slow: the programs print, people judge. Only ratios within one run mean
//! much, so whatever is compared is measured in turns.

pub mod child;
pub mod client;
pub mod database;
pub mod leisure;
pub mod load;
pub mod process;
pub mod report;
pub mod series;
pub mod server;
pub mod subject;

use std::{path::PathBuf, time::Duration};

/// Any failure ends the benchmark with a message.
pub type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

/// How many threads a part of a benchmark runs on.
#[derive(Clone, Copy)]
pub enum Threads {
    /// Enough for the load, and leaves the rest of the machine to what is measured.
    One,
    All,
}

impl Threads {
    /// A child process is measured; its parent measures.
    pub fn for_part(is_measured: bool) -> Self {
        if is_measured { Self::All } else { Self::One }
    }
}

pub fn block_on(threads: Threads, work: impl Future<Output = Result<()>>) -> Result<()> {
    let mut runtime = match threads {
        Threads::One => tokio::runtime::Builder::new_current_thread(),
        Threads::All => tokio::runtime::Builder::new_multi_thread(),
    };
    runtime.enable_all().build()?.block_on(work)
}

/// The flags of all programs.
#[derive(clap::Args, Clone, Debug)]
pub struct Flags {
    /// How often the candidates take turns.
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// How long each turn is measured.
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// A fast look: two short rounds. Too noisy to quote.
    #[arg(long)]
    pub quick: bool,
    /// A PostgreSQL server in which a database is made for this run and dropped afterwards; $TENANTRY_TEST_POSTGRES
    /// unless given. Without one, only SQLite is measured.
    #[arg(long, value_name = "URL")]
    pub postgres: Option<String>,
    /// Also write every round's figures here.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

impl Flags {
    pub fn rounds(&self) -> usize {
        if self.quick { 2 } else { self.rounds.max(1) }
    }

    pub fn postgres(&self) -> Option<String> {
        self.postgres.clone().or_else(|| std::env::var("TENANTRY_TEST_POSTGRES").ok()).filter(|url| !url.is_empty())
    }

    pub fn turn(&self) -> load::Turn {
        let seconds = if self.quick { 0.6 } else { self.seconds.clamp(0.1, 3600.0) };
        let measured = Duration::from_secs_f64(seconds);
        load::Turn { warm_up: (measured / 4).min(Duration::from_millis(500)), measured }
    }
}
