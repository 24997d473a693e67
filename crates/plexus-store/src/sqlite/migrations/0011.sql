-- A name is unique among the sessions of one creator, no longer among all sessions.
DROP INDEX sessions_living_name;
CREATE UNIQUE INDEX sessions_living_name ON sessions (name, answers_to) WHERE deleted_at IS NULL;
