-- Whether an app key was made without a list of privileges: then it may grant any. A node of the release before does not
-- write it, and the keys that it makes meanwhile grant what they hold.
ALTER TABLE app_keys ADD COLUMN unrestricted {bool} NOT NULL DEFAULT FALSE;
UPDATE app_keys SET unrestricted = TRUE WHERE privileges LIKE '%"AUTHENTICATED"%' AND privileges LIKE '%"USER_READ"%'
    AND privileges LIKE '%"USER_WRITE"%' AND privileges LIKE '%"TENANT_READ"%' AND privileges LIKE '%"TENANT_WRITE"%'
    AND privileges LIKE '%"APP_READ"%' AND privileges LIKE '%"APP_WRITE"%';

-- Who made a token: what a token made ends with it, what a member made with the membership.
ALTER TABLE api_tokens ADD COLUMN made_by_key {key};
ALTER TABLE api_tokens ADD COLUMN made_by_token {key};
ALTER TABLE api_tokens ADD COLUMN made_by_member {key};
CREATE INDEX api_tokens_by_token ON api_tokens (made_by_token);
CREATE INDEX api_tokens_by_member ON api_tokens (made_by_member);
