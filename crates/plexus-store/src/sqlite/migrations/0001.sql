-- Conversation trees: what was said, one node per message.
CREATE TABLE trees (
    id         TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE nodes (
    id         TEXT PRIMARY KEY,
    tree       TEXT NOT NULL REFERENCES trees (id),
    parent     TEXT REFERENCES nodes (id),
    role       TEXT NOT NULL,
    content    TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (
    ordinal       INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE,
    name          TEXT NOT NULL,
    answers_to    TEXT NOT NULL,
    config        TEXT NOT NULL,
    tree          TEXT NOT NULL REFERENCES trees (id),
    head          TEXT NOT NULL REFERENCES nodes (id),
    latest_turn   INTEGER NOT NULL DEFAULT 0,
    latest_run    INTEGER NOT NULL DEFAULT 0,
    created_at    INTEGER NOT NULL,
    deleted_at    INTEGER
) STRICT;
CREATE UNIQUE INDEX sessions_living_name ON sessions (name) WHERE deleted_at IS NULL;
CREATE INDEX sessions_living ON sessions (ordinal) WHERE deleted_at IS NULL;

CREATE TABLE runs (
    session        TEXT NOT NULL REFERENCES sessions (id),
    run            INTEGER NOT NULL,
    state          TEXT NOT NULL,
    token_hash     TEXT,
    process        TEXT,
    journal_offset INTEGER NOT NULL DEFAULT 0,
    exit           TEXT,
    created_at     INTEGER NOT NULL,
    ended_at       INTEGER,
    PRIMARY KEY (session, run),
    CHECK ((state = 'ended') = (ended_at IS NOT NULL))
) STRICT;
CREATE INDEX runs_open ON runs (session, run) WHERE state <> 'ended';
CREATE UNIQUE INDEX runs_token ON runs (token_hash) WHERE token_hash IS NOT NULL;

CREATE TABLE turns (
    session     TEXT NOT NULL REFERENCES sessions (id),
    turn        INTEGER NOT NULL,
    status      TEXT NOT NULL DEFAULT 'running',
    run         INTEGER,
    prompt      TEXT NOT NULL,
    prompt_uuid TEXT NOT NULL DEFAULT '',
    progress    TEXT NOT NULL DEFAULT 'null',
    started_at  INTEGER NOT NULL,
    ended_at    INTEGER,
    PRIMARY KEY (session, turn),
    CHECK ((status = 'running') = (ended_at IS NULL))
) STRICT;

-- Turn 0 holds what happened outside any turn, so there is no reference to `turns`.
CREATE TABLE events (
    session TEXT NOT NULL REFERENCES sessions (id),
    turn    INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    event   TEXT NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (session, turn, seq)
) STRICT;

-- AUTOINCREMENT: a number that was given out is never given again, even if old entries are removed one day.
CREATE TABLE feed (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    addressee TEXT NOT NULL,
    kind      TEXT NOT NULL,
    session   TEXT NOT NULL REFERENCES sessions (id),
    approval  TEXT,
    turn      INTEGER,
    data      TEXT NOT NULL,
    at        INTEGER NOT NULL
) STRICT;
CREATE INDEX feed_of ON feed (addressee, number);

-- `question` is the approval as it was asked; what changes later stands in columns of its own.
CREATE TABLE approvals (
    id           TEXT PRIMARY KEY,
    number       INTEGER NOT NULL UNIQUE,
    session      TEXT NOT NULL REFERENCES sessions (id),
    run          INTEGER NOT NULL,
    turn         INTEGER NOT NULL,
    tool_use_id  TEXT NOT NULL,
    asked_of     TEXT NOT NULL,
    channel      TEXT NOT NULL,
    request_id   TEXT,
    question     TEXT NOT NULL,
    status       TEXT NOT NULL DEFAULT 'pending',
    decision     TEXT,
    resolved_at  INTEGER,
    delivered_at INTEGER,
    settled_at   INTEGER,
    CHECK ((status = 'pending') = (decision IS NULL)),
    CHECK ((status = 'pending') = (resolved_at IS NULL))
) STRICT;
CREATE INDEX approvals_open ON approvals (number) WHERE status = 'pending';
CREATE INDEX approvals_open_session ON approvals (session, number) WHERE status = 'pending';
CREATE INDEX approvals_open_asked_of ON approvals (asked_of, number) WHERE status = 'pending';
CREATE UNIQUE INDEX approvals_living ON approvals (session, run, tool_use_id, turn) WHERE settled_at IS NULL;

CREATE TABLE calls (
    ordinal     INTEGER PRIMARY KEY,
    session     TEXT NOT NULL REFERENCES sessions (id),
    run         INTEGER NOT NULL,
    turn        INTEGER NOT NULL,
    tool_use_id TEXT NOT NULL,
    tool_name   TEXT NOT NULL,
    digest      TEXT NOT NULL,
    request_id  TEXT NOT NULL,
    verdict     TEXT NOT NULL,
    at          INTEGER NOT NULL,
    settled_at  INTEGER
) STRICT;
CREATE INDEX calls_living ON calls (session, run, tool_use_id) WHERE settled_at IS NULL;

CREATE TABLE permit_streams (
    event_id       TEXT PRIMARY KEY,
    session        TEXT NOT NULL REFERENCES sessions (id),
    run            INTEGER NOT NULL,
    approval       TEXT NOT NULL REFERENCES approvals (id),
    jsonrpc_id     TEXT NOT NULL,
    progress_token TEXT,
    at             INTEGER NOT NULL
) STRICT;

CREATE TABLE positions (
    reader   TEXT NOT NULL,
    session  TEXT NOT NULL REFERENCES sessions (id),
    turn     INTEGER NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (reader, session, turn)
) STRICT, WITHOUT ROWID;
