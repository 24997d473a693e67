-- The record: one row per decision and per act of authority, each chained to the one before by its hash. `entry` is what
-- happened; the columns beside it repeat parts of it, to search by.
-- AUTOINCREMENT: SQLite remembers how far the numbers went, so that rows missing at the end are noticed.
CREATE TABLE audit (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    hash      TEXT NOT NULL,
    at        INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    who       TEXT NOT NULL,
    session   TEXT,
    tool_name TEXT,
    entry     TEXT NOT NULL
) STRICT;
CREATE INDEX audit_session ON audit (session, number) WHERE session IS NOT NULL;

-- No part of the hub changes or removes a row. Against a mistake this helps, against someone with the file the chain does.
CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit BEGIN
    SELECT raise(ABORT, 'the record is only ever added to');
END;
CREATE TRIGGER audit_kept BEFORE DELETE ON audit BEGIN
    SELECT raise(ABORT, 'the record is only ever added to');
END;
