-- Forms of the hosted pages that a browser has sent just now, and where they led: a double click, or a line so slow that
-- somebody clicks again, continues like the first.
CREATE TABLE sent_forms (
    -- Of what only this browser knows, the form's address and all it holds.
    digest {key} PRIMARY KEY,
    -- Sealed; NULL while the form is being dealt with.
    reply TEXT,
    expires_at {int} NOT NULL
) {strict};
CREATE INDEX sent_forms_by_expiry ON sent_forms (expires_at);
