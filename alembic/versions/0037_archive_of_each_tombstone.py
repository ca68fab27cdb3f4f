"""Each tombstone records its archive; only development versions wrote none.

Without a record only the archive itself shows whether it contains the copy: such tombstones cannot be filled in here.
"""

from alembic import op

from agentcore.errors import StartupError

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

LEFT = "FROM archived_memories WHERE archive_id IS NULL"
REPAIR = (
    f"archived memories have no record of their archive: SELECT agent_id, memory_id, object_key {LEFT}. "
    "Run `agentcore archive verify --adopt` for each archive, with the agentcore that used this database before: it "
    "records the archive of every copy that it reads. If copies are lost, delete the tombstones that are left: "
    f"DELETE {LEFT}. Then run `agentcore migrate` again."
)


def upgrade() -> None:
    left = op.get_bind().exec_driver_sql(f"SELECT count(*) {LEFT}").scalar_one()
    if left:
        raise StartupError(f"{left} {REPAIR}")
    op.execute("ALTER TABLE archived_memories ALTER COLUMN archive_id SET NOT NULL")
    op.execute("DROP INDEX IF EXISTS archived_memories_of_unknown_archive")
