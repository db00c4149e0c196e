-- What this installation knows about itself: check values of its keys, whether the first run is over.
CREATE TABLE installation (
    name {key} PRIMARY KEY,
    value TEXT NOT NULL,
    created_at {int} NOT NULL
) {strict};
