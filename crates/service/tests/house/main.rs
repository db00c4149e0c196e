//! How the house is built: rules about the sources themselves, which neither Cargo nor a type can see.

mod features;
mod names;
mod sources;
mod steps;
mod tables;
