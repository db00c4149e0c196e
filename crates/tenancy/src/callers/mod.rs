//! Callers: extractors whose type is the permission. A handler that takes `AppCaller<AppWrite>` cannot be reached
//! without it, and the documentation and the authorization test read it off the same type.

mod key;
mod operator;
pub mod privileges;

pub use key::AppCaller;
pub use operator::Operator;
pub use privileges::{AppRead, AppWrite, Privilege};
