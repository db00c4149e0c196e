//! `/account/me…`: what people see and change about themselves, whatever their role. Whatever decides how they sign in asks for
//! a fresh login.

mod address;
mod factors;
mod names;
mod password;
pub mod profile;
pub mod sessions;

pub use names::rename;
use web::Routes;

use crate::Identity;

pub fn routes() -> Routes<Identity> {
    profile::routes()
        .merge(sessions::routes())
        .merge(factors::routes())
        .merge(address::routes())
        .merge(password::routes())
}

const TAG: &str = "Your own account";
const FRESH: &str = "The session has expired, or the login is older than 10 minutes (`REAUTHENTICATION_REQUIRED`)";
const BOUNDED: &str = "The login came through a workspace's identity provider, which has no say in this";
const ELSEWHERE: &str =
    "The login came through a workspace's identity provider, and the person belongs to workspaces outside of it";
