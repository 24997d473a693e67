-- Tokens that the operator handed out. One that was taken back stays on record; its name is free again.
CREATE TABLE tokens (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    right TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT;
