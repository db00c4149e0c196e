-- RSA keys that sign users' tokens. Private keys are sealed; a row whose retires_at has passed verifies nothing.
CREATE TABLE signing_keys (
    kid {key} PRIMARY KEY,
    sealed_key TEXT NOT NULL,
    created_at {int} NOT NULL,
    active_from {int} NOT NULL,
    retires_at {int}
) {strict};
