-- The host of a session is NULL in a file: its hub is the only one. PostgreSQL, which several hubs can share, has the same column.
ALTER TABLE sessions ADD COLUMN host TEXT;
