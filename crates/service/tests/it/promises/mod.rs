//! What spans URLs: isolation, races, deletion, the log, several nodes, what holds for every route.

mod alerts;
mod api_tokens;
mod authority;
mod authorization;
mod authors;
mod backup;
mod callers;
mod conventions;
mod cors;
mod deletion;
mod documented;
mod endings;
mod indexes;
mod installation;
mod instants;
mod log;
mod mails;
mod messages;
mod migrations;
mod moving;
mod nodes;
mod owners;
mod races;
mod roles;
mod tables;
mod takeover;
