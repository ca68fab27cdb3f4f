"""Rights to read the partitions of memories by name.

A search of a large agent names its partition: a plan for all partitions is made again in every search.
"""

from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        DO $$
        DECLARE
            name text;
        BEGIN
            FOR name IN SELECT inhrelid::regclass::text FROM pg_inherits
                         WHERE inhparent = 'memories'::regclass
                           AND NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = inhrelid)
            LOOP
                EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', name);
                EXECUTE format('CREATE POLICY own_agent ON %s FOR SELECT TO agentcore_service '
                               'USING (agent_id = current_setting(''agentcore.agent_id'', true))', name);
                EXECUTE format('GRANT SELECT ON %s TO agentcore_service', name);
            END LOOP;
        END
        $$
        """
    )
