//! Passwords: digests that are slow to guess, the verifier for digests from elsewhere, and what makes a password too weak.
//!
//! Digesting runs on threads of its own, so that a storm of logins cannot slow down other work; beyond a short queue it
//! is refused. An account without a password costs as much to check as one with a wrong password.

mod argon;
mod imported;
mod phc;
mod pool;
mod quality;

pub use imported::{DigestAlgorithm, Imported, Pepper, PepperPosition};
pub use pool::Passwords;
pub use quality::{MAX_LENGTH, MIN_LENGTH, check_quality};

/// What is known of an account's password.
#[derive(Clone, Debug)]
pub enum StoredPassword {
    /// A PHC string made here.
    Own(String),
    /// Brought along from another system, and replaced at its first use.
    Imported(Imported),
    /// No such account, or one without a password.
    Nothing,
}

/// Whether a password was right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PasswordVerdict {
    Wrong,
    /// `renewed` is the digest to store from now on, when the stored one is not what is made today.
    Right {
        renewed: Option<String>,
    },
}
