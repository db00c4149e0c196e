//! First factors: a password, or a link that was mailed. And the ways to get a password: by sign-up, by invitation, or
//! after having forgotten it.

pub mod credentials;
mod flows;
pub mod http;
mod new_password;

pub(crate) use flows::{host_of, mail_to, password};
pub use new_password::{NewPassword, Outcome, SignUpRequest};
