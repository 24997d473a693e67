-- What a host offers to new sessions: its labels, a JSON array, and its slots; no number of slots means no limit.
ALTER TABLE hosts ADD COLUMN labels TEXT NOT NULL DEFAULT '[]';
ALTER TABLE hosts ADD COLUMN slots BIGINT;
