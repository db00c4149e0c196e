//! `/account/api-token` in its three surfaces and introspection, and `/admin/apps/{app_id}/secrets`.

mod introspection;
mod key;
mod me;
mod secrets;

use web::Routes;

use crate::Tenancy;

pub fn routes() -> Routes<Tenancy> {
    key::routes().merge(me::routes()).merge(introspection::routes()).merge(secrets::routes())
}

/// What may come of asking for a token.
const NOT_GRANTED: &str = "A privilege that the caller does not have, or that allowedTokenPrivileges does not include";
