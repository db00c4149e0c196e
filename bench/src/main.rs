//! `bench NAME`: measures a part of the service. Prints, and never fails because something was slow.

mod programs;

use std::process::ExitCode;

use clap::Parser as _;

// As in the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures a part of Tenantry; see docs/benchmarks.md.
#[derive(clap::Parser)]
struct Cli {
    #[command(subcommand)]
    program: programs::Program,
}

fn main() -> ExitCode {
    match Cli::parse().program.start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}
