//! The statements that read and delete. They are constants, so that a test can check the query plan of each. Those that differ between
//! databases are in a [`Dialect`](super::Dialect).

macro_rules! approvals {
    ($rest:literal) => {
        approvals!("a.number", $rest)
    };
    ($number:literal, $rest:literal) => {
        approvals!($number, "", $rest)
    };
    ($number:literal, $more:expr, $rest:literal) => {
        concat!(
            "SELECT a.question, a.status, a.decision, a.resolved_at, a.delivered_at, a.run, a.turn, a.channel, \
             a.request_id, ",
            $number,
            " AS number, s.name AS session_name, s.answers_to, s.host",
            $more,
            " FROM approvals a JOIN sessions s ON s.id = a.session ",
            $rest
        )
    };
}

/// Selects all columns of a table that this release knows, by name. A statement with `*` that a running hub has prepared would fail when a hub of the next release
/// adds a column.
macro_rules! columns {
    (sessions, $rest:literal) => {
        concat!("SELECT ordinal, id, name, answers_to, config, tree, head, beginning, latest_turn, latest_run, created_at, deleted_at, \
             cost_usd, woken_to, title, archived_at, host ",
            $rest
        )
    };
    (runs, $rest:literal) => {
        concat!("SELECT session, run, state, token_hash, process, journal_offset, exit, created_at, ended_at, files ", $rest)
    };
    (turns, $rest:literal) => {
        concat!("SELECT session, turn, status, run, prompt, prompt_uuid, progress, started_at, ended_at, events, head, cost_usd ", $rest)
    };
    (calls, $rest:literal) => {
        concat!("SELECT ordinal, session, run, turn, tool_use_id, tool_name, digest, request_id, verdict, at, settled_at, summary ", $rest)
    };
    (rules, $rest:literal) => {
        concat!("SELECT number, session, entry, expires_at, authority, made_by, created_at, revoked_at ", $rest)
    };
    (tokens, $rest:literal) => {
        concat!("SELECT number, name, hash, \"right\", created_at, expires_at, revoked_at ", $rest)
    };
    (templates, $rest:literal) => {
        concat!("SELECT name, template, saved_at ", $rest)
    };
    (feed, $rest:literal) => {
        concat!("SELECT number, addressee, kind, session, approval, turn, data, at ", $rest)
    };
    (permit_streams, $rest:literal) => {
        concat!("SELECT event_id, session, run, approval, jsonrpc_id, progress_token, at ", $rest)
    };
    (nodes, $rest:literal) => {
        concat!("SELECT ordinal, id, tree, parent, above, jump, depth, children, role, session, turn, uuid, preview, content, long, created_at ", $rest)
    };
    (s, $rest:literal) => {
        concat!("SELECT s.ordinal, s.id, s.name, s.answers_to, s.config, s.tree, s.head, s.beginning, s.latest_turn, s.latest_run, s.created_at, \
             s.deleted_at, s.cost_usd, s.woken_to, s.title, s.archived_at, s.host",
            $rest
        )
    };
}

pub(crate) const SESSION: &str = columns!(sessions, "FROM sessions WHERE id = ?1");
pub(crate) const SESSION_IDENTITY: &str = "SELECT name, answers_to, host FROM sessions WHERE id = ?1";
pub(crate) const SESSIONS_NAMED: &str =
    columns!(sessions, "FROM sessions WHERE name = ?1 AND deleted_at IS NULL");
pub(crate) const SESSIONS: &str =
    columns!(sessions, "FROM sessions WHERE deleted_at IS NULL ORDER BY ordinal");

pub(crate) const NEWEST_SESSIONS: &str = columns!(sessions, "FROM sessions ORDER BY ordinal DESC LIMIT ?1");

