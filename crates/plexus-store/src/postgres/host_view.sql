-- `sessions` as a runner sees it: its own rows, and of other hosts' sessions only what it needs to find the sessions above its own ones. A runner searches the schema
-- `plexus_host` before `plexus`. This is executed when a host is added, and again after each migration.

CREATE SCHEMA IF NOT EXISTS plexus_host;

CREATE OR REPLACE VIEW plexus_host.sessions AS
    SELECT s.ordinal, s.id, s.name, s.answers_to,
        CASE WHEN s.host = o.host THEN s.config ELSE json_build_object(
            'working_dir', s.config::json -> 'working_dir', 'model', NULL, 'system_prompt', NULL,
            'loopback_enabled', s.config::json -> 'loopback_enabled', 'channel', s.config::json -> 'channel',
            'permission_mode', s.config::json -> 'permission_mode', 'policy', s.config::json -> 'policy',
            'env', json_build_object(), 'hub_tools', s.config::json -> 'hub_tools',
            'approve_scope', coalesce(s.config::json -> 'approve_scope', '[]'),
            'approval_timeout_secs', s.config::json -> 'approval_timeout_secs',
            'escalate_after_secs', s.config::json -> 'escalate_after_secs',
            'wake', coalesce(s.config::json -> 'wake', 'false'), 'metadata', NULL)::TEXT END AS config,
        s.tree, s.head, s.beginning, s.latest_turn, s.latest_run, s.created_at, s.deleted_at, s.cost_usd, s.woken_to,
        CASE WHEN s.host = o.host THEN s.title END AS title, s.archived_at, s.host
    FROM plexus.sessions s, (SELECT plexus.own_host() AS host OFFSET 0) o WHERE o.host IS NOT NULL;

-- Other hubs find sessions by their ids and names. The view above fails for all other runners if a configuration is no JSON.
CREATE OR REPLACE FUNCTION plexus.check_session(id TEXT, name TEXT, config TEXT) RETURNS VOID LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    IF id !~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' OR name !~ '^[A-Za-z0-9._-]{1,64}$' OR id IS NULL OR name IS NULL THEN
        RAISE EXCEPTION 'a session needs a UUID as its id, and a name of 1 to 64 letters, digits, `-`, `_` or `.`' USING ERRCODE = '22023';
    END IF;
    PERFORM config::JSON;
END
$$;

CREATE OR REPLACE FUNCTION plexus.insert_session() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER SET search_path = plexus, pg_temp AS $$
DECLARE
    above TEXT := parent_in(NEW.answers_to);
BEGIN
    IF own_host() IS NULL OR NEW.host IS DISTINCT FROM own_host() OR NOT is_own_tree(NEW.tree) OR NOT may_answer_to(NEW.answers_to)
        OR NOT are_in_tree(NEW.tree, ARRAY[NEW.head, NEW.beginning], NULL) THEN
        RAISE EXCEPTION 'this host cannot create this session: it is of another host, or below a session that has not asked for it' USING ERRCODE = '42501';
    END IF;
    PERFORM plexus.check_session(NEW.id, NEW.name, NEW.config);
    INSERT INTO sessions (id, name, answers_to, config, tree, head, beginning, created_at, host)
    VALUES (NEW.id, NEW.name, NEW.answers_to, NEW.config, NEW.tree, NEW.head, NEW.beginning, NEW.created_at, NEW.host);
    INSERT INTO host_ancestors
        WITH RECURSIVE chain (id, depth) AS (
            SELECT above, 1 WHERE above IS NOT NULL
            UNION ALL
            SELECT parent_in(s.answers_to), c.depth + 1 FROM chain c JOIN sessions s ON s.id = c.id WHERE c.depth < 64
        )
        SELECT NEW.host, c.id FROM chain c JOIN sessions s ON s.id = c.id WHERE s.host IS DISTINCT FROM NEW.host
        ON CONFLICT DO NOTHING;
    RETURN NEW;
END
$$;

CREATE OR REPLACE FUNCTION plexus.update_session() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER SET search_path = plexus, pg_temp AS $$
BEGIN
    IF OLD.host = own_host() THEN
        IF (NEW.ordinal, NEW.id, NEW.answers_to, NEW.tree, NEW.created_at, NEW.host)
            IS DISTINCT FROM (OLD.ordinal, OLD.id, OLD.answers_to, OLD.tree, OLD.created_at, OLD.host)
            OR NOT are_in_tree(NEW.tree, ARRAY[NEW.head, NEW.beginning], NULL) THEN
            RAISE EXCEPTION 'a session stays what and where it is' USING ERRCODE = '42501';
        END IF;
        PERFORM plexus.check_session(NEW.id, NEW.name, NEW.config);
        UPDATE sessions SET name = NEW.name, config = NEW.config, head = NEW.head, beginning = NEW.beginning, latest_turn = NEW.latest_turn,
            latest_run = NEW.latest_run, deleted_at = NEW.deleted_at, cost_usd = NEW.cost_usd, woken_to = NEW.woken_to, title = NEW.title,
            archived_at = NEW.archived_at
        WHERE id = OLD.id;
    ELSIF is_above_own(OLD.id) AND NEW.archived_at IS NULL AND to_jsonb(NEW) - 'archived_at' = to_jsonb(OLD) - 'archived_at' THEN
        -- It is asked for more budget.
        UPDATE sessions SET archived_at = NULL WHERE id = OLD.id;
    ELSE
        RAISE EXCEPTION 'this host cannot change a session of another host' USING ERRCODE = '42501';
    END IF;
    RETURN NEW;
END
$$;

-- A runner could give these functions rows of its choice with a trigger on a temporary table of its own.
REVOKE EXECUTE ON FUNCTION plexus.insert_session(), plexus.update_session() FROM PUBLIC;
CREATE OR REPLACE TRIGGER session_inserted INSTEAD OF INSERT ON plexus_host.sessions FOR EACH ROW EXECUTE FUNCTION plexus.insert_session();
CREATE OR REPLACE TRIGGER session_updated INSTEAD OF UPDATE ON plexus_host.sessions FOR EACH ROW EXECUTE FUNCTION plexus.update_session();

SELECT plexus.grant_to_runner(role) FROM plexus.host_roles WHERE stopped_at IS NULL;
