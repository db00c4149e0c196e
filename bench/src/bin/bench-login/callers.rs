//! Those who ask for more than the same again: refreshers, who show what they got last, and readers, who take their
//! time.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bench::{
    Result,
    client::{Connection, Request},
    load::{Caller, Turn},
    series::Round,
};
use kernel::Ticker;
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// The refresh token that somebody holds at the moment.
pub type Held = Arc<Mutex<String>>;

/// Rotates one refresh token after the other.
pub struct Refresher {
    connection: Connection,
    app: String,
    held: Held,
}

impl Refresher {
    pub async fn open(address: SocketAddr, app: &str, held: Held) -> Result<Self> {
        let app = app.to_owned();
        let connection = Connection::open(address, refresh(&app, &held)).await?;
        Ok(Self { connection, app, held })
    }
}

fn refresh(app: &str, held: &Held) -> Request {
    let held = held.lock().unwrap_or_else(PoisonError::into_inner);
    let body = json!({ "client_id": app, "grant_type": "refresh_token", "refresh_token": *held });
    Request::post("/auth/token", "", &body.to_string()).expecting(200)
}

impl Caller for Refresher {
    async fn call(&mut self) -> Result<()> {
        self.connection.ask_next(refresh(&self.app, &self.held));
        let answer: Value = serde_json::from_slice(self.connection.ask().await?)?;
        let token = answer["refresh_token"].as_str().ok_or("no refresh token")?;
        token.clone_into(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }
}

/// Between two reads of one reader: far from filling the machine.
const PAUSE: Duration = Duration::from_millis(10);

/// How long reads take that come now and then from several connections.
pub async fn read_at_leisure(address: SocketAddr, request: &Request, readers: usize, turn: Turn) -> Result<Round> {
    let mut tasks = JoinSet::new();
    for _ in 0..readers {
        let mut connection = Connection::open(address, request.clone()).await?;
        tasks.spawn(async move {
            let (started, mut latencies) = (Ticker.now(), Vec::new());
            while Ticker.since(started) < turn.warm_up + turn.measured {
                tokio::time::sleep(PAUSE).await;
                let asked = Ticker.now();
                connection.ask().await?;
                if Ticker.since(started) > turn.warm_up {
                    latencies.push(Ticker.since(asked));
                }
            }
            Result::<_>::Ok(latencies)
        });
    }
    let mut latencies = Vec::new();
    while let Some(read) = tasks.join_next().await {
        latencies.extend(read??);
    }
    Ok(Round::new(latencies.len() as u64, turn.measured, Duration::ZERO, latencies))
}
