CREATE TABLE late_episodes (
    agent_id  text NOT NULL,
    memory_id uuid NOT NULL,
    PRIMARY KEY (agent_id, memory_id),
    FOREIGN KEY (agent_id, memory_id) REFERENCES memories ON DELETE CASCADE
);

ALTER TABLE late_episodes ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_agent ON late_episodes TO agentcore_service
    USING (agent_id = current_setting('agentcore.agent_id', true))
    WITH CHECK (agent_id = current_setting('agentcore.agent_id', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON late_episodes TO agentcore_service;
