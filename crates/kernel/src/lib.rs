//! What every other room speaks in: ids, time, randomness, money, validation and errors.
//!
//! Nothing here does I/O or knows HTTP or SQL. The clock and the source of randomness are values that are passed
//! in; their ambient cousins are forbidden elsewhere by `clippy.toml`.

mod author;
mod calendar;
mod clock;
mod country;
mod email;
mod entropy;
pub mod error;
mod id;
mod locale;
mod money;
mod page;
mod secret;
pub mod text;
pub mod validate;

#[cfg(test)]
mod properties;

pub use author::{Actor, ActorKind, Author, Authored};
pub use clock::{Clock, Tick, Ticker, Timestamp};
pub use country::Country;
pub use email::{EMAIL_PATTERN, email_key, is_email};
pub use entropy::Entropy;
pub use error::{Code, Error, Kind, Result};
pub use id::{AppId, AppNumber, Id, IdKind, IdSource, InvalidId, KeyId, MemberId, TenantId, UserId};
pub use locale::Locale;
pub use money::{Currency, Money};
pub use page::Page;
pub use secret::Secret;
pub use text::{
    Content, Email, HostName, Key, Label, Name, OptionalName, Origin, Password, Phone, RedirectUri, Text, WebUrl, Words,
};
pub use validate::{FieldProblem, Problems};

/// Used by [`id_kinds!`] and [`text_types!`] so that callers need no dependency of their own.
#[doc(hidden)]
pub use schemars;