// The sessions that are not deleted, and what they do. Prompts are not read, and an event only if it is the last of its session.
pub(crate) const SESSIONS_WITH_TURN: &str = columns!(
    s,
    ", \
    t.status AS turn_status, t.progress AS turn_progress, t.started_at AS turn_started_at, \
    (SELECT e.at FROM events e WHERE e.session = s.id AND e.turn = s.latest_turn ORDER BY e.seq DESC LIMIT 1) \
     AS last_event_at \
    FROM sessions s LEFT JOIN turns t ON t.session = s.id AND t.turn = s.latest_turn \
    WHERE s.deleted_at IS NULL ORDER BY s.ordinal"
);
pub(crate) const OPEN_CALLS: &str =
    "SELECT session, tool_use_id, question FROM approvals WHERE status = 'pending' ORDER BY number";
pub(crate) const UNFINISHED_CALLS: &str = "SELECT tool_use_id, tool_name, summary FROM calls \
    WHERE session = ?1 AND run = ?2 AND settled_at IS NULL AND turn = ?3 ORDER BY ordinal DESC LIMIT ?4";
pub(crate) const BUDGETS: &str = "SELECT b.session, b.kind, b.granted, b.own, b.below, b.used \
    FROM sessions s JOIN budgets b ON b.session = s.id WHERE s.deleted_at IS NULL ORDER BY s.ordinal, b.kind";

pub(crate) const BUDGET: &str = "SELECT b.granted, b.own, b.below, b.used, b.told, s.deleted_at IS NOT NULL AS deleted \
    FROM budgets b JOIN sessions s ON s.id = b.session WHERE b.session = ?1 AND b.kind = ?2";
pub(crate) const ANY_BUDGET: &str = "SELECT EXISTS (SELECT 1 FROM budgets)";
pub(crate) const SESSIONS_WITH: &str = "SELECT session FROM budgets WHERE kind = ?1";
pub(crate) const PENDING_OF_CALL: &str =
    "SELECT id FROM approvals WHERE status = 'pending' AND session = ?1 AND tool_use_id = ?2";
pub(crate) const BUDGET_WAITS: &str = "SELECT approval FROM budget_waits WHERE session = ?1";
pub(crate) const IS_WAITED_FOR: &str = "SELECT EXISTS (SELECT 1 FROM budget_waits WHERE approval = ?1)";
pub(crate) const SET_VERDICT: &str = "UPDATE calls SET verdict = ?4 \
    WHERE session = ?1 AND run = ?2 AND tool_use_id = ?3 AND settled_at IS NULL";

pub(crate) const RUN: &str = columns!(runs, "FROM runs WHERE session = ?1 AND run = ?2");
// A store of a single machine has no hosts: there `?1` is NULL, and so is the host of every session.
pub(crate) const OPEN_RUNS: &str = columns!(
    runs,
    "FROM runs WHERE state <> 'ended' \
    AND (SELECT s.host FROM sessions s WHERE s.id = session) IS NOT DISTINCT FROM ?1 ORDER BY session, run"
);
pub(crate) const HAS_OPEN_RUN: &str =
    "SELECT EXISTS (SELECT 1 FROM runs WHERE session = ?1 AND state <> 'ended')";
pub(crate) const RUN_OF_TOKEN: &str = columns!(runs, "FROM runs WHERE token_hash = ?1 AND state <> 'ended'");

pub(crate) const TURN: &str = columns!(turns, "FROM turns WHERE session = ?1 AND turn = ?2");
pub(crate) const EVENTS: &str = "SELECT seq, event, at FROM events \
    WHERE session = ?1 AND turn = ?2 AND seq >= ?3 ORDER BY seq LIMIT ?4";
