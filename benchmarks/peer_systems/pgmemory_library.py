"""pgmemory: words, vectors and recency in one statement, in process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace

from driver import Options, Row, System, run, time_of
from pgmemory import Memory, MemoryStore, OpenAIEmbeddingProvider, SearchQuery

APP = "peers"


class PgMemory(System):
    async def open(self, options: Options, stack: AsyncExitStack) -> None:
        embedder = OpenAIEmbeddingProvider(
            "same", dimensionality=options.dimensions, api_key="not checked", base_url=options.embeddings
        )
        opened = MemoryStore(options.database_for("postgresql+asyncpg"), embedder, pool_size=12)
        self.memory = await stack.enter_async_context(opened)

    async def store(self, user: str, rows: Sequence[Row]) -> None:
        blank = Memory(app_name=APP, user_id=user)
        await self.memory.add_many(
            [
                replace(
                    blank,
                    text=row["text"],
                    created_at=time_of(row),
                    valid_from=time_of(row),
                    source_event_id=row["id"],
                    source_event_timestamp=time_of(row),
                )
                for row in rows
            ]
        )

    async def search(self, user: str, query: Row, k: int) -> list[str]:
        found = await self.memory.search(SearchQuery(app_name=APP, user_id=user, text=query["text"], top_k=k))
        return [each.memory.source_event_id for each in found]


if __name__ == "__main__":
    run(PgMemory())
