-- Codes that take a signed-in user from an app's own pages to a hosted portal.
CREATE TABLE handover_codes (
    -- SHA-256 of the code.
    digest {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    user_id {key} NOT NULL,
    member_id {key} NOT NULL,
    -- The login of the access token that was shown.
    family_id {key} NOT NULL,
    oidc_scope TEXT NOT NULL,
    -- The privileges that were asked for; NULL means all of the role's.
    privileges TEXT,
    used_at {int},
    expires_at {int} NOT NULL,
    created_at {int} NOT NULL
) {strict};
CREATE INDEX handover_codes_by_app ON handover_codes (app_id);
CREATE INDEX handover_codes_by_expiry ON handover_codes (expires_at);
