//! `/realtime/…`.

mod authorize;
mod browser;
mod config;
mod stream;
