-- Two forms of one thing, and the memory that said so; none where the caller set them. Each form also as the key of
-- its words, by which a query finds it: a digest keyed by agent, as those of single terms.
CREATE TABLE memory_aliases (
    agent_id   text        NOT NULL,
    alias_id   bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    alias      text        NOT NULL,
    means      text        NOT NULL,
    alias_key  bigint      NOT NULL,
    means_key  bigint      NOT NULL,
    memory_id  uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (agent_id, alias_id),
    FOREIGN KEY (agent_id, memory_id) REFERENCES memories ON DELETE CASCADE
);
CREATE UNIQUE INDEX memory_aliases_set ON memory_aliases (agent_id, alias_key) WHERE memory_id IS NULL;
CREATE INDEX memory_aliases_by_alias ON memory_aliases (agent_id, alias_key, memory_id);
CREATE INDEX memory_aliases_by_means ON memory_aliases (agent_id, means_key, memory_id);
CREATE INDEX memory_aliases_by_memory ON memory_aliases (agent_id, memory_id) WHERE memory_id IS NOT NULL;

ALTER TABLE memory_aliases ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_agent ON memory_aliases TO agentcore_service
    USING (agent_id = current_setting('agentcore.agent_id', true))
    WITH CHECK (agent_id = current_setting('agentcore.agent_id', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON memory_aliases TO agentcore_service;
