-- The keys of the operator API by their digests. The one without an end is the present one; those before it are kept, so
-- that a node that still has one of them is told so instead of being taken for a stranger.
CREATE TABLE operator_keys (
    digest {key} PRIMARY KEY,
    created_at {int} NOT NULL,
    ends_at {int}
) {strict};

INSERT INTO operator_keys (digest, created_at)
    SELECT value, created_at FROM installation WHERE name = 'operator_key_digest';
