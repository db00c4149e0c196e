-- How people prove who they are, and what was issued to them. Rows carry no reference to `apps` or `users`: those are
-- deleted in one small step and the rest is purged afterwards.
CREATE TABLE user_credentials (
    user_id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    -- A PHC string made here, or what another system made, sealed because of its pepper.
    digest TEXT,
    sealed_import TEXT,
    updated_at {int} NOT NULL
) {strict};
CREATE INDEX user_credentials_by_app ON user_credentials (app_id);

-- A login and everything refreshed from it; its id is the `sid` of the tokens.
CREATE TABLE refresh_families (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    user_id {key} NOT NULL,
    -- Whether more than one factor was shown.
    mfa {bool} NOT NULL,
    authenticated_at {int} NOT NULL,
    revoked_at {int},
    -- When the last token that it can have issued is over.
    expires_at {int} NOT NULL,
    created_at {int} NOT NULL
) {strict};
CREATE INDEX refresh_families_by_user ON refresh_families (user_id);
CREATE INDEX refresh_families_by_app ON refresh_families (app_id);
CREATE INDEX refresh_families_by_expiry ON refresh_families (expires_at);

CREATE TABLE refresh_tokens (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    family_id {key} NOT NULL,
    member_id {key} NOT NULL,
    oidc_scope TEXT NOT NULL,
    -- The privileges that were asked for; NULL means all of the role's.
    privileges TEXT,
    rotated_at {int},
    expires_at {int} NOT NULL,
    created_at {int} NOT NULL
) {strict};
CREATE INDEX refresh_tokens_by_family ON refresh_tokens (family_id);
CREATE INDEX refresh_tokens_by_app ON refresh_tokens (app_id);
CREATE INDEX refresh_tokens_by_expiry ON refresh_tokens (expires_at);

CREATE TABLE authorization_codes (
    -- SHA-256 of the code.
    digest {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    user_id {key} NOT NULL,
    member_id {key} NOT NULL,
    -- What it was exchanged for.
    family_id {key},
    redirect_uri TEXT NOT NULL,
    oidc_scope TEXT NOT NULL,
    privileges TEXT,
    nonce TEXT,
    code_challenge TEXT,
    mfa {bool} NOT NULL,
    authenticated_at {int} NOT NULL,
    used_at {int},
    expires_at {int} NOT NULL,
    created_at {int} NOT NULL
) {strict};
CREATE INDEX authorization_codes_by_app ON authorization_codes (app_id);
CREATE INDEX authorization_codes_by_expiry ON authorization_codes (expires_at);

-- Half-finished logins: the part of their state that must not be turned back by showing an older token.
CREATE TABLE login_sessions (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    user_id {key} NOT NULL,
    wrong_codes {int} NOT NULL,
    ended_at {int},
    -- The factor being set up: a phone number, or a sealed TOTP secret.
    setup_phone TEXT,
    setup_sealed_secret TEXT,
    -- HMAC of the SMS code that is out, and until when it counts.
    code_digest TEXT,
    code_expires_at {int},
    expires_at {int} NOT NULL,
    created_at {int} NOT NULL
) {strict};
CREATE INDEX login_sessions_by_app ON login_sessions (app_id);
CREATE INDEX login_sessions_by_user ON login_sessions (user_id);
CREATE INDEX login_sessions_by_expiry ON login_sessions (expires_at);

CREATE TABLE mfa_factors (
    user_id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    method TEXT NOT NULL,
    phone TEXT,
    sealed_secret TEXT,
    -- The last time step whose code was used: none works twice.
    last_step {int} NOT NULL,
    backup_digest TEXT NOT NULL,
    created_at {int} NOT NULL
) {strict};
CREATE INDEX mfa_factors_by_app ON mfa_factors (app_id);

CREATE TABLE passkeys (
    -- The credential's own id, base64url.
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    user_id {key} NOT NULL,
    rp_id {key} NOT NULL,
    credential TEXT NOT NULL,
    last_used_at {int},
    created_at {int} NOT NULL
) {strict};
CREATE INDEX passkeys_by_user ON passkeys (user_id);
CREATE INDEX passkeys_by_app ON passkeys (app_id);

-- Values that may be shown once, remembered until they would be refused anyway.
CREATE TABLE used_challenges (
    digest {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    expires_at {int} NOT NULL
) {strict};
CREATE INDEX used_challenges_by_expiry ON used_challenges (expires_at);

-- How often somebody failed, or was written to, of late.
CREATE TABLE attempt_counters (
    subject {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    attempts {int} NOT NULL,
    window_started_at {int} NOT NULL,
    blocked_until {int},
    expires_at {int} NOT NULL
) {strict};
CREATE INDEX attempt_counters_by_app ON attempt_counters (app_id);
CREATE INDEX attempt_counters_by_expiry ON attempt_counters (expires_at);
