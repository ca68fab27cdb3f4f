CREATE TABLE memory_subjects (
    agent_id    text   NOT NULL,
    subject_key bigint NOT NULL,
    memory_id   uuid   NOT NULL,
    PRIMARY KEY (agent_id, subject_key, memory_id),
    FOREIGN KEY (agent_id, memory_id) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX memory_subjects_by_memory ON memory_subjects (agent_id, memory_id);

ALTER TABLE memory_subjects ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_agent ON memory_subjects TO agentcore_service
    USING (agent_id = current_setting('agentcore.agent_id', true))
    WITH CHECK (agent_id = current_setting('agentcore.agent_id', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON memory_subjects TO agentcore_service;
