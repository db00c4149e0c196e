-- The chain over the service's own entries, one link for each.
CREATE TABLE event_links (
    app_id {key} NOT NULL,
    seq {int} NOT NULL,
    event_id {key} NOT NULL,
    happened_at {int} NOT NULL,
    -- JSON: the salt of each value by the name of its parameter, and the digests of those that were erased.
    salts TEXT NOT NULL,
    erased TEXT,
    -- Digests of the entry, and of the link with the one before.
    content TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (app_id, seq)
) {strict};
CREATE UNIQUE INDEX event_links_by_event ON event_links (app_id, event_id);

-- Where each app's chain begins and ends. Links before the first are gone with their entries.
CREATE TABLE event_chains (
    app_id {key} PRIMARY KEY,
    first_seq {int} NOT NULL,
    before_first TEXT NOT NULL,
    last_seq {int} NOT NULL,
    last_digest TEXT NOT NULL
) {strict};

-- Events before this instant may have been deleted by the retention.
ALTER TABLE event_settings ADD COLUMN swept_before {int};
