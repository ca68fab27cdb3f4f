-- Every copy in an archive: recorded before it is written, deleted after it. A tombstone names only the copy that a
-- restore reads.
CREATE TABLE archived_copies (
    agent_id   text NOT NULL,
    memory_id  uuid NOT NULL,
    archive_id uuid NOT NULL,
    user_id    text,
    PRIMARY KEY (agent_id, memory_id, archive_id)
);
CREATE INDEX archived_copies_by_archive ON archived_copies (archive_id);
ALTER TABLE archived_copies ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_agent ON archived_copies TO agentcore_service, agentcore_bound
    USING (agent_id = current_setting('agentcore.agent_id', true))
    WITH CHECK (agent_id = current_setting('agentcore.agent_id', true));
CREATE POLICY own_users ON archived_copies AS RESTRICTIVE TO agentcore_bound USING (of_bound_users(user_id, NULL));
GRANT SELECT, INSERT, UPDATE, DELETE ON archived_copies TO agentcore_service, agentcore_bound;
INSERT INTO archived_copies (agent_id, memory_id, archive_id, user_id)
SELECT agent_id, memory_id, archive_id, user_id FROM archived_memories WHERE archive_id IS NOT NULL;

DROP INDEX archived_memories_by_archive;
CREATE INDEX archived_memories_of_unknown_archive ON archived_memories (agent_id) WHERE archive_id IS NULL;

-- Every Redis in use, and the time until which it may contain working memory. Only for the owner.
CREATE TABLE redis_instances (
    redis_id     uuid        PRIMARY KEY,
    copies_until timestamptz NOT NULL
);
REVOKE ALL ON redis_instances FROM PUBLIC;
