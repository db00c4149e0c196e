//! First factors: a password, or a link that was mailed. And the ways to get a password: by sign-up, by invitation, or
//! after having forgotten it.

mod begin;
mod change_password;
pub mod credentials;
pub(crate) mod ending;
pub(crate) mod first_proof;
mod flows;
pub mod http;
pub(crate) mod new_address;
mod new_password;
pub(crate) mod own;
mod store;

pub use begin::begin;
pub(crate) use begin::{FirstFactor, step_up, try_begin};
pub(crate) use change_password::change_password;
pub use ending::end_membership;
pub(crate) use ending::forget_all_proofs;
pub(crate) use flows::{
    Landing, check_magic_links, check_sign_up, follow_magic_link, forgotten, host_of, magic_link, mail_first_password,
    mail_to, password, payload, sign_up,
};
pub use new_password::{NewPassword, PasswordOutcome, SignUpRequest};
pub(crate) use new_password::{PURPOSES as PASSWORD_LINKS, peek};
