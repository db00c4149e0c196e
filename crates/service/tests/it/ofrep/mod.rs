//! `/ofrep/…`.

mod evaluate;
mod sdk;
