"""mem0ai with its pgvector store, in process; `infer=False`, so no language model is called."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AsyncExitStack

from driver import Options, Row, System, run
from mem0 import AsyncMemory


class Mem0(System):
    async def open(self, options: Options, stack: AsyncExitStack) -> None:
        key = "not checked by the endpoint"
        os.environ["OPENAI_API_KEY"] = key
        embedder = {
            "model": "same",
            "openai_base_url": options.embeddings,
            "api_key": key,
            "embedding_dims": options.dimensions,
        }
        vectors = {
            "connection_string": options.database,
            "collection_name": "memories",
            "embedding_model_dims": options.dimensions,
            "hnsw": True,
            "maxconn": 12,
        }
        self.memory = AsyncMemory.from_config(
            {
                "vector_store": {"provider": "pgvector", "config": vectors},
                "embedder": {"provider": "openai", "config": embedder},
                "history_db_path": options.file("mem0_history.db"),
            }
        )

    async def store(self, user: str, rows: Sequence[Row]) -> None:
        for row in rows:
            await self.memory.add(row["text"], user_id=user, metadata={"message": row["id"]}, infer=False)

    async def search(self, user: str, query: Row, k: int) -> list[str]:
        found = await self.memory.search(query["text"], filters={"user_id": user}, top_k=k)
        return [each["metadata"]["message"] for each in found["results"]]


if __name__ == "__main__":
    run(Mem0())
