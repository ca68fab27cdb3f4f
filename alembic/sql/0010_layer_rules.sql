-- TTL of the memory, for its renewal; null without TTL, or for memories older than this column.
ALTER TABLE memories ADD COLUMN ttl_seconds bigint;
-- Uses since the memory's TTL started, or was renewed.
ALTER TABLE memory_usage ADD COLUMN uses_in_life integer NOT NULL DEFAULT 0;

CREATE TABLE agent_settings (
    agent_id   text        NOT NULL PRIMARY KEY,
    layers     jsonb       NOT NULL DEFAULT '{}',
    updated_at timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE agent_settings ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_agent ON agent_settings TO agentcore_service
    USING (agent_id = current_setting('agentcore.agent_id', true))
    WITH CHECK (agent_id = current_setting('agentcore.agent_id', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON agent_settings TO agentcore_service;
