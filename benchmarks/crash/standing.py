"""A separate home for kills, and an in-process service on its parts."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from agentcore import migration
from agentcore.embedded import EmbeddedParts, Home
from agentcore.runtime import Runtime, open_runtime
from benchmarks.crash.torn import Place
from benchmarks.service import SECRET, bench_settings


@asynccontextmanager
async def standing() -> AsyncIterator[tuple[Runtime, Place]]:
    """Starts parts on a new home, deleted at the end, and an in-process service on them."""
    root = Path(tempfile.mkdtemp(prefix="agentcore-torn-"))
    # If we are root, the system user of the parts needs access.
    await asyncio.to_thread(root.chmod, 0o755)
    parts = EmbeddedParts(Home(root / "home"), postgres=True, redis=True, log=lambda line: None)
    try:
        urls = await parts.start()
        database_url, redis_url = urls.database_url or "", urls.redis_url or ""
        await asyncio.to_thread(migration.upgrade, database_url)
        settings = bench_settings(
            root / "home",
            database_url=database_url,
            redis_url=redis_url,
            embedding_model="hashing",
            embedding_dimensions=64,
            maintenance_in_server=False,
        )
        environment = {
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "AGENTCORE_HOME": str(root / "home"),
            "EMBEDDING_MODEL": "hashing",
            "EMBEDDING_DIMENSIONS": "64",
            "JWT_SECRET_KEY": SECRET,
            "MAINTENANCE_IN_SERVER": "false",
            "LOG_LEVEL": "ERROR",
        }
        async with open_runtime(settings, log=lambda line: None) as runtime:
            assert runtime.parts.archive is not None
            yield runtime, Place(runtime.parts, runtime.parts.archive, database_url, environment)
    finally:
        await parts.stop()
        shutil.rmtree(root, ignore_errors=True)
