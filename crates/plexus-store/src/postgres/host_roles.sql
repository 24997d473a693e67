-- Hosts with a role of their own, "runners" (docs/design/36-a-role-for-each-host.md). The owner of the schema bypasses all policies below, so nothing changes for
-- hubs that use its role. Functions that execute with the rights of the owner search `pg_temp` last: a runner can create temporary tables.
--
-- Each upgrade of the schema executes this file: it replaces what an earlier version has created. The tables are in migrations/0004.sql.

DO $$
DECLARE
    earlier RECORD;
BEGIN
    FOR earlier IN SELECT tablename, policyname FROM pg_policies WHERE schemaname = 'plexus' LOOP
        EXECUTE format('DROP POLICY %I ON %I', earlier.policyname, earlier.tablename);
    END LOOP;
END
$$;
-- It is a policy.
DROP TRIGGER IF EXISTS approval_of_runner ON approvals;
-- Its parameters have changed.
DROP FUNCTION IF EXISTS is_budget_event(TEXT, TEXT);

-- The host of the runner that is connected; NULL for the owner, and for a role that is stopped.
CREATE OR REPLACE FUNCTION own_host() RETURNS TEXT LANGUAGE sql STABLE SECURITY DEFINER SET search_path = plexus, pg_temp AS $$
    SELECT host FROM host_roles WHERE role = session_user AND stopped_at IS NULL
$$;

-- The host of the role that is connected, also if the role is stopped; NULL for the owner.
CREATE OR REPLACE FUNCTION host_of_role() RETURNS TEXT LANGUAGE sql STABLE SECURITY DEFINER SET search_path = plexus, pg_temp AS $$
    SELECT host FROM host_roles WHERE role = session_user
$$;

CREATE OR REPLACE FUNCTION is_own(session TEXT) RETURNS BOOLEAN LANGUAGE sql STABLE SECURITY DEFINER SET search_path = plexus, pg_temp AS $$
    SELECT EXISTS (SELECT 1 FROM sessions s JOIN host_roles r ON r.host = s.host
        WHERE s.id = $1 AND r.role = session_user AND r.stopped_at IS NULL)
$$;

CREATE OR REPLACE FUNCTION is_above_own(session TEXT) RETURNS BOOLEAN LANGUAGE sql STABLE SECURITY DEFINER SET search_path = plexus, pg_temp AS $$
    SELECT EXISTS (SELECT 1 FROM host_ancestors a JOIN host_roles r ON r.host = a.host
        WHERE a.session = $1 AND r.role = session_user AND r.stopped_at IS NULL)
$$;

-- A tree belongs to the host of its sessions. A tree without sessions is being created.
CREATE OR REPLACE FUNCTION is_own_tree(tree TEXT) RETURNS BOOLEAN LANGUAGE sql STABLE SECURITY DEFINER SET search_path = plexus, pg_temp AS $$
    SELECT own_host() IS NOT NULL AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.tree = $1 AND s.host IS DISTINCT FROM own_host())
$$;

-- Whether these nodes are in the tree: hubs of the owner read the conversations of a runner from node to node.
CREATE OR REPLACE FUNCTION are_in_tree(tree TEXT, ids TEXT[], ordinals BIGINT[]) RETURNS BOOLEAN LANGUAGE sql STABLE SECURITY DEFINER SET search_path = plexus, pg_temp AS $$
    SELECT NOT EXISTS (SELECT 1 FROM unnest($2) AS given (node) WHERE given.node IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = given.node AND n.tree = $1))
        AND NOT EXISTS (SELECT 1 FROM unnest($3) AS given (node) WHERE given.node IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.ordinal = given.node AND n.tree = $1))
$$;

