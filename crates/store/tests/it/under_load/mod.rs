//! Proofs that load the whole machine; the test runner gives each of them all of it.

mod killed;
mod server_restart;
