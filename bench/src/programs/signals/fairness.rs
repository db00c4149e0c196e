//! A quiet app beside one whose receiver hangs while very much is due to it.

use std::time::Duration;

use bench::{
    Result,
    client::Connection,
    report::{Aim, Bound, figure},
};
use kernel::Ticker;

use super::{
    deliveries::rename_often,
    receiver::{Manner, Receiver},
    server::Server,
};

const TRIES: usize = 20;

pub async fn run(engine: &str, server: &Server, due: usize, aims: &mut Vec<Aim>) -> Result<()> {
    let (hanging, quiet) = (Receiver::start(Manner::Hangs)?, Receiver::start(Manner::Acknowledges)?);
    let busy = server.workspace().await?;
    server.point(&server.app, hanging.address, "tenant.updated").await?;
    eprintln!("{engine}: {due} deliveries for a receiver that hangs");
    rename_often(server, &busy, "hanging", due).await?;

    let (app, workspace) = server.other_app().await?;
    server.point(&app, quiet.address, "tenant.updated").await?;
    let mut worst = Duration::ZERO;
    for number in 0..TRIES {
        let started = Ticker.now();
        let request = workspace.rename(&format!("quiet-{number}"));
        Connection::open(server.address, request).await?.ask().await?;
        quiet.wait_for(number + 1).await?;
        worst = worst.max(Ticker.since(started));
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    println!("\n{engine}: {due} due at a receiver that hangs; {} requests reached it meanwhile", hanging.count());
    println!("  first attempt of a quiet app, worst of {TRIES}: {} s", figure(worst.as_secs_f64()));
    let what = format!("{engine}: first attempt of a quiet app while {due} are due elsewhere, worst");
    aims.push(Aim::new(what, worst.as_secs_f64(), Bound::AtMost(1.0), " s"));
    Ok(())
}
