//! The crate from outside: responses made by another program are judged, requests and metadata are checked by it.

mod corpus;
mod metadata;
mod properties;
mod requests;
mod setting;
