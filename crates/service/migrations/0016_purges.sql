-- Deletions whose remains are not known to be gone. `belongs_by` is the column that names the owner in other tables.
CREATE TABLE purges (
    app_id {key} NOT NULL,
    belongs_by {key} NOT NULL,
    owner_id {key} NOT NULL,
    created_at {int} NOT NULL,
    due_at {int} NOT NULL,
    PRIMARY KEY (app_id, belongs_by, owner_id)
) {strict};
CREATE INDEX purges_by_due ON purges (due_at);

-- What belongs to an app or a person is found without reading everybody else's.
CREATE INDEX one_time_links_by_app ON one_time_links (app_id);
CREATE INDEX mail_outbox_by_app ON mail_outbox (app_id);
CREATE INDEX sms_outbox_by_app ON sms_outbox (app_id);
CREATE INDEX used_challenges_by_app ON used_challenges (app_id);
CREATE INDEX api_tokens_by_secret ON api_tokens (secret_id);
CREATE INDEX authorization_codes_by_person ON authorization_codes (app_id, user_id);
DROP INDEX authorization_codes_by_app;
CREATE INDEX handover_codes_by_person ON handover_codes (app_id, user_id);
DROP INDEX handover_codes_by_app;

-- These consumers are gone; what they had not finished is remembered.
INSERT INTO purges (app_id, belongs_by, owner_id, created_at, due_at)
    SELECT app_id, 'app_id', app_id, min(created_at), min(created_at) FROM outbox
    WHERE kind IN ('app.deleted', 'purge.continued') AND app_id IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM apps WHERE apps.id = outbox.app_id) GROUP BY app_id;
DELETE FROM outbox_cursors WHERE name IN ('purge-app-access', 'purge-app-people', 'purge-app-roles',
    'purge-app-federation', 'purge-tokens-of-retired-secrets', 'purge-app-identity', 'purge-app-catalog',
    'purge-identity-of-gone-workspaces', 'purge-identity-of-gone-people');
