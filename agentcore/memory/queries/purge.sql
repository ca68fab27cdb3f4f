-- name: purge_relations
-- Returns tables with files, smallest first, and parents of partitions that have statistics. VACUUM FULL replaces the
-- file node of a table (relkind r): an unchanged one was not rewritten.
SELECT c.relname AS name, pg_relation_filenode(c.oid) AS filenode, pg_total_relation_size(c.oid) AS bytes
  FROM pg_class c
 WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'm', 'p')
   AND (c.relkind <> 'p' OR EXISTS (
           SELECT FROM pg_stats s WHERE s.schemaname = current_schema() AND s.tablename = c.relname))
 UNION ALL
SELECT 'pg_statistic', pg_relation_filenode('pg_catalog.pg_statistic'),
       pg_total_relation_size('pg_catalog.pg_statistic')
 ORDER BY bytes, name;

-- name: purge_start
-- Returns a transaction id: rows deleted before it are invisible to all later snapshots.
SELECT pg_current_xact_id()::xid::text AS xid, current_setting('server_version_num')::integer AS version,
       set_config('lock_timeout', %(lock_timeout)s, false);

-- name: purge_older_snapshots
-- Returns the holders of snapshots that may still see rows deleted before the transaction: VACUUM keeps those rows.
-- Without pg_read_all_stats, names of other roles' processes are null.
SELECT format('process %%s (%%s)', pid, coalesce(nullif(application_name, ''), backend_type, 'another role')) AS holder
  FROM pg_stat_activity
 WHERE pid <> pg_backend_pid()
   AND greatest(age(backend_xmin), age(backend_xid)) >= age(%(xid)s::text::xid)
   AND (datname = current_database() OR datname IS NULL)
 UNION ALL
SELECT format('prepared transaction %%s', gid) FROM pg_prepared_xacts WHERE database = current_database()
 UNION ALL
SELECT format('replication slot %%s', slot_name) FROM pg_replication_slots
 WHERE greatest(age(xmin), age(catalog_xmin)) >= age(%(xid)s::text::xid);

-- name: purge_rewrite
VACUUM (FULL) {table};

-- name: purge_clear_statistics
-- For a table that is empty now ANALYZE keeps the old most common values, which are texts. Requires PostgreSQL 18.
SELECT count(pg_clear_attribute_stats(s.schemaname, s.tablename, s.attname, s.inherited))
  FROM pg_stats s
 WHERE s.schemaname = current_schema()
   AND (s.tablename = %(table)s OR s.tablename IN (
           SELECT i.indexrelid::regclass::name FROM pg_index i WHERE i.indrelid = %(table)s::text::regclass));

-- name: purge_analyze
ANALYZE {table};

-- name: purge_keep_no_wal_files
-- By default PostgreSQL renames an old segment for reuse and keeps its pages.
ALTER SYSTEM SET wal_recycle = off;

-- name: purge_keep_wal_files_again
ALTER SYSTEM RESET wal_recycle;

-- name: purge_reload
SELECT pg_reload_conf();

-- name: purge_recycles_wal
SELECT current_setting('wal_recycle')::boolean AS recycles;

-- name: purge_wal_files
SELECT name FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$';

-- name: purge_next_wal_file
-- The message forces a switch: at the start of a segment pg_switch_wal() does nothing.
SELECT pg_logical_emit_message(false, 'agentcore', 'purge'), pg_switch_wal();

-- name: purge_checkpoint
CHECKPOINT;
