-- The connection on whose word alone somebody belongs to a workspace, who has others; empty once they came by themselves.
ALTER TABLE members ADD COLUMN vouched_by {key};
