"""langgraph's AsyncPostgresStore with its default index (HNSW), in process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack

from driver import Options, Row, System, run
from langgraph.store.base import PutOp
from langgraph.store.postgres.aio import AsyncPostgresStore
from openai import AsyncOpenAI


class LangGraphStore(System):
    async def open(self, options: Options, stack: AsyncExitStack) -> None:
        client = AsyncOpenAI(base_url=options.embeddings, api_key="not checked by the endpoint")

        async def embed(texts: Sequence[str]) -> list[list[float]]:
            answer = await client.embeddings.create(model="same", input=list(texts), encoding_format="float")
            return [each.embedding for each in answer.data]

        opened = AsyncPostgresStore.from_conn_string(
            options.database,
            pool_config={"min_size": 1, "max_size": 12},
            index={"dims": options.dimensions, "embed": embed, "fields": ["text"]},
        )
        self.memory = await stack.enter_async_context(opened)
        await self.memory.setup()

    async def store(self, user: str, rows: Sequence[Row]) -> None:
        await self.memory.abatch([PutOp(("memories", user), row["id"], {"text": row["text"]}) for row in rows])

    async def search(self, user: str, query: Row, k: int) -> list[str]:
        found = await self.memory.asearch(("memories", user), query=query["text"], limit=k)
        return [each.key for each in found]


if __name__ == "__main__":
    run(LangGraphStore())
