-- Calls and approvals are found by the hash of the id of the call: an id can be longer than PostgreSQL can index.
DROP INDEX approvals_living;
CREATE UNIQUE INDEX approvals_living ON approvals (session, run, md5(tool_use_id), turn) WHERE settled_at IS NULL;
DROP INDEX calls_living;
CREATE INDEX calls_living ON calls (session, run, md5(tool_use_id)) WHERE settled_at IS NULL;
-- The first statement of each transaction reads it.
ALTER TABLE feed_head DISABLE ROW LEVEL SECURITY;
