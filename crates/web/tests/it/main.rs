//! The conventions as a client sees them: through a small application, in process and over a real socket.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cors;
mod documents;
mod errors;
mod limits;
mod proxies;
mod records;
mod requests;
mod server;
mod shop;
