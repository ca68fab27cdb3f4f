"""Faulty variants of operations, which the verdicts must detect; and faster settings for re-embedding."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from psycopg import sql

from agentcore.cli import maintenance as maintenance_commands
from agentcore.failpoints import failpoint
from agentcore.maintenance import index_keeper, reembedding
from agentcore.memory import archival
from agentcore.memory.forgetting import erasing, removing
from agentcore.memory.rows import vector_index
from agentcore.memory.rows.archive_rows import Tombstone

_NAME = sql.SQL(
    "UPDATE {} SET embedding_model = next_embedding_model WHERE next_embedding_model IS NOT NULL RETURNING memory_id"
)
_MOVE = sql.SQL(
    "UPDATE {} SET embedding = next_embedding, next_embedding = NULL, "
    "next_embedding_model = NULL WHERE next_embedding_model IS NOT NULL RETURNING memory_id"
)


class Nowhere:
    """An archive that keeps only the last object."""

    name = "nowhere"

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}

    async def write(self, objects: Mapping[str, bytes]) -> None:
        self._objects.update(objects)

    async def write_once(self, key: str, data: bytes) -> None:
        self._objects.setdefault(key, data)

    async def read(self, key: str) -> bytes:
        return self._objects[key]

    async def delete(self, keys: Collection[str]) -> None:
        for key in keys:
            self._objects.pop(key, None)

    async def keys(self, prefix: str) -> list[str]:
        return sorted(key for key in self._objects if key.startswith(prefix))

    async def check(self) -> None:
        return None


class ArchiveAfterDelete(removing.Pruning):
    """Deletes the row before it writes the copy."""

    async def _chunk(self, versions: Mapping[UUID, int]) -> list[UUID] | None:
        agent_id, archive = self._caller.agent_id, self._parts.archive
        assert archive is not None
        async with self._parts.storage.transaction(agent_id) as transaction:
            rows = await transaction.whole_rows(await transaction.lock_prunable(versions))
            copies = await archival.archive_memories(Nowhere(), agent_id, rows)
            place = await archival.archive_id(archive)
            await transaction.delete_versions({row["memory_id"]: row["version"] for row in rows})
            await transaction.archived.write_tombstones(
                Tombstone(
                    **{name: row[name] for name in removing._CHOSEN_BY},
                    reason=self._strategy,
                    object_key=copy.object_key,
                    sha256=copy.sha256,
                    size_bytes=copy.size_bytes,
                    archive_id=place,
                    users=row["provenance"].get("users", []),
                )
                for row, copy in zip(rows, copies, strict=True)
            )
        failpoint("prune.committed")
        await archival.archive_memories(archive, agent_id, rows)
        return [row["memory_id"] for row in rows]


class SourcesFirst(erasing.Erasing):
    """Erases a user's memories before those derived from them, which leaves their owner unknown."""

    async def _planned(self) -> erasing._Plan:
        plan = await super()._planned()
        return replace(plan, memory_ids=plan.memory_ids[::-1])


class NamedBeforeMoved(reembedding.Reembedding):
    """Marks a vector as the new model's before it is."""

    async def _move(self, partition: str, before: int, total: int) -> int:
        table = sql.Identifier(partition)
        if await self._database.owner_rows(_NAME.format(table)):
            failpoint("reembed.moved")
        return len(await self._database.owner_rows(_MOVE.format(table)))


def archive_after_delete() -> None:
    """Makes prunes in this process faulty."""
    removing.Pruning = ArchiveAfterDelete  # type: ignore[misc]


def sources_first() -> None:
    """Makes erasures faulty, one memory at a time."""
    erasing.ERASE_CHUNK = 1
    erasing.Erasing = SourcesFirst  # type: ignore[misc]


def hurry() -> None:
    """Uses small batches, indexes over few rows and short waits for other processes."""
    settings: Mapping[Any, Mapping[str, Any]] = {
        index_keeper: {"MIN_ROWS": 40, "QUERIES": 10},
        reembedding: {
            "MIN_ROWS": 40,
            "ROWS_A_BATCH": 20,
            "MOVED_A_BATCH": 20,
            "SETTLE_SECONDS": 0.2,
            "LIFE_SECONDS": 0.05,
            "PAUSE_SECONDS": 0.02,
        },
        vector_index: {"LEAST_ROWS_READ": 1},
    }
    for module, values in settings.items():
        for name, value in values.items():
            assert hasattr(module, name)
            setattr(module, name, value)


def named_before_moved() -> None:
    """Same with the fault. Without an index, which rejects vectors of another length."""
    hurry()
    setattr(reembedding, "MIN_ROWS", 1_000_000)  # noqa: B010 - it is index_keeper's
    setattr(maintenance_commands, "Reembedding", NamedBeforeMoved)  # noqa: B010 - it exports none


TELLINGS: Mapping[str, Callable[[], None]] = {
    "rightly": lambda: None,
    "archive after delete": archive_after_delete,
    "sources first": sources_first,
    "in a hurry": hurry,
    "named before moved": named_before_moved,
}
