-- Whom a link is for that belongs to no person yet, as a digest.
ALTER TABLE one_time_links ADD COLUMN recipient {key};
CREATE INDEX one_time_links_by_recipient ON one_time_links (recipient) WHERE recipient IS NOT NULL;
