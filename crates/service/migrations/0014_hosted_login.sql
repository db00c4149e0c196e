-- Somebody signed in to an app in one browser: what its cookie stands for. Further logins of this app in this browser
-- need no credential while it lasts, and signing out ends everything that came from it.
CREATE TABLE browser_sessions (
    id {key} PRIMARY KEY,
    -- SHA-256 of the cookie.
    digest {key} NOT NULL,
    app_id {key} NOT NULL,
    user_id {key} NOT NULL,
    -- The workspace that was chosen last.
    member_id {key} NOT NULL,
    mfa {bool} NOT NULL,
    method TEXT NOT NULL,
    authenticated_at {int} NOT NULL,
    ended_at {int},
    expires_at {int} NOT NULL,
    created_at {int} NOT NULL
) {strict};
CREATE UNIQUE INDEX browser_sessions_by_digest ON browser_sessions (digest);
CREATE INDEX browser_sessions_by_app ON browser_sessions (app_id);
CREATE INDEX browser_sessions_by_user ON browser_sessions (user_id);
CREATE INDEX browser_sessions_by_expiry ON browser_sessions (expires_at);

ALTER TABLE authorization_codes ADD COLUMN browser_session_id {key};
ALTER TABLE authorization_codes ADD COLUMN method TEXT;
ALTER TABLE refresh_families ADD COLUMN browser_session_id {key};
-- Logins of the JSON flows have no browser and pay nothing for these.
CREATE INDEX refresh_families_by_browser ON refresh_families (browser_session_id) WHERE browser_session_id IS NOT NULL;
CREATE INDEX authorization_codes_by_browser ON authorization_codes (browser_session_id)
    WHERE browser_session_id IS NOT NULL;

-- Whether the person had a second factor that was not shown when the passkey was added. It counts as one factor then.
ALTER TABLE passkeys ADD COLUMN unproven {bool} NOT NULL DEFAULT FALSE;
