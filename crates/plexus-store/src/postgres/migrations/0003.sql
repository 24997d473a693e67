-- Hubs of two releases share a database while a team updates its machines. `oldest` is the lowest version of the schema whose hubs can use this one, and
-- `plexus` the version of Plexus that has migrated it.
ALTER TABLE schema_version ADD COLUMN oldest BIGINT NOT NULL DEFAULT 1;
ALTER TABLE schema_version ADD COLUMN plexus TEXT NOT NULL DEFAULT '';

-- The version of the schema that the hub of each host was written for.
ALTER TABLE hosts ADD COLUMN schema_version BIGINT NOT NULL DEFAULT 1;
