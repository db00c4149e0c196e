//! The real program: its commands, and its server from the outside.

mod archives;
mod backups;
mod billing;
mod commands;
mod configuration;
mod event_export;
mod flags;
mod full_disk;
mod imports;
mod killed;
mod moving;
mod program;
mod serve;
mod tour;
mod under_load;
