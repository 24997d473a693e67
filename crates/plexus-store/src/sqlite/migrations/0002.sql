-- What was removed to save room is remembered as removed, so that nobody takes it for something that never was.
ALTER TABLE turns ADD COLUMN events TEXT NOT NULL DEFAULT 'kept';
ALTER TABLE runs ADD COLUMN files TEXT NOT NULL DEFAULT 'kept';

-- What has grown old is found without a look at the rest.
CREATE INDEX turns_ended ON turns (ended_at) WHERE ended_at IS NOT NULL AND events <> 'removed';
CREATE INDEX runs_ended ON runs (ended_at, session, run) WHERE ended_at IS NOT NULL AND files = 'kept';
CREATE INDEX approvals_resolved ON approvals (resolved_at) WHERE resolved_at IS NOT NULL;
CREATE INDEX calls_at ON calls (at);
CREATE INDEX permit_streams_approval ON permit_streams (approval);
