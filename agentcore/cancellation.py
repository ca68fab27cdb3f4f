"""What a cancelled task must still see through."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


async def to_its_end(work: Coroutine[Any, Any, Result]) -> Result:
    """The work's result; one who is cancelled leaves when it has ended: a thread in it would go on."""
    running = asyncio.create_task(work)
    try:
        return await asyncio.shield(running)
    finally:
        if not running.done():
            await asyncio.wait([running])
