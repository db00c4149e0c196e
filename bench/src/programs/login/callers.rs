//! Those who ask for more than the same again: refreshers, who show what they got last.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use bench::{
    Result,
    client::{Connection, Request},
    load::Caller,
};
use serde_json::{Value, json};

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
