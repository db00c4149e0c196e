//! Servers that are killed while they talk to others. Most of their time is waiting for what the dead held to run out, so they share
//! the machine with other tests.

mod events;
mod imports;
mod payments;
mod sinks;
mod webhooks;
