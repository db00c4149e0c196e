//! `/realtime/…`.

mod authorize;
mod config;
mod stream;
