//! `tenantry migrate-to postgres://…`: from the embedded store to PostgreSQL.

use std::{
    io::{IsTerminal as _, Write as _},
    sync::Arc,
    time::Duration,
};

use kernel::{Error, Tick, Ticker};
use serde_json::json;
use store::{DatabaseUrl, MoveEstimate, MoveProgress, Moved};

use super::{print, say};
use crate::{cli::Output, config::Config, startup};

pub async fn run(config: &Config, target: &str, dry_run: bool, output: Output) -> Result<(), String> {
    let target = target_url(target)?;
    if dry_run {
        return estimate(config, target, output).await;
    }
    let (begun, place) = (Ticker.now(), target.to_string());
    let is_terminal = std::io::stderr().is_terminal();
    let watcher = Arc::new(move |progress: &MoveProgress| tell(progress, begun, output, is_terminal));
    let moved = startup::migrate_to(config, target, watcher).await.map_err(|error| failed(&error))?;
    let seconds = Ticker.since(begun).as_secs_f64();
    let Moved { tables, rows } = moved;
    if output.json {
        let _ = say(json!({ "moved": true, "to": place, "tables": tables, "rows": rows, "seconds": seconds }));
        return Ok(());
    }
    let _ = say(format_args!(
        "Moved {rows} rows of {tables} tables to {place} in {}. Each table was compared, and a service on the new store \
         answers.\n\n\
         Set TENANTRY_DATABASE_URL (database_url) to the address that you gave, and start tenantry serve. Keep the data \
         folder {}: it holds the keys and the files of workspaces.\n\
         {} is as it was, and marked. To return to it, without what is written from now on: tenantry serve --after-move.",
        readable(seconds),
        config.data_dir.display(),
        config.database
    ));
    Ok(())
}

/// Every user of the machine can read the arguments of its processes, so that a password is better given otherwise.
fn target_url(given: &str) -> Result<DatabaseUrl, String> {
    let text = match given {
        "-" => {
            std::io::read_to_string(std::io::stdin()).map_err(|error| format!("Cannot read the address: {error}"))?
        }
        given => {
            if given.split_once("://").is_some_and(|(_, rest)| rest.contains('@') && rest.contains(':')) {
                eprintln!(
                    "Warning: a password in an argument can be read in the list of processes; give - and write the address to standard input."
                );
            }
            given.to_owned()
        }
    };
    text.trim().parse().map_err(|problem| format!("The address of the new store {problem}."))
}

async fn estimate(config: &Config, target: DatabaseUrl, output: Output) -> Result<(), String> {
    let place = target.to_string();
    let estimate = startup::estimate_move(config, target).await.map_err(|error| startup::explain(&error))?;
    let MoveEstimate { tables, rows, seconds } = estimate;
    let answer = json!({ "moved": false, "to": place, "tables": tables, "rows": rows, "seconds": seconds });
    print(output, &answer, |_| {
        format!(
            "Nothing was moved. {rows} rows of {tables} tables can be moved to {place}; it will take about {}, during which \
             the server is stopped.",
            readable(seconds)
        )
    });
    Ok(())
}

/// A line for each table, and on a terminal one that changes while a large table is copied.
fn tell(progress: &MoveProgress, begun: Tick, output: Output, is_terminal: bool) {
    let MoveProgress { table, rows, of, all_rows, of_all, compared } = progress;
    let seconds = Ticker.since(begun).as_secs_f64();
    let rate = *all_rows as f64 / seconds.max(0.001);
    let left = of_all.saturating_sub(*all_rows) as f64 / rate.max(1.0);
    if output.json {
        let line = json!({
            "table": table, "rows": rows, "of": of, "allRows": all_rows, "ofAll": of_all, "compared": compared,
            "rowsPerSecond": rate.round(), "secondsLeft": left.round(),
        });
        let _ = say(line);
        return;
    }
    let line = format!("{table:<32} {rows:>12} rows  {rate:>10.0} rows/s  {} left", readable(left));
    let mut out = std::io::stderr().lock();
    let _ = match (compared, is_terminal) {
        (true, true) => writeln!(out, "\r\x1b[K{line}"),
        (true, false) => writeln!(out, "{line}"),
        (false, true) => write!(out, "\r\x1b[K{line}").and_then(|()| out.flush()),
        (false, false) => Ok(()),
    };
}

fn readable(seconds: f64) -> String {
    let duration = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    match duration.as_secs() {
        0 => "1 s".to_owned(),
        seconds @ 1..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

fn failed(error: &Error) -> String {
    format!(
        "{}\nThe embedded store is as it was. Run the command again to start over: what this run may have left in the new \
         database is removed then.",
        startup::explain(error)
    )
}
