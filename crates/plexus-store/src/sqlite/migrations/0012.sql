-- What the console shows of sessions over time. `title` is what a session is about; an archived session is left out of lists;
-- `summary` is a call in one line; `cost_usd` is what a turn has cost, which was part of `progress` before.
ALTER TABLE sessions ADD COLUMN title TEXT;
ALTER TABLE sessions ADD COLUMN archived_at INTEGER;
ALTER TABLE calls ADD COLUMN summary TEXT NOT NULL DEFAULT '';
ALTER TABLE turns ADD COLUMN cost_usd REAL NOT NULL DEFAULT 0;
UPDATE turns SET cost_usd = coalesce(
    max(0, json_extract(progress, '$.cost_now') - json_extract(progress, '$.cost_before')), 0)
WHERE ended_at IS NOT NULL AND json_extract(progress, '$.result') IS NOT NULL;

-- Turns by time. The index contains all that is read, so that no prompt is.
CREATE INDEX turns_over ON turns (ended_at, session, turn, started_at, status, cost_usd) WHERE ended_at IS NOT NULL;
-- Calls by time and session.
DROP INDEX calls_at;
CREATE INDEX calls_at ON calls (at, session);

-- Parameters for new sessions that the operator stored under a name.
CREATE TABLE templates (
    name     TEXT PRIMARY KEY,
    template TEXT NOT NULL,
    saved_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
