-- What hosts with a role of their own need (docs/design/36-a-role-for-each-host.md). Their rights are in host_roles.sql.

CREATE TABLE host_roles (
    role       TEXT PRIMARY KEY,
    host       TEXT COLLATE "C" NOT NULL UNIQUE,
    -- Since when the role can do nothing but read the state of hosts.
    stopped_at BIGINT
);

-- The sessions of other hosts above the sessions of a runner: it counts what its sessions use in the budgets of these.
CREATE TABLE host_ancestors (
    host    TEXT NOT NULL,
    session TEXT NOT NULL REFERENCES sessions (id),
    PRIMARY KEY (host, session)
);

-- The host whose runner has written the entry; NULL for hubs with the role of the owner.
ALTER TABLE audit ADD COLUMN host TEXT;

-- What a runner needs of the rows that it cannot read.
CREATE VIEW audit_tail AS SELECT number, hash FROM audit WHERE number = (SELECT max(number) FROM audit);
CREATE VIEW tree_numbers AS SELECT ordinal FROM trees;
CREATE VIEW event_numbers AS SELECT session, turn, seq FROM events;
