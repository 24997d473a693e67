-- What the turns of a session have cost, kept with it: what they did may be removed one day, and is too much to add up.
ALTER TABLE sessions ADD COLUMN cost_usd REAL NOT NULL DEFAULT 0;
UPDATE sessions SET cost_usd = coalesce((
    SELECT sum(max(0, json_extract(t.progress, '$.cost_now') - json_extract(t.progress, '$.cost_before')))
    FROM turns t
    WHERE t.session = sessions.id AND t.ended_at IS NOT NULL AND json_extract(t.progress, '$.result') IS NOT NULL
), 0);
