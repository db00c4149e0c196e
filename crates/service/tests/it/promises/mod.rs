//! What spans URLs: isolation, races, deletion, the log, several nodes, what holds for every route.

mod alerts;
mod api_tokens;
pub(crate) mod authorization;
mod authors;
mod backup;
mod conventions;
mod cors;
mod deletion;
mod documented;
mod installation;
mod log;
mod mails;
pub(crate) mod messages;
mod nodes;
mod owners;
mod races;
mod roles;
mod tables;
mod takeover;