// Events are numbered without gaps and removed from the first on, so the last number is the count.
pub(crate) const EVENT_COUNT: &str = "SELECT coalesce((SELECT seq + 1 FROM events WHERE session = ?1 AND turn = ?2 ORDER BY seq DESC LIMIT 1), 0)";
/// See [`Dialect::end_of_turn`](super::Dialect). `$events` has the numbers of all events.
macro_rules! end_of_turn {
    ($events:literal) => {
        concat!(
            "SELECT name, answers_to, host, coalesce((SELECT seq + 1 FROM ",
            $events,
            " WHERE session = ?1 AND turn = ?2 ORDER BY seq DESC LIMIT 1), 0) AS next_event FROM sessions WHERE id = ?1"
        )
    };
}
pub(crate) const END_OF_TURN: &str = end_of_turn!("events");
/// See [`Dialect::before_approval`](super::Dialect). `$events` has the numbers of all events.
macro_rules! before_approval {
    ($events:literal) => {
        concat!(
            "SELECT name, answers_to, host, archived_at IS NOT NULL AS is_archived, EXISTS (SELECT 1 FROM approvals \
             WHERE session = ?1 AND run = ?2 AND tool_use_id = ?3 AND turn = ?4 AND settled_at IS NULL) AS key_is_held, \
             coalesce((SELECT seq + 1 FROM ",
            $events,
            " WHERE session = ?1 AND turn = ?4 ORDER BY seq DESC LIMIT 1), 0) AS next_event FROM sessions WHERE id = ?1"
        )
    };
}
pub(crate) const BEFORE_APPROVAL: &str = before_approval!("events");
/// See [`Dialect::approval_and_call`](super::Dialect). `$events` has the numbers of all events.
macro_rules! approval_and_call {
    ($events:literal) => {
        $crate::sql::statements::approvals!(
            "a.number",
            concat!(
                ", coalesce((SELECT e.seq + 1 FROM ",
                $events,
                " e WHERE e.session = a.session AND e.turn = a.turn ORDER BY e.seq DESC LIMIT 1), 0) AS next_event, \
                 (SELECT c.verdict FROM calls c WHERE c.session = a.session AND c.run = a.run AND c.tool_use_id = a.tool_use_id \
                 AND c.settled_at IS NULL LIMIT 1) AS verdict"
            ),
            "WHERE a.id = ?1"
        )
    };
}
pub(crate) const APPROVAL_AND_CALL: &str = approval_and_call!("events");

pub(crate) const APPROVAL: &str = approvals!("WHERE a.id = ?1");
pub(crate) const OPEN_APPROVALS: &str = approvals!("WHERE a.status = 'pending' ORDER BY a.number");
pub(crate) const OPEN_APPROVALS_OF_SESSION: &str =
    approvals!("WHERE a.status = 'pending' AND a.session = ?1 ORDER BY a.number");
// One statement, so that an approval that is escalated meanwhile is found once.
pub(crate) const OPEN_APPROVALS_ASKED_OF: &str = concat!(
    approvals!("WHERE a.status = 'pending' AND a.asked_of = ?1"),
    " UNION ALL ",
    approvals!(
        "b.number",
        "JOIN asked_before b ON b.approval = a.id \
         WHERE b.addressee = ?1 AND b.passed_over AND a.status = 'pending'"
    ),
    " ORDER BY number"
);
pub(crate) const HAS_PENDING: &str =
    "SELECT EXISTS (SELECT 1 FROM approvals WHERE session = ?1 AND status = 'pending' AND turn = ?2)";
pub(crate) const ASKED_BEFORE: &str =
    "SELECT addressee FROM asked_before WHERE approval = ?1 ORDER BY number";
pub(crate) const LIVING_APPROVALS: &str =
    approvals!("WHERE a.session = ?1 AND a.run = ?2 AND a.settled_at IS NULL ORDER BY a.number");
pub(crate) const LIVING_CALLS: &str =
    columns!(calls, "FROM calls WHERE session = ?1 AND run = ?2 AND settled_at IS NULL ORDER BY ordinal");

pub(crate) const RUN_OF_CALL: &str = "SELECT session, run FROM calls WHERE ordinal = ?1";

pub(crate) const RULES_VERSION: &str = "SELECT count(*) + count(revoked_at) FROM rules";
pub(crate) const RULE_IS_IN_FORCE: &str =
    "SELECT EXISTS (SELECT 1 FROM rules WHERE number = ?1 AND revoked_at IS NULL)";
pub(crate) const RULES: &str = columns!(rules, "FROM rules WHERE revoked_at IS NULL ORDER BY number");
pub(crate) const TOKENS: &str = columns!(tokens, "FROM tokens WHERE revoked_at IS NULL ORDER BY number");
pub(crate) const TOKENS_NAMED: &str = columns!(tokens, "FROM tokens WHERE name = ?1 AND revoked_at IS NULL");
pub(crate) const TOKEN_OF_HASH: &str = columns!(tokens, "FROM tokens WHERE hash = ?1 AND revoked_at IS NULL");

