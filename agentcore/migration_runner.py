"""Runs the migrations with Alembic; `agentcore.migration` imports it where one is due."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

__all__ = ["downgrade", "upgrade"]


def upgrade(connection: psycopg.Connection[Any], scripts: Path, revision: str) -> None:
    """Bring the schema up to `revision`, "head" for the newest. Closes the connection."""
    with _config(connection, scripts) as config:
        command.upgrade(config, revision)


def downgrade(connection: psycopg.Connection[Any], scripts: Path, revision: str) -> None:
    """Take the schema back to `revision`, "base" for none. Closes the connection."""
    with _config(connection, scripts) as config:
        command.downgrade(config, revision)


@contextmanager
def _config(connection: psycopg.Connection[Any], scripts: Path) -> Iterator[Config]:
    """Configures Alembic for the block and commits at its end. Raises the driver's errors."""
    engine = create_engine("postgresql+psycopg://", creator=lambda: connection, poolclass=NullPool)
    try:
        with engine.connect() as bound:
            config = Config()
            config.set_main_option("script_location", str(scripts).replace("%", "%%"))
            config.attributes["connection"] = bound
            yield config
            bound.commit()
    except DBAPIError as cause:
        if isinstance(cause.orig, psycopg.Error):
            raise cause.orig from cause
        raise
    finally:
        engine.dispose()
