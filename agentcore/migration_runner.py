"""Runs migrations with Alembic, on the connection of `agentcore.migration`, which imports it when needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from alembic import command, op
from alembic.config import Config
from sqlalchemy import Connection as SqlConnection
from sqlalchemy import create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

__all__ = ["bound", "run_schema", "upgrade"]


def run_schema(sql: bytes) -> None:
    """Executes SQL within the running migration."""
    op.get_bind().connection.cursor().execute(sql)


def upgrade(connection: psycopg.Connection[Any], scripts: Path, revision: str) -> None:
    """Upgrades the schema to `revision` ("head": the newest) and closes the connection. Raises the driver's errors."""
    with bound(connection) as made:
        config = Config()
        config.set_main_option("script_location", str(scripts).replace("%", "%%"))
        config.attributes["connection"] = made
        command.upgrade(config, revision)


@contextmanager
def bound(connection: psycopg.Connection[Any]) -> Iterator[SqlConnection]:
    """Returns the connection for SQLAlchemy, commits, and closes it. Raises the driver's errors."""
    engine = create_engine("postgresql+psycopg://", creator=lambda: connection, poolclass=NullPool)
    try:
        with engine.connect() as made:
            yield made
            made.commit()
    except DBAPIError as cause:
        if isinstance(cause.orig, psycopg.Error):
            raise cause.orig from cause
        raise
    finally:
        engine.dispose()