pub(crate) const TEMPLATES: &str = columns!(templates, "FROM templates ORDER BY name");
pub(crate) const TEMPLATE: &str = columns!(templates, "FROM templates WHERE name = ?1");
pub(crate) const TEMPLATE_EXISTS: &str = "SELECT EXISTS (SELECT 1 FROM templates WHERE name = ?1)";

macro_rules! insert_feed_entry {
    ($returning:literal) => {
        concat!(
            "INSERT INTO feed (addressee, kind, session, approval, turn, data, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            $returning
        )
    };
}
pub(crate) const FEED: &str =
    columns!(feed, "FROM feed WHERE addressee = ?1 AND number > ?2 ORDER BY number LIMIT ?3");
pub(crate) const FEED_OF_ALL: &str = columns!(feed, "FROM feed WHERE number > ?1 ORDER BY number LIMIT ?2");
// Each with the number of the feed entry.
pub(crate) const FEED_APPROVALS: &str = approvals!(
    "f.number",
    "JOIN feed f ON f.approval = a.id WHERE f.addressee = ?1 AND f.number > ?2 AND f.number <= ?3 ORDER BY f.number"
);
pub(crate) const FEED_APPROVALS_OF_ALL: &str = approvals!(
    "f.number",
    "JOIN feed f ON f.approval = a.id WHERE f.number > ?1 AND f.number <= ?2 ORDER BY f.number"
);
pub(crate) const INSERT_FEED_ENTRY: &str = insert_feed_entry!("");
pub(crate) const INSERT_FEED_ENTRY_AND_RETURN_NUMBER: &str = insert_feed_entry!(" RETURNING number");
pub(crate) const FEED_HEAD: &str = "SELECT coalesce(max(number), 0) FROM feed";

pub(crate) const PERMIT_STREAM: &str = columns!(permit_streams, "FROM permit_streams WHERE event_id = ?1");
pub(crate) const POSITION: &str =
    "SELECT position FROM positions WHERE reader = ?1 AND session = ?2 AND turn = ?3";

// Only the oldest question is read: inputs may be large.
pub(crate) const TALLY: &str = "SELECT \
    (SELECT count(*) FROM sessions WHERE deleted_at IS NULL) AS sessions, \
    (SELECT count(*) FROM approvals WHERE status = 'pending') AS open_approvals, \
    (SELECT question FROM approvals WHERE status = 'pending' ORDER BY number LIMIT 1) AS oldest_open";

// Candidates for removal. `crate::domain::removal` decides, in the transaction that removes; the conditions here keep
// rows that it would refuse from filling a page.
pub(crate) const OLD_TURNS: &str = "SELECT t.session, t.turn FROM turns t INDEXED BY turns_ended JOIN sessions s ON s.id = t.session \
    WHERE t.ended_at < ?1 AND t.ended_at IS NOT NULL AND t.events <> 'removed' \
    AND (t.turn < s.latest_turn OR s.deleted_at IS NOT NULL AND NOT EXISTS \
         (SELECT 1 FROM runs r WHERE r.session = t.session AND r.state <> 'ended')) \
    AND NOT EXISTS (SELECT 1 FROM approvals a \
                    WHERE a.session = t.session AND a.status = 'pending' AND a.turn = t.turn) \
    ORDER BY t.ended_at LIMIT ?2";
pub(crate) const OLD_APPROVALS: &str = "SELECT a.id FROM approvals a \
    JOIN runs r ON r.session = a.session AND r.run = a.run \
    WHERE a.resolved_at < ?1 AND a.resolved_at IS NOT NULL AND r.state = 'ended' \
    ORDER BY a.resolved_at LIMIT ?2";
pub(crate) const OLD_CALLS: &str = "SELECT c.ordinal FROM calls c \
    JOIN runs r ON r.session = c.session AND r.run = c.run \
    WHERE c.at < ?1 AND r.state = 'ended' ORDER BY c.at LIMIT ?2";
