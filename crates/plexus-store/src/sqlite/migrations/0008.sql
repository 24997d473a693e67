-- Limits for a session and all below it, in units (millionths of a dollar, milliseconds, pieces). A use counts as `own`
-- with the nearest at or above the session that has the limit, and as `used` with every one above. `below` is what is
-- set aside for those that have a limit of their own and draw on this one. `told`: that 80 % are used was told.
CREATE TABLE budgets (
    session TEXT NOT NULL REFERENCES sessions (id),
    kind    TEXT NOT NULL,
    granted INTEGER NOT NULL,
    own     INTEGER NOT NULL DEFAULT 0,
    below   INTEGER NOT NULL DEFAULT 0,
    used    INTEGER NOT NULL DEFAULT 0,
    told    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (session, kind)
) STRICT, WITHOUT ROWID;
CREATE INDEX budgets_of_kind ON budgets (kind, session);

-- Whose turns wait for the answer to an open question for more. One that nobody waits for any more is withdrawn.
CREATE TABLE budget_waits (
    session  TEXT NOT NULL REFERENCES sessions (id),
    approval TEXT NOT NULL REFERENCES approvals (id),
    PRIMARY KEY (session, approval)
) STRICT, WITHOUT ROWID;
CREATE INDEX budget_waits_for ON budget_waits (approval);
