-- What an app keeps about members, as JSON.
ALTER TABLE members ADD COLUMN parameters TEXT NOT NULL DEFAULT '{}';
ALTER TABLE invitations ADD COLUMN parameters TEXT NOT NULL DEFAULT '{}';