pub(crate) const FINISHED_RUNS: &str = "SELECT r.session, r.run, r.ended_at, s.deleted_at FROM runs r \
    JOIN sessions s ON s.id = r.session \
    WHERE r.ended_at IS NOT NULL AND r.files = 'kept' AND (r.ended_at, r.session, r.run) > (?1, ?2, ?3) \
    AND s.host IS NOT DISTINCT FROM ?5 ORDER BY r.ended_at, r.session, r.run LIMIT ?4";

pub(crate) const FIRST_EVENTS: &str = "SELECT seq, octet_length(event) FROM events \
    WHERE session = ?1 AND turn = ?2 ORDER BY seq LIMIT ?3";
pub(crate) const DELETE_EVENTS: &str = "DELETE FROM events WHERE session = ?1 AND turn = ?2 AND seq <= ?3";
pub(crate) const DELETE_PERMIT_STREAMS: &str = "DELETE FROM permit_streams WHERE approval = ?1";
pub(crate) const DELETE_APPROVAL: &str = "DELETE FROM approvals WHERE id = ?1";
pub(crate) const DELETE_CALL: &str = "DELETE FROM calls WHERE ordinal = ?1";
pub(crate) const MARK_FILES_REMOVED: &str =
    "UPDATE runs SET files = 'removed' WHERE session = ?1 AND run = ?2 AND files = 'kept'";

// Conversation trees. The columns of a node without its content.
macro_rules! nodes {
    ($rest:literal) => {
        concat!(
            "SELECT n.id, n.tree, n.parent, n.depth, n.role, n.session, n.turn, n.children, n.preview, n.created_at \
             FROM nodes n ",
            $rest
        )
    };
}
pub(crate) const NODE: &str = columns!(nodes, "FROM nodes WHERE id = ?1");
pub(crate) const CHILDREN: &str = nodes!(
    "WHERE n.parent = ?1 AND n.ordinal > coalesce((SELECT ordinal FROM nodes WHERE id = ?2), 0) ORDER BY n.ordinal LIMIT ?3"
);
pub(crate) const NODES_OF_TREE: &str = nodes!(
    "WHERE n.tree = ?1 AND n.ordinal > coalesce((SELECT ordinal FROM nodes WHERE id = ?2), 0) ORDER BY n.ordinal LIMIT ?3"
);
pub(crate) const LEAVES: &str = nodes!(
    "WHERE n.tree = ?1 AND n.children = 0 AND n.ordinal > coalesce((SELECT ordinal FROM nodes WHERE id = ?2), 0) \
     ORDER BY n.ordinal LIMIT ?3"
);
pub(crate) const NODE_CONTENT: &str = "SELECT content, ordinal FROM nodes WHERE id = ?1";
pub(crate) const NODE_AT: &str = columns!(nodes, "FROM nodes WHERE ordinal = ?1");
pub(crate) const STEP_FROM: &str = "SELECT ordinal, depth, above, jump FROM nodes WHERE id = ?1";
pub(crate) const STEP_AT: &str = "SELECT ordinal, depth, above, jump FROM nodes WHERE ordinal = ?1";
pub(crate) const NODE_ABOVE: &str = "SELECT ordinal, depth, jump FROM nodes WHERE id = ?1";
pub(crate) const JUMPED_TO: &str = "SELECT ordinal, depth, jump FROM nodes WHERE ordinal = ?1";
pub(crate) const SAID: &str = "SELECT session, uuid, above FROM nodes WHERE id = ?1";
pub(crate) const SAID_AT: &str = "SELECT session, uuid, above FROM nodes WHERE ordinal = ?1";
pub(crate) const NEXT_TREE: &str = "SELECT coalesce(max(ordinal), 0) + 1 FROM trees";
pub(crate) const LONG_OF_NODE: &str = "SELECT l.place, l.hash, c.body FROM node_contents l \
    JOIN contents c ON c.hash = l.hash WHERE l.node = ?1";
