"""Runs migrations on the connection that `agentcore.migration` passes, or of the command `alembic` on DATABASE_URL."""

from contextlib import ExitStack
from typing import Any

from alembic import context

from agentcore import migration, migration_runner
from agentcore.config import load_settings
from agentcore.runtime import database_url_of


def refresh(*, ctx: Any, step: Any, **_: Any) -> None:
    """Executes functions.sql in the transaction of the newest revision."""
    if step.is_upgrade and step.up_revision_id == migration.head_revision():
        migration.replace_functions(ctx.connection.connection.driver_connection)


with ExitStack() as stack:
    connection = context.config.attributes.get("connection")
    if connection is None:
        locked = stack.enter_context(migration.locked(database_url_of(load_settings())))
        connection = stack.enter_context(migration_runner.bound(locked))
    context.configure(connection=connection, transaction_per_migration=True, on_version_apply=refresh)
    with context.begin_transaction():
        context.run_migrations()
