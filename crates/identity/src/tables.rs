//! The tables of this room.

use std::time::Duration;

use store::{Table, table};
use tenancy::logins::LONGEST_ACCESS;

/// A code that is replayed after its minute still tells of a theft.
const CODES_KEPT: Duration = Duration::from_secs(24 * 3600);

pub const TABLES: &[Table] = &[
    table!("user_credentials"("user_id") of app, person; sealed "sealed_import" by "user_id"),
    table!("mfa_factors"("user_id") of app, person; sealed "sealed_secret" by "user_id"),
    table!("passkeys"("id") of app, person),
    // Its sealed secret is of no use after some minutes, before anybody could seal it again.
    table!("login_sessions"("id") of app, person; expires "expires_at" + Duration::ZERO; stays "a login under way"),
    table!("browser_sessions"("id") of app, person; expires "expires_at" + Duration::ZERO;
        stays "people sign in to another installation themselves"),
    table!("authorization_codes"("digest") of app, person; expires "expires_at" + CODES_KEPT; stays "a login under way"),
    table!("handover_codes"("digest") of app, person; expires "expires_at" + Duration::ZERO; stays "a login under way"),
    table!("pending_federations"("id") of app; expires "expires_at" + Duration::ZERO; stays "a login under way"),
    table!("saml_keys"("id") of app; expires "retires_at" + Duration::ZERO; sealed "sealed_key" by "id"),
    table!("federated_subjects"("connection_id, subject") of app, person),
    table!("linked_identities"("id") of app, person),
    table!("refresh_tokens"("id") of app; expires "expires_at" + LONGEST_ACCESS),
    table!("used_challenges"("digest") of app; expires "expires_at" + Duration::ZERO; stays "a login under way"),
    // Sealed replies are of no use after a minute.
    table!("sent_forms"("digest"); expires "expires_at" + Duration::ZERO),
    table!("attempt_counters"("subject") of app; expires "expires_at" + Duration::ZERO;
        stays "each installation counts the guesses made at it"),
];