macro_rules! trees {
    ($rest:literal) => {
        concat!(
            "SELECT t.id, t.nodes, t.created_at, \
             (SELECT n.id FROM nodes n WHERE n.tree = t.id ORDER BY n.ordinal LIMIT 1) AS root FROM trees t ",
            $rest
        )
    };
}
pub(crate) const TREE: &str = trees!("WHERE t.id = ?1");
pub(crate) const TREES: &str = trees!(
    "WHERE t.ordinal > coalesce((SELECT ordinal FROM trees WHERE id = ?1), 0) ORDER BY t.ordinal LIMIT ?2"
);
pub(crate) const TREE_SESSIONS: &str =
    "SELECT id, name, head, deleted_at IS NOT NULL AS deleted FROM sessions WHERE tree = ?1 ORDER BY ordinal";
pub(crate) const TREE_LIVES: &str =
    "SELECT EXISTS (SELECT 1 FROM sessions WHERE tree = ?1 AND deleted_at IS NULL)";
pub(crate) const LAST_NODES: &str = "SELECT id, parent FROM nodes \
    WHERE tree = ?1 AND parent IS NOT NULL ORDER BY ordinal DESC LIMIT ?2";

pub(crate) const LAST_NODE: &str = "SELECT coalesce(max(ordinal), 0) FROM nodes";

// The audit log is read by number; a filter skips entries. A parameter is compared before it is tested for NULL: PostgreSQL takes its type from its
// first use.
macro_rules! audit {
    (after, $of:literal) => {
        audit!($of, "number > ?1", "number")
    };
    (before, $of:literal) => {
        audit!($of, "number < ?1", "number DESC")
    };
    ($of:literal, $from:literal, $order:literal) => {
        concat!(
            "SELECT number, hash, entry FROM audit WHERE ",
            $of,
            " AND ",
            $from,
            " AND (at >= ?3 OR ?3 IS NULL) AND (at < ?4 OR ?4 IS NULL) AND (kind = ?5 OR ?5 IS NULL) \
             AND (who = ?6 OR ?6 IS NULL) ORDER BY ",
            $order,
            " LIMIT ?2"
        )
    };
}
pub(crate) const AUDIT: &str = audit!(after, "CAST(?7 AS TEXT) IS NULL AND CAST(?8 AS TEXT) IS NULL");
pub(crate) const AUDIT_OF_SESSION: &str = audit!(after, "session = ?8 AND (tool_name = ?7 OR ?7 IS NULL)");
pub(crate) const AUDIT_OF_TOOL: &str = audit!(after, "tool_name = ?7 AND CAST(?8 AS TEXT) IS NULL");
pub(crate) const NEWEST_AUDIT: &str = audit!(before, "CAST(?7 AS TEXT) IS NULL AND CAST(?8 AS TEXT) IS NULL");
pub(crate) const NEWEST_AUDIT_OF_SESSION: &str =
    audit!(before, "session = ?8 AND (tool_name = ?7 OR ?7 IS NULL)");
pub(crate) const NEWEST_AUDIT_OF_TOOL: &str = audit!(before, "tool_name = ?7 AND CAST(?8 AS TEXT) IS NULL");
pub(crate) const AUDIT_HEAD: &str =
    "SELECT number, hash FROM audit WHERE number = (SELECT max(number) FROM audit)";
pub(crate) const AUDIT_CHAIN: &str = "SELECT number, hash, entry, at, kind, who, session, tool_name FROM audit \
    WHERE number > ?1 AND number <= ?2 ORDER BY number";
pub(crate) const VERDICT: &str = "SELECT verdict FROM calls \
    WHERE session = ?1 AND run = ?2 AND tool_use_id = ?3 AND settled_at IS NULL";

// The past. The index of turns contains all columns, so that no prompt is read.
pub(crate) const ENDED_TURNS: &str = "SELECT session, turn, status, started_at, ended_at, cost_usd \
    FROM turns INDEXED BY turns_over WHERE ended_at IS NOT NULL AND ended_at >= ?1 AND started_at < ?2 \
    ORDER BY ended_at DESC LIMIT ?3";
pub(crate) const RESOLVED_SPANS: &str = "SELECT question, status, decision, resolved_at FROM approvals \
    WHERE resolved_at IS NOT NULL AND resolved_at >= ?1 AND resolved_at < ?2 ORDER BY resolved_at DESC LIMIT ?3";
