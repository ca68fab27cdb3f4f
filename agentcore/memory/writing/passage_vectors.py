"""Embeds the later passages of long memories, in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from agentcore.failpoints import failpoint
from agentcore.memory.api import Caller
from agentcore.memory.embeddings import refused_by
from agentcore.memory.encoding import embedding_text
from agentcore.memory.language.passages import Passage, passages
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.derived_rows import EmbeddedPassage
from agentcore.memory.rows.memory_rows import Row
from agentcore.memory.writing.document_vectors import embed_each

MEMORIES = 8
# Of one turn. In between other agents' jobs run.
MOST_PASSAGES = 128
# A query or a store that is embedded meanwhile waits for at most so many.
BATCH = 8


class EmbeddingPassages:
    """One turn of one agent."""

    def __init__(self, parts: MemoryParts, caller: Caller) -> None:
        self._parts = parts
        self._caller = caller

    async def run(self) -> bool:
        """Embeds passages of the longest pending memories; returns whether more may be pending.

        Each batch is committed: a later turn continues behind it. Raises DependencyUnavailable.
        """
        embedder = self._parts.embedder
        if embedder is None:
            return False
        refused = refused_by(embedder.model)
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            rows = await transaction.passages.pending([embedder.model, refused], MEMORIES)
        missing = await asyncio.to_thread(_missing, rows)
        now, later = missing[:MOST_PASSAGES], missing[MOST_PASSAGES:]
        for start in range(0, len(now), BATCH):
            batch = now[start : start + BATCH]
            vectors = await embed_each(embedder, [_text(row, each) for row, _, each in batch], "document")
            failpoint("passages.embedded")
            made = [
                EmbeddedPassage(
                    row["memory_id"],
                    row["version"],
                    number,
                    each,
                    refused if vector is None else embedder.model,
                    vector,
                )
                for (row, number, each), vector in zip(batch, vectors, strict=True)
            ]
            async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
                await transaction.passages.add(made)
            failpoint("passages.written")
        left = {row["memory_id"] for row, _, _ in later}
        await self._done(row for row in rows if row["memory_id"] not in left)
        return bool(left) or len(rows) == MEMORIES

    async def _done(self, rows: Iterable[Row]) -> None:
        versions = {row["memory_id"]: row["version"] for row in rows}
        if versions:
            async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
                await transaction.llm.claim("passages", versions)


def _missing(rows: Sequence[Row]) -> list[tuple[Row, int, Passage]]:
    embedded = [{*row["embedded"]} for row in rows]
    return [
        (row, number, each)
        for row, done in zip(rows, embedded, strict=True)
        for number, each in enumerate(passages(row["content"]))
        if number > 0 and number not in done
    ]


def _text(row: Row, passage: Passage) -> str:
    return embedding_text(row["content"][passage.start : passage.end], row["speaker"])
