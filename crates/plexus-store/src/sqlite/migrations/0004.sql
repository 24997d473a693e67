-- Rules for tool calls. One that was revoked stays on record.
CREATE TABLE rules (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT REFERENCES sessions (id),
    entry TEXT NOT NULL,
    expires_at INTEGER,
    authority TEXT NOT NULL,
    made_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;
CREATE INDEX rules_in_force ON rules (number) WHERE revoked_at IS NULL;