pub(crate) const OPEN_SPANS: &str = "SELECT question FROM approvals WHERE status = 'pending' ORDER BY number";
pub(crate) const AUDIT_NUMBERS: &str =
    "SELECT (SELECT min(number) FROM audit), (SELECT max(number) FROM audit)";
pub(crate) const AUDIT_TIME: &str = "SELECT at FROM audit WHERE number = ?1";
pub(crate) const AUDIT_BY_NUMBER: &str = "SELECT at, entry FROM audit \
    WHERE number >= ?1 AND number < ?2 AND at >= ?3 AND at < ?4 AND kind IN ('decision', 'gate') \
    ORDER BY number DESC LIMIT ?5";
pub(crate) const CALL_COUNTS: &str = "SELECT (at - ?1) / ?3 AS part, session, count(*) AS calls \
    FROM (SELECT at, session FROM calls WHERE at >= ?1 AND at < ?2 ORDER BY at DESC LIMIT ?4) latest \
    GROUP BY part, session ORDER BY part, session";
pub(crate) const SESSION_PARENTS: &str = "SELECT id, answers_to FROM sessions ORDER BY ordinal";

pub(crate) use {approval_and_call, approvals, before_approval, end_of_turn, nodes};

/// The statements that must use an index, whatever the size of the tables.
#[cfg(test)]
pub(crate) const ALL: &[&str] = &[
    SESSION,
    SESSION_IDENTITY,
    SESSIONS_NAMED,
    SESSIONS,
    SESSIONS_WITH_TURN,
    OPEN_CALLS,
    UNFINISHED_CALLS,
    BUDGETS,
    BUDGET,
    SESSIONS_WITH,
    PENDING_OF_CALL,
    BUDGET_WAITS,
    IS_WAITED_FOR,
    SET_VERDICT,
    RUN,
    OPEN_RUNS,
    HAS_OPEN_RUN,
    RUN_OF_TOKEN,
    RUN_OF_CALL,
    TOKEN_OF_HASH,
    RULES,
    RULE_IS_IN_FORCE,
    TURN,
    EVENTS,
    EVENT_COUNT,
    END_OF_TURN,
    BEFORE_APPROVAL,
    APPROVAL,
    APPROVAL_AND_CALL,
    OPEN_APPROVALS,
    OPEN_APPROVALS_OF_SESSION,
    OPEN_APPROVALS_ASKED_OF,
    LIVING_APPROVALS,
    LIVING_CALLS,
    FEED,
    FEED_OF_ALL,
    FEED_APPROVALS,
    FEED_APPROVALS_OF_ALL,
    FEED_HEAD,
    PERMIT_STREAM,
    POSITION,
    TALLY,
    OLD_TURNS,
    OLD_APPROVALS,
    OLD_CALLS,
    FINISHED_RUNS,
    FIRST_EVENTS,
    DELETE_EVENTS,
    DELETE_PERMIT_STREAMS,
    DELETE_APPROVAL,
    DELETE_CALL,
    MARK_FILES_REMOVED,
    HAS_PENDING,
    AUDIT,
    AUDIT_OF_SESSION,
    AUDIT_OF_TOOL,
    NEWEST_AUDIT,
    NEWEST_AUDIT_OF_SESSION,
    NEWEST_AUDIT_OF_TOOL,
    AUDIT_HEAD,
    AUDIT_CHAIN,
    VERDICT,
    NODE,
    CHILDREN,
    NODES_OF_TREE,
    LEAVES,
    NODE_AT,
    NODE_CONTENT,
    STEP_FROM,
    STEP_AT,
    NODE_ABOVE,
    JUMPED_TO,
    SAID,
    SAID_AT,
    LONG_OF_NODE,
    TREE,
    TREES,
    TREE_SESSIONS,
    TREE_LIVES,
    LAST_NODES,
    LAST_NODE,
    ASKED_BEFORE,
    TEMPLATE,
    TEMPLATE_EXISTS,
    ENDED_TURNS,
    RESOLVED_SPANS,
    OPEN_SPANS,
    AUDIT_NUMBERS,
    AUDIT_TIME,
    AUDIT_BY_NUMBER,
    CALL_COUNTS,
];
