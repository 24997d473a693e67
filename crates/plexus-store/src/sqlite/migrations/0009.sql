-- Conversation trees that can be read from any place. `ordinal` numbers all nodes as they were added, so that what was said
-- together lies together; `above` is the ordinal of the parent and `jump` that of an ancestor further up, so that the node at
-- any depth of a path is found in a few steps; `uuid` is where Claude Code's own transcript can be taken up again;
-- `preview` is for those who only look, and `long` says whether texts of it stand in `contents`.
CREATE INDEX nodes_below ON nodes (parent);
CREATE TABLE nodes_anew (
    ordinal    INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    tree       TEXT NOT NULL REFERENCES trees (id),
    parent     TEXT,
    above      INTEGER,
    jump       INTEGER,
    depth      INTEGER NOT NULL,
    children   INTEGER NOT NULL DEFAULT 0,
    role       TEXT NOT NULL,
    session    TEXT,
    turn       INTEGER,
    uuid       TEXT,
    preview    TEXT NOT NULL,
    content    TEXT NOT NULL,
    long       INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL
) STRICT;
WITH RECURSIVE deep (row, above, depth) AS (
    SELECT rowid, NULL, 0 FROM nodes WHERE parent IS NULL
    UNION ALL
    SELECT n.rowid, deep.row, deep.depth + 1 FROM deep JOIN nodes p ON p.rowid = deep.row JOIN nodes n ON n.parent = p.id
)
INSERT INTO nodes_anew (ordinal, id, tree, parent, above, jump, depth, children, role, session, preview, content, created_at)
SELECT n.rowid, n.id, n.tree, n.parent, deep.above, deep.above, deep.depth,
    (SELECT count(*) FROM nodes c WHERE c.parent = n.id), n.role,
    CASE WHEN n.parent IS NULL THEN NULL ELSE (SELECT s.id FROM sessions s WHERE s.tree = n.tree) END,
    substr(coalesce(json_extract(n.content, '$[0].text'), ''), 1, 120), n.content, n.created_at
FROM deep JOIN nodes n ON n.rowid = deep.row;
DROP TABLE nodes;
ALTER TABLE nodes_anew RENAME TO nodes;
CREATE INDEX nodes_children ON nodes (parent, ordinal);
CREATE INDEX nodes_of_tree ON nodes (tree, ordinal);
CREATE INDEX nodes_leaves ON nodes (tree, ordinal) WHERE children = 0;

ALTER TABLE trees ADD COLUMN ordinal INTEGER;
ALTER TABLE trees ADD COLUMN nodes INTEGER NOT NULL DEFAULT 0;
UPDATE trees SET ordinal = rowid, nodes = (SELECT count(*) FROM nodes n WHERE n.tree = trees.id);
CREATE UNIQUE INDEX trees_ordinal ON trees (ordinal);
CREATE INDEX sessions_of_tree ON sessions (tree, ordinal);

-- Long texts of nodes, each kept once; `place` says where in the content of a node one belongs (a JSON pointer).
CREATE TABLE contents (
    hash TEXT PRIMARY KEY,
    body TEXT NOT NULL,
    uses INTEGER NOT NULL
) STRICT;
CREATE TABLE node_contents (
    node  INTEGER NOT NULL REFERENCES nodes (ordinal),
    place TEXT NOT NULL,
    hash  TEXT NOT NULL REFERENCES contents (hash),
    PRIMARY KEY (node, place)
) STRICT, WITHOUT ROWID;

-- What nodes say, to be searched; the row is the node's ordinal.
CREATE VIRTUAL TABLE node_text USING fts5 (
    text, content = '', contentless_delete = 1, tokenize = "unicode61 remove_diacritics 2"
);

-- Where the conversation stood when a turn ended.
ALTER TABLE turns ADD COLUMN head TEXT;

-- Where the conversation of a session began: the root of its tree, or where it was forked.
ALTER TABLE sessions ADD COLUMN beginning TEXT;
UPDATE sessions SET beginning = (SELECT n.id FROM nodes n WHERE n.tree = sessions.tree AND n.parent IS NULL);
