//! Those who ask for more than the same again: exchangers, who use their login sessions up, and refreshers, who show what they
//! got last.

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

/// How often a login session can be exchanged for tokens.
const EXCHANGES: usize = 20;

/// Somebody's login sessions, and how often they were exchanged in all.
#[derive(Debug)]
pub struct Stock {
    sessions: Vec<Value>,
    exchanged: usize,
}

impl Stock {
    pub fn new(sessions: &Value) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { sessions: sessions.as_array().cloned().unwrap_or_default(), exchanged: 0 }))
    }

    fn next(&mut self) -> Result<Value> {
        let session = self.sessions.get(self.exchanged / EXCHANGES).ok_or("the login sessions are used up")?;
        self.exchanged += 1;
        Ok(session.clone())
    }
}

/// The next exchange of somebody's login sessions.
pub fn exchange(app: &str, stock: &Mutex<Stock>) -> Result<Request> {
    let session = stock.lock().unwrap_or_else(PoisonError::into_inner).next()?;
    let body = json!({ "session": session, "appId": app, "mode": "sdk" });
    Ok(Request::post("/auth/token/direct", "", &body.to_string()).expecting(200))
}

/// Exchanges login sessions for tokens.
pub struct Exchanger {
    connection: Connection,
    app: String,
    stock: Arc<Mutex<Stock>>,
}

impl Exchanger {
    pub async fn open(address: SocketAddr, app: &str, stock: Arc<Mutex<Stock>>) -> Result<Self> {
        let connection = Connection::open(address, exchange(app, &stock)?).await?;
        Ok(Self { connection, app: app.to_owned(), stock })
    }
}

impl Caller for Exchanger {
    async fn call(&mut self) -> Result<()> {
        self.connection.ask().await?;
        self.connection.ask_next(exchange(&self.app, &self.stock)?);
        Ok(())
    }
}

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