-- The parent of a session, if that is a session.
CREATE OR REPLACE FUNCTION parent_in(answers_to TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE SET search_path = pg_catalog AS $$
    SELECT CASE WHEN $1::json ->> 'kind' = 'session' THEN $1::json ->> 'id' END
$$;

-- The key of an addressee.
CREATE OR REPLACE FUNCTION key_in(addressee JSON) RETURNS TEXT LANGUAGE sql IMMUTABLE SET search_path = pg_catalog AS $$
    SELECT CASE $1 ->> 'kind' WHEN 'operator' THEN 'operator' WHEN 'session' THEN 'session:' || ($1 ->> 'id') WHEN 'parent' THEN 'parent:' || ($1 ->> 'id') END
$$;

-- Whether this addressee is above the session.
CREATE OR REPLACE FUNCTION may_address(session TEXT, addressee TEXT) RETURNS BOOLEAN LANGUAGE sql STABLE SECURITY DEFINER SET search_path = plexus, pg_temp AS $$
    WITH RECURSIVE above (answers_to, depth) AS (
        SELECT s.answers_to, 1 FROM sessions s WHERE s.id = $1
        UNION ALL
        SELECT s.answers_to, a.depth + 1 FROM above a JOIN sessions s ON s.id = parent_in(a.answers_to) WHERE a.depth < 64
    )
    SELECT $2 = 'operator' OR EXISTS (SELECT 1 FROM above a WHERE $2 = key_in(a.answers_to::json))
$$;

-- Whether a runner may use this approval of another host: one for the budget of a session above its own ones.
CREATE OR REPLACE FUNCTION is_budget_above(session TEXT, tool_use_id TEXT) RETURNS BOOLEAN LANGUAGE sql STABLE SET search_path = plexus, pg_temp AS $$
    SELECT starts_with($2, 'budget:') AND is_above_own($1)
$$;

-- Hubs act on the session, the call, the kind and the addressee that the text of an approval names. No rule allows a budget approval.
CREATE OR REPLACE FUNCTION names_approval(question TEXT, id TEXT, session TEXT, tool_use_id TEXT, asked_of TEXT) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE SET search_path = plexus, pg_temp AS $$
    SELECT $1::json ->> 'id' = $2 AND $1::json ->> 'session_id' = $3 AND $1::json ->> 'tool_use_id' = $4
        AND key_in($1::json -> 'asked_of') = $5
        AND CASE WHEN starts_with($4, 'budget:') THEN $1::json ->> 'kind' = 'budget' AND $1::json ->> 'tool_name' = 'budget' AND $1::json ->> 'beyond_rules' = 'true'
            ELSE $1::json ->> 'kind' <> 'budget' END
        AND (SELECT count(*) = count(DISTINCT key) FROM json_object_keys($1::json) key)
$$;

-- Whether an event of another host's session says what a runner has done with a budget approval of that session.
-- It has the next number of its turn: a larger one would leave no numbers for the events of that session.
CREATE OR REPLACE FUNCTION is_budget_event(session TEXT, turn BIGINT, seq BIGINT, event TEXT) RETURNS BOOLEAN LANGUAGE sql STABLE SECURITY DEFINER SET search_path = plexus, pg_temp AS $$
    SELECT is_above_own($1) AND EXISTS (SELECT 1 FROM approvals a
        WHERE a.id = $4::json ->> 'approval_id' AND a.session = $1 AND a.turn = $2 AND starts_with(a.tool_use_id, 'budget:')
        AND a.tool_use_id = $4::json ->> 'tool_use_id'
        AND CASE $4::json ->> 'type'
            WHEN 'approval_requested' THEN a.status = 'pending'
            WHEN 'approval_resolved' THEN a.status = 'withdrawn' AND $4::json ->> 'status' = 'withdrawn' END)
    AND $3 = coalesce((SELECT e.seq + 1 FROM events e WHERE e.session = $1 AND e.turn = $2 ORDER BY e.seq DESC LIMIT 1), 0)
$$;

-- The feed entries of another host's session that a runner may write and read: its budget approvals, and that its budget is low.
CREATE OR REPLACE FUNCTION is_budget_entry(session TEXT, kind TEXT, data TEXT) RETURNS BOOLEAN LANGUAGE sql STABLE SET search_path = plexus, pg_temp AS $$
    SELECT is_above_own($1) AND ($2 IN ('asked', 'resolved') OR $2 = 'notice' AND $3::json ->> 'type' = 'budget')
$$;

-- Whether a runner may write this feed entry. An approval is requested in the feed before it is created.
CREATE OR REPLACE FUNCTION may_notify(session TEXT, kind TEXT, approval TEXT, data TEXT) RETURNS BOOLEAN LANGUAGE sql STABLE SECURITY DEFINER SET search_path = plexus, pg_temp AS $$
    SELECT CASE
        WHEN is_own($1) THEN NOT EXISTS (SELECT 1 FROM approvals a WHERE a.id = $3 AND a.session <> $1)
        WHEN NOT is_budget_entry($1, $2, $4) THEN FALSE
        WHEN $2 = 'asked' THEN NOT EXISTS (SELECT 1 FROM approvals a WHERE a.id = $3)
        WHEN $2 = 'resolved' THEN EXISTS (SELECT 1 FROM approvals a
            WHERE a.id = $3 AND a.session = $1 AND starts_with(a.tool_use_id, 'budget:') AND a.status = 'withdrawn')
        ELSE $3 IS NULL END
$$;

-- Whether this names an addressee in the only form that hubs write: they compare it as text.
CREATE OR REPLACE FUNCTION is_canonical(addressee TEXT) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE SET search_path = pg_catalog AS $$
    SELECT $1 = CASE WHEN $1::json ->> 'kind' = 'operator' THEN '{"kind":"operator"}'
        ELSE format('{"kind":%s,"id":%s}', to_json($1::json ->> 'kind'), to_json($1::json ->> 'id')) END
$$;

-- Whether a session of this host may answer to this parent: one of its own sessions, an agent outside the hubs that has no sessions on other hosts, or one that
-- creates a session here with a command that is open.
CREATE OR REPLACE FUNCTION may_answer_to(answers_to TEXT) RETURNS BOOLEAN LANGUAGE sql STABLE SECURITY DEFINER SET search_path = plexus, pg_temp AS $$
    SELECT is_canonical($1) AND (CASE $1::json ->> 'kind'
        WHEN 'operator' THEN TRUE
        WHEN 'session' THEN is_own($1::json ->> 'id')
        WHEN 'parent' THEN NOT EXISTS (SELECT 1 FROM sessions s WHERE s.answers_to = $1 AND s.host IS DISTINCT FROM own_host())
        ELSE FALSE END
    OR EXISTS (SELECT 1 FROM commands c
        WHERE c.host = own_host() AND c.reply IS NULL AND c.method IN ('claudecode.create', 'claudecode.fork')
        AND c.caller::json -> 'principal' ->> 'kind' = $1::json ->> 'kind' AND c.caller::json -> 'principal' ->> 'id' = $1::json ->> 'id'
        AND CASE $1::json ->> 'kind' WHEN 'session' THEN c.origin = (SELECT s.host FROM sessions s WHERE s.id = $1::json ->> 'id') ELSE TRUE END))
$$;

-- The hub of a host starts. The only way in which a runner raises its epoch, or takes part again after it was declared lost; the audit log has an entry
-- of the hub that has admitted it again.
CREATE OR REPLACE FUNCTION join_host(name TEXT, machine TEXT, version TEXT, state TEXT, first_commit TEXT) RETURNS VOID
LANGUAGE plpgsql SECURITY DEFINER SET search_path = plexus, pg_temp AS $$
DECLARE
    before TEXT := (SELECT h.state FROM hosts h WHERE h.name = $1);
BEGIN
    IF EXISTS (SELECT 1 FROM host_roles r WHERE r.role = session_user) THEN
        IF own_host() IS NULL THEN
            RAISE EXCEPTION 'host % was stopped: admit it again with `plexus host add --renew %`', $1, $1 USING ERRCODE = '42501';
        ELSIF own_host() <> $1 THEN
            RAISE EXCEPTION 'this role is that of host %: use --host %', own_host(), own_host() USING ERRCODE = '42501';
        ELSIF before IN ('lost', 'removed') AND $4 <> 'rejoined' OR before NOT IN ('lost', 'removed') AND $4 NOT IN (before, 'rolled_back') THEN
            RAISE EXCEPTION 'host % cannot become %', $1, $4 USING ERRCODE = '42501';
        ELSIF $3 !~ '^[0-9A-Za-z.+-]{1,64}$' THEN
            RAISE EXCEPTION 'this is not the version of a hub' USING ERRCODE = '42501';
        END IF;
    END IF;
    IF before IS NULL THEN
        INSERT INTO hosts (name, machine, epoch, last_commit, version, joined_at)
        VALUES ($1, $2, 1, $5, $3, (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT);
    ELSE
        UPDATE hosts h SET epoch = epoch + 1, machine = $2, version = $3, state = $4 WHERE h.name = $1;
    END IF;
END
$$;
REVOKE ALL ON FUNCTION join_host FROM PUBLIC;

-- Both count in a row that a runner cannot change. A hub counts in its memory during a transaction, so nothing is numbered without the lock of writers: a hub has
-- it, and a program that uses the role of a runner waits for it here.
CREATE OR REPLACE FUNCTION number_feed_entry() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER SET search_path = plexus, pg_temp AS $$
BEGIN
    IF session_user <> current_user THEN
        PERFORM 1 FROM writer FOR UPDATE;
    END IF;
    UPDATE feed_head SET number = number + 1 RETURNING number INTO NEW.number;
    RETURN NEW;
END
$$;
CREATE OR REPLACE FUNCTION count_audit_entry() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER SET search_path = plexus, pg_temp AS $$
BEGIN
    UPDATE audit_head SET number = greatest(number, NEW.number);
    IF NOT FOUND THEN
        INSERT INTO audit_head VALUES (NEW.number);
    END IF;
    RETURN NULL;
END
$$;

-- An entry of a runner continues the chain, can be read by `audit.verify`, and is about its own host.
CREATE OR REPLACE FUNCTION check_audit_entry() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER SET search_path = plexus, pg_temp AS $$
DECLARE
    me TEXT := own_host();
    said JSON := NEW.entry::json;
    decider JSON := said -> 'by';
    uuid CONSTANT TEXT := '^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$';
    head RECORD;
BEGIN
    PERFORM 1 FROM writer FOR UPDATE;
    SELECT t.number, t.hash, a.at INTO head FROM audit_tail t JOIN audit a ON a.number = t.number;
    IF NOT FOUND THEN
        SELECT 0 AS number, repeat('0', 64) AS hash, NEW.at AS at INTO head;
    END IF;
    -- Readers find the entries of a period by the times of some.
    IF NEW.at NOT BETWEEN head.at - 60 AND greatest(head.at, extract(epoch FROM clock_timestamp())::BIGINT) + 60 THEN
        RAISE EXCEPTION 'an audit entry is of another time' USING ERRCODE = '42501';
    END IF;
    IF NEW.number <> head.number + 1 OR position(E'\x01' IN NEW.entry) > 0 OR NEW.hash IS DISTINCT FROM
        encode(sha256(convert_to(head.hash || E'\n' || NEW.number || E'\n' || NEW.entry, 'UTF8')), 'hex') THEN
        RAISE EXCEPTION 'an audit entry does not continue the log' USING ERRCODE = '42501';
    END IF;
    IF (SELECT count(*) <> count(DISTINCT key) FROM json_object_keys(said) key)
        OR (SELECT count(*) <> count(DISTINCT key) FROM json_object_keys(decider) key)
        OR said ->> 'at' IS DISTINCT FROM NEW.at::TEXT OR json_typeof(said -> 'at') <> 'number' OR NEW.at < 0
        OR said ->> 'kind' IS DISTINCT FROM NEW.kind OR json_typeof(said -> 'kind') <> 'string'
        OR said ->> 'session_id' IS DISTINCT FROM NEW.session OR NEW.session !~ uuid
        OR said ->> 'tool_name' IS DISTINCT FROM NEW.tool_name OR json_typeof(said -> 'tool_name') NOT IN ('string', 'null')
        OR json_typeof(decider -> 'kind') IS DISTINCT FROM 'string'
        OR NEW.who IS DISTINCT FROM (CASE decider ->> 'kind'
            WHEN 'operator' THEN 'operator'
            WHEN 'hub' THEN 'hub'
            WHEN 'token' THEN 'token:' || substring(decider ->> 'name' FROM '^[A-Za-z0-9._-]{1,64}$')
            WHEN 'session' THEN 'session:' || substring(decider ->> 'id' FROM uuid)
            WHEN 'parent' THEN CASE WHEN json_typeof(decider -> 'id') = 'string' THEN 'parent:' || (decider ->> 'id') END END) THEN
        RAISE EXCEPTION 'an audit entry differs from its columns' USING ERRCODE = '42501';
    END IF;
    IF me IS NULL OR NOT (CASE
        WHEN NEW.session IS NULL THEN NEW.kind IN ('session', 'policy') OR NEW.kind = 'host' AND said -> 'detail' ->> 'host' = me
        WHEN NEW.kind NOT IN ('decision', 'gate', 'session', 'policy') THEN FALSE
        WHEN is_own(NEW.session) THEN TRUE
        -- Nothing waits for a budget approval any more.
        ELSE NEW.kind = 'decision' AND said ->> 'status' = 'withdrawn' AND NEW.who = 'hub' AND EXISTS (SELECT 1 FROM approvals a
            WHERE a.id = said ->> 'approval_id' AND a.session = NEW.session AND is_budget_above(a.session, a.tool_use_id) AND a.status = 'withdrawn')
        END) THEN
        RAISE EXCEPTION 'an audit entry is not about this host' USING ERRCODE = '42501';
    END IF;
    NEW.host := me;
    RETURN NEW;
END
$$;

-- A runner counts in the budgets above its sessions what these use and reserve. It cannot raise such a budget, nor release what others use or reserve.
CREATE OR REPLACE FUNCTION check_budget() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER SET search_path = plexus, pg_temp AS $$
DECLARE
    before budgets%ROWTYPE;
    reserved NUMERIC;
BEGIN
    IF is_own(NEW.session) THEN
        RETURN NEW;
    END IF;
    SELECT * INTO before FROM budgets b WHERE b.session = NEW.session AND b.kind = NEW.kind;
    IF NOT FOUND OR NEW.granted <> before.granted OR NEW.used < before.used OR NEW.own < before.own OR before.told AND NOT NEW.told THEN
        RAISE EXCEPTION 'this host cannot change a budget of another host' USING ERRCODE = '42501';
    END IF;
    IF NEW.below < before.below THEN
        WITH RECURSIVE claims (claim, answers_to) AS (
            SELECT greatest(b.granted::NUMERIC, b.own::NUMERIC + b.below), s.answers_to FROM budgets b JOIN sessions s ON s.id = b.session
            WHERE b.kind = NEW.kind AND s.deleted_at IS NULL AND s.host IS DISTINCT FROM own_host()
            UNION ALL
            -- Sessions without a budget are passed.
            SELECT c.claim, s.answers_to FROM claims c JOIN sessions s ON s.id = parent_in(c.answers_to)
            WHERE NOT EXISTS (SELECT 1 FROM budgets b WHERE b.session = s.id AND b.kind = NEW.kind)
        )
        SELECT coalesce(sum(claim), 0) INTO reserved FROM claims WHERE parent_in(answers_to) = NEW.session;
        IF NEW.below < reserved THEN
            RAISE EXCEPTION 'this host cannot release what sessions of other hosts have reserved' USING ERRCODE = '42501';
        END IF;
    END IF;
    RETURN NEW;
END
$$;

CREATE OR REPLACE FUNCTION refuse_renumbering() RETURNS TRIGGER LANGUAGE plpgsql SET search_path = plexus, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'transactions are numbered without gaps' USING ERRCODE = '42501';
END
$$;

-- A runner cannot take the numbers that others need next, nor keep a record for ever.
CREATE OR REPLACE FUNCTION check_number() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER SET search_path = plexus, pg_temp AS $$
DECLARE
    is_next BOOLEAN;
BEGIN
    CASE TG_TABLE_NAME
        WHEN 'commits' THEN
            NEW.at := (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT;
            is_next := NEW.number = (SELECT number FROM writer);
        WHEN 'trees' THEN
            is_next := NEW.ordinal = (SELECT coalesce(max(ordinal), 0) + 1 FROM trees);
    END CASE;
    IF is_next IS NOT TRUE THEN
        RAISE EXCEPTION 'this host cannot choose this number' USING ERRCODE = '42501';
    END IF;
    RETURN NEW;
END
$$;

-- A runner could give these functions rows of its choice with a trigger on a temporary table of its own.
REVOKE EXECUTE ON FUNCTION number_feed_entry(), count_audit_entry(), check_audit_entry(), check_budget(), check_number() FROM PUBLIC;

-- The conditions keep the owner from calling the functions.
DO $$
BEGIN
    EXECUTE format('CREATE OR REPLACE TRIGGER commit_of_runner BEFORE INSERT ON commits FOR EACH ROW WHEN (current_user <> %L) EXECUTE FUNCTION check_number()', current_user);
    EXECUTE format('CREATE OR REPLACE TRIGGER tree_of_runner BEFORE INSERT ON trees FOR EACH ROW WHEN (current_user <> %L) EXECUTE FUNCTION check_number()', current_user);
    EXECUTE format('CREATE OR REPLACE TRIGGER audit_of_runner BEFORE INSERT ON audit FOR EACH ROW WHEN (current_user <> %L) EXECUTE FUNCTION check_audit_entry()', current_user);
    EXECUTE format('CREATE OR REPLACE TRIGGER budget_of_runner BEFORE INSERT OR UPDATE ON budgets FOR EACH ROW WHEN (current_user <> %L) EXECUTE FUNCTION check_budget()', current_user);
    EXECUTE format('CREATE OR REPLACE TRIGGER writer_of_runner BEFORE UPDATE ON writer FOR EACH ROW WHEN (current_user <> %L AND NEW.number <> OLD.number + 1)
        EXECUTE FUNCTION refuse_renumbering()', current_user);
END
$$;

-- Whether other hubs have memory for this row of a runner, can count on its numbers, and can find it by its id.
CREATE OR REPLACE FUNCTION is_storable(stored JSONB, bytes INT) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE SET search_path = pg_catalog AS $$
    SELECT NOT EXISTS (SELECT 1 FROM jsonb_each($1) WHERE CASE jsonb_typeof(value)
        WHEN 'number' THEN value::NUMERIC NOT BETWEEN 0 AND 9007199254740992
        WHEN 'string' THEN octet_length(value #>> '{}') > $2
            OR key = 'id' AND value #>> '{}' !~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
        ELSE FALSE END)
$$;

-- Row-level security of all tables. One without a policy shows a runner nothing. `sessions` has none: a runner uses the view in host_view.sql.
DO $$
DECLARE
    name TEXT;
    bytes INT;
BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'plexus' AND tablename NOT IN ('schema_version', 'writer', 'audit_head', 'feed_head') LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    END LOOP;
    -- What belongs to one session.
    FOREACH name IN ARRAY ARRAY['runs', 'calls', 'positions'] LOOP
        EXECUTE format('CREATE POLICY own ON %I USING (is_own(session))', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['commits', 'commands', 'trees', 'nodes', 'contents', 'node_contents', 'runs', 'turns', 'events', 'approvals', 'asked_before', 'calls',
        'permit_streams', 'positions', 'budgets', 'budget_waits', 'rules', 'feed', 'audit'] LOOP
        bytes := CASE name WHEN 'commits' THEN 4194304 WHEN 'approvals' THEN 8388608 ELSE 67108864 END;
        EXECUTE format('CREATE POLICY storable ON %I AS RESTRICTIVE FOR INSERT WITH CHECK (is_storable(to_jsonb(%1$I), %2$s))', name, bytes);
        EXECUTE format('CREATE POLICY still_storable ON %I AS RESTRICTIVE FOR UPDATE USING (TRUE) WITH CHECK (is_storable(to_jsonb(%1$I), %2$s))', name, bytes);
    END LOOP;
END
$$;

CREATE POLICY known ON hosts FOR SELECT USING (TRUE);
-- All hubs read the row, so its values are those that a hub writes.
CREATE POLICY own ON hosts FOR UPDATE USING (name = (SELECT own_host()) AND state NOT IN ('lost', 'removed'))
    WITH CHECK (name = (SELECT own_host()) AND state IN ('in', 'draining', 'rejoined', 'rolled_back') AND (slots IS NULL OR slots >= 0)
        AND labels ~ '^\[("[A-Za-z0-9._=-]{1,64}"(,"[A-Za-z0-9._=-]{1,64}")*)?\]$' AND length(labels) < 10000 AND commits BETWEEN 0 AND 9007199254740992 AND schema_version >= (SELECT v.oldest FROM schema_version v));
CREATE POLICY known ON leases FOR SELECT USING ((SELECT own_host()) IS NOT NULL);
-- Hubs compute with it.
CREATE POLICY own ON leases USING (host = (SELECT own_host()))
    WITH CHECK (host = (SELECT own_host()) AND until BETWEEN 0 AND (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT + 60000);
CREATE POLICY known ON commits FOR SELECT USING ((SELECT own_host()) IS NOT NULL);
CREATE POLICY own ON commits FOR INSERT WITH CHECK (host = (SELECT own_host()));
CREATE POLICY known ON presence FOR SELECT USING ((SELECT own_host()) IS NOT NULL);
CREATE POLICY own ON presence USING ((SELECT own_host()) IS NOT NULL AND
    (NOT starts_with(caller, 'session:') OR is_own(substr(caller, 9)) OR is_above_own(substr(caller, 9))));
-- A runner takes and answers commands. It sends none.
-- It cannot reopen one that it has answered.
CREATE POLICY known ON commands FOR SELECT USING (host = (SELECT own_host()));
CREATE POLICY own ON commands FOR UPDATE USING (host = (SELECT own_host()) AND reply IS NULL) WITH CHECK (host = (SELECT own_host()));

CREATE POLICY own ON trees USING (is_own_tree(id));
CREATE POLICY own ON nodes USING (is_own_tree(tree)) WITH CHECK (is_own_tree(tree) AND are_in_tree(tree, ARRAY[parent], ARRAY[above, jump]));
CREATE POLICY own ON node_contents USING (EXISTS (SELECT 1 FROM nodes n WHERE n.ordinal = node))
    WITH CHECK (EXISTS (SELECT 1 FROM nodes n WHERE n.ordinal = node) AND starts_with(hash, (SELECT own_host()) || ':'));
CREATE POLICY own ON node_text USING (EXISTS (SELECT 1 FROM nodes n WHERE n.ordinal = rowid));
-- Texts are shared by their hash. A runner shares with itself only, so that it cannot replace a text of another host.
CREATE POLICY own ON contents USING (starts_with(hash, (SELECT own_host()) || ':'));

CREATE POLICY own ON turns USING (is_own(session)) WITH CHECK (is_own(session) AND (head IS NULL OR EXISTS (SELECT 1 FROM nodes n WHERE n.id = head)));
CREATE POLICY own ON permit_streams USING (is_own(session))
    WITH CHECK (is_own(session) AND EXISTS (SELECT 1 FROM approvals a WHERE a.id = approval AND a.session = permit_streams.session));
CREATE POLICY own ON events USING (is_own(session));
CREATE POLICY budget ON events FOR INSERT WITH CHECK (is_budget_event(session, turn, seq, event));
CREATE POLICY own ON approvals USING (is_own(session))
    WITH CHECK (is_own(session) AND may_address(session, asked_of) AND names_approval(question, id, session, tool_use_id, asked_of));
-- It cannot take the number that the next feed entry gets.
CREATE POLICY numbered ON approvals AS RESTRICTIVE FOR INSERT WITH CHECK (number <= (SELECT h.number FROM feed_head h));
CREATE POLICY still_numbered ON approvals AS RESTRICTIVE FOR UPDATE USING (TRUE) WITH CHECK (number <= (SELECT h.number FROM feed_head h));
CREATE POLICY budget_seen ON approvals FOR SELECT USING (is_budget_above(session, tool_use_id));
CREATE POLICY budget_asked ON approvals FOR INSERT WITH CHECK (is_budget_above(session, tool_use_id) AND status = 'pending' AND turn = 0
    AND may_address(session, asked_of) AND names_approval(question, id, session, tool_use_id, asked_of) AND (question::json -> 'passed') IS NULL);
CREATE POLICY budget_withdrawn ON approvals FOR UPDATE USING (is_budget_above(session, tool_use_id) AND status IN ('pending', 'withdrawn'))
    WITH CHECK (is_budget_above(session, tool_use_id) AND status = 'withdrawn' AND names_approval(question, id, session, tool_use_id, asked_of));
-- The subqueries find the approvals that these policies show.
CREATE POLICY own ON asked_before USING (EXISTS (SELECT 1 FROM approvals a WHERE a.id = approval))
    WITH CHECK (EXISTS (SELECT 1 FROM approvals a WHERE a.id = approval AND is_own(a.session) AND may_address(a.session, addressee))
        -- The number of a feed entry that other hubs need for this addressee is not taken.
        AND EXISTS (SELECT 1 FROM feed f WHERE f.number = asked_before.number AND f.addressee = asked_before.addressee AND f.approval = asked_before.approval));
CREATE POLICY known ON budget_waits FOR SELECT USING (is_own(session) OR EXISTS (SELECT 1 FROM approvals a WHERE a.id = approval));
CREATE POLICY own ON budget_waits FOR INSERT WITH CHECK (is_own(session) AND EXISTS (SELECT 1 FROM approvals a WHERE a.id = approval));
CREATE POLICY ended ON budget_waits FOR DELETE USING (is_own(session) OR EXISTS (SELECT 1 FROM approvals a WHERE a.id = approval AND a.status <> 'pending'));
CREATE POLICY known ON budgets FOR SELECT USING ((SELECT own_host()) IS NOT NULL);
CREATE POLICY own ON budgets USING (is_own(session) OR is_above_own(session));

CREATE POLICY own ON feed FOR SELECT USING (is_own(session) OR starts_with(addressee, 'session:') AND is_own(substr(addressee, 9))
    OR is_budget_entry(session, kind, data));
CREATE POLICY written ON feed FOR INSERT WITH CHECK (may_address(session, addressee) AND may_notify(session, kind, approval, data));

-- All rules are known, because a version counts them; a runner creates and revokes those of its own sessions.
CREATE POLICY known ON rules FOR SELECT USING ((SELECT own_host()) IS NOT NULL);
CREATE POLICY own ON rules USING (is_own(session));
-- A template is known while a command uses it.
CREATE POLICY used ON templates FOR SELECT USING (EXISTS (SELECT 1 FROM commands c
    WHERE c.reply IS NULL AND c.method = 'claudecode.create' AND c.params::json ->> 'template' = name));

CREATE POLICY own ON audit FOR SELECT USING (is_own(session));
CREATE POLICY written ON audit FOR INSERT WITH CHECK (host = (SELECT own_host()));

-- Everything that a runner may do with tables; policies and triggers limit it to rows. Columns that number rows have their default.
CREATE OR REPLACE FUNCTION grant_to_runner(role TEXT) RETURNS VOID LANGUAGE plpgsql SET search_path = plexus, pg_temp AS $$
BEGIN
    -- What an earlier version has granted.
    EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA plexus, plexus_host FROM %I', $1);
    EXECUTE format('GRANT USAGE ON SCHEMA plexus, plexus_host TO %I', $1);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE ON plexus_host.sessions TO %I', $1);
    EXECUTE format('GRANT SELECT ON schema_version, writer, hosts, leases, commits, presence, commands, trees, tree_numbers, nodes, contents, node_contents, node_text,
        runs, turns, events, event_numbers, approvals, asked_before, calls, permit_streams, positions, budgets, budget_waits, rules, tokens, templates, feed,
        feed_head, audit, audit_tail, audit_head TO %I', $1);
    EXECUTE format('GRANT INSERT ON leases, commits, presence, trees, contents, node_contents, node_text, runs, turns, events, approvals, asked_before,
        permit_streams, positions, budgets, budget_waits, feed, audit TO %I', $1);
    EXECUTE format('GRANT INSERT (id, tree, parent, above, jump, depth, role, session, turn, uuid, preview, content, long, created_at) ON nodes TO %I', $1);
    EXECUTE format('GRANT INSERT (session, run, turn, tool_use_id, tool_name, digest, request_id, verdict, at, summary) ON calls TO %I', $1);
    EXECUTE format('GRANT INSERT (session, entry, expires_at, authority, made_by, created_at), UPDATE (revoked_at) ON rules TO %I', $1);
    EXECUTE format('GRANT UPDATE (number) ON writer TO %I', $1);
    EXECUTE format('GRANT UPDATE (last_commit, commits, state, labels, slots, schema_version) ON hosts TO %I', $1);
    EXECUTE format('GRANT UPDATE (until) ON leases TO %I', $1);
    EXECUTE format('GRANT UPDATE (seen_at) ON presence TO %I', $1);
    EXECUTE format('GRANT UPDATE (taken_in, reply) ON commands TO %I', $1);
    EXECUTE format('GRANT UPDATE (nodes) ON trees TO %I', $1);
    EXECUTE format('GRANT UPDATE (children, content, uuid, long, indexed) ON nodes TO %I', $1);
    EXECUTE format('GRANT UPDATE (uses) ON contents TO %I', $1);
    EXECUTE format('GRANT UPDATE (state, process, journal_offset, exit, ended_at, files, token_hash) ON runs TO %I', $1);
    EXECUTE format('GRANT UPDATE (status, run, prompt_uuid, progress, ended_at, events, head, cost_usd) ON turns TO %I', $1);
    EXECUTE format('GRANT UPDATE (number, asked_of, question, status, decision, resolved_at, delivered_at, settled_at) ON approvals TO %I', $1);
    EXECUTE format('GRANT UPDATE (verdict, settled_at) ON calls TO %I', $1);
    EXECUTE format('GRANT UPDATE (position) ON positions TO %I', $1);
    EXECUTE format('GRANT UPDATE (granted, own, below, used, told) ON budgets TO %I', $1);
    -- Old records are deleted by hubs with the role of the owner: no policy allows it here.
    EXECUTE format('GRANT DELETE ON commits, presence, commands, nodes, contents, node_contents, node_text, events, approvals, asked_before, calls,
        permit_streams, budget_waits TO %I', $1);
    EXECUTE format('GRANT EXECUTE ON FUNCTION join_host TO %I', $1);
END
$$;

-- Leaves the role only what its hub needs to find out that it was stopped.
CREATE OR REPLACE FUNCTION stop_runner(role TEXT) RETURNS VOID LANGUAGE plpgsql SET search_path = plexus, pg_temp AS $$
BEGIN
    UPDATE host_roles r SET stopped_at = (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT WHERE r.role = $1 AND stopped_at IS NULL;
    EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA plexus, plexus_host FROM %I', $1);
    EXECUTE format('GRANT SELECT ON schema_version, hosts TO %I', $1);
END
$$;
