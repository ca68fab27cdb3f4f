"""Re-embeddings killed at a fault point: the next process must end with correct vectors only."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from pgvector import HalfVector

from agentcore.failpoints import VARIABLE
from agentcore.maintenance.index_keeper import IndexKeeper
from agentcore.memory.api import Caller
from agentcore.memory.embeddings import Embedder, EmbedderOptions
from agentcore.memory.encoding import embedding_text
from agentcore.memory.manager import MemoryManager
from agentcore.memory.params.changes import UpdateParams
from agentcore.memory.params.memories import DeleteParams, ListParams, StoreBatchParams, StoreParams
from agentcore.memory.rows.vector_rows import known_models, model_in_force
from agentcore.providers.hashing import HashingEmbedder
from agentcore.runtime import Runtime
from benchmarks.corpus import sentence
from benchmarks.crash.nursery import Nursery
from benchmarks.crash.torn import KILLED, Place, Remains, until_let_go

SIZES = (64, 96)
# The first has a partition that is large enough for an index under `wrong.hurry`.
AGENTS: Mapping[str, int] = {"reembedded-large": 60, "reembedded-few": 7, "reembedded-one": 1}
PATIENCE_SECONDS = 30.0
# The pass at which to kill, for points that are passed once per batch or index.
PASSES: Mapping[str, int] = {"reembed.embedded": 4, "reembed.written": 4, "reembed.moved": 4, "reembed.built": 2}
ROWS = """
SELECT agent_id, memory_id, content, speaker, embedding, embedding_model, next_embedding,
       next_embedding_model, (to_jsonb(m) - ARRAY[
           'embedding', 'embedding_model', 'next_embedding', 'next_embedding_model'])::text AS rest
  FROM memories m ORDER BY agent_id, memory_id"""
INVALID = "SELECT count(*) AS count FROM pg_index WHERE NOT indisvalid"
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
Rows = Mapping[tuple[str, UUID], Mapping[str, Any]]


@dataclass(frozen=True)
class _Model:
    embedder: Embedder

    async def is_of(self, row: Mapping[str, Any], name: str) -> bool:
        """Checks whether the vector in this column is the model's embedding of the memory's text."""
        value = row[name]
        if value is None:
            return False
        [vector] = await self.embedder.embed([embedding_text(row["content"], row["speaker"])], "document")
        given = value.to_numpy() if isinstance(value, HalfVector) else np.asarray(value)
        return bool(np.array_equal(given.astype(np.float16), vector.astype(np.float16)))


class Reembedding:
    """Trials on a separate database, from one model to the other and back."""

    def __init__(
        self, runtime: Runtime, place: Place, nursery: Nursery, chance: random.Random, *, telling: str = "in a hurry"
    ) -> None:
        self._runtime = runtime
        self._place = place
        self._nursery = nursery
        self._chance = chance
        self._telling = telling
        self.kills = 0
        of_sizes = [HashingEmbedder(EmbedderOptions("", size, Path())) for size in SIZES]
        self._models = {each.model: _Model(each) for each in of_sizes}
        self._name = f"victim-{chance.randrange(10**9)}"

    async def fill(self) -> None:
        """Stores the memories that exist before the first trial."""
        for agent_id, count in AGENTS.items():
            await self._store(agent_id, count)
        async with self._runtime.database.owner_transaction() as connection:
            await connection.execute("ANALYZE memories")

    async def trial(self, point: str, *, which: int | None = None) -> Remains:
        """Kills a migration to the other model, changes memories, finishes in another process; judges after
        each."""
        [size] = {*SIZES} - {self._runtime.parts.policy.embedding_dimensions}
        before = await self._rows()
        which = which or self._chance.randint(1, PASSES.get(point, 1))
        environment = {**self._place.environment, VARIABLE: f"{point}:{which}"}
        self.kills += 1
        ended = await self._reembed(size, environment, self._telling)
        if ended == 0:
            raise RuntimeError(f"the run lived on at {point}:{which}")
        await until_let_go(self._place.database_url, self._name)
        found = await self._judge(before) + Remains(survived=int(ended != KILLED))
        await self._change()
        before = await self._rows()
        ended = await self._reembed(size, self._place.environment, "in a hurry")
        found += await self._judge(before) + Remains(unfinished=await self._unfinished(size))
        if ended == 0:
            await self._followed(size)
        return found + Remains(unfinished=int(ended != 0))

    async def _reembed(self, size: int, environment: Mapping[str, str], telling: str) -> int:
        url = f"{environment['DATABASE_URL']}&application_name={self._name}"
        arguments = ["reembed", "--model", "hashing", "--dimensions", str(size)]
        return await self._nursery.run(arguments, {**environment, "DATABASE_URL": url}, telling=telling)

    # --- the verdict ---------------------------------------------------------------------------------------

    async def _judge(self, before: Rows) -> Remains:
        """Judges that every memory exists once, unchanged, with a current vector of the right model."""
        now = await self._rows()
        known = await model_in_force(self._runtime.database)
        in_force = known.model if known else self._model_of(SIZES[0]).embedder.model
        altered = sum(now[each]["rest"] != row["rest"] for each, row in before.items() if each in now)
        models = [(row["embedding_model"], row["next_embedding_model"]) for row in now.values()]
        blind = [each for each in models if in_force not in each]
        wrong = 0
        for row in now.values():
            for name in ("embedding", "next_embedding"):
                model = row[f"{name}_model"]
                wrong += model is not None and not await self._models[model].is_of(row, name)
        return Remains(
            lost=len(before.keys() - now.keys()) + len(blind),
            doubled=len(now.keys() - before.keys()),
            altered=altered + wrong,
        )

    async def _unfinished(self, size: int) -> int:
        """Counts leftovers that a finished run would not have."""
        model = self._model_of(size).embedder.model
        rows = await self._rows()
        left = sum(row["embedding_model"] != model or row["next_embedding_model"] is not None for row in rows.values())
        stages = [(each.model, each.stage) for each in await known_models(self._runtime.database)]
        policy = self._runtime.parts.policy
        keeper = IndexKeeper(self._runtime.database, model, size, policy.indexes)
        states = await keeper.states()
        indexes = [each.model for state in states for each in state.indexes]
        half_made = sum(len(state.half_made) for state in states)
        async with self._runtime.database.owner_transaction() as connection:
            row = await (await connection.execute(INVALID)).fetchone() or {}
        unlike = (stages != [(model, "settled")], indexes != [model])
        return int(left + half_made + row["count"] + sum(unlike))

    def _model_of(self, size: int) -> _Model:
        [found] = [each for each in self._models.values() if each.embedder.dimensions == size]
        return found

    async def _rows(self) -> Rows:
        async with self._runtime.database.owner_transaction() as connection:
            rows = await (await connection.execute(ROWS)).fetchall()
        return {(row["agent_id"], row["memory_id"]): row for row in rows}

    # --- concurrent changes ---------------------------------------------------------------------------------

    async def _store(self, agent_id: str, count: int) -> None:
        items = [
            StoreParams(
                content=sentence(self._chance),
                speaker=self._chance.choice([None, "Ada"]),
                force=True,
                timestamp=FIRST + timedelta(minutes=number),
            )
            for number in range(count)
        ]
        await self._manager(agent_id).store_batch(StoreBatchParams(items=items))

    async def _change(self) -> None:
        """Stores, corrects and deletes with this process's current model."""
        for agent_id in AGENTS:
            await self._store(agent_id, 1)
            memory = self._manager(agent_id)
            records = (await memory.list(ListParams(limit=100))).memories
            corrected, deleted = self._chance.choice(records), self._chance.choice(records)
            updates = {"content": sentence(self._chance)}
            change = {"memory_id": corrected.memory_id, "updates": updates}
            await memory.update(UpdateParams.model_validate(change))
            await memory.delete(DeleteParams(memory_ids=[deleted.memory_id]))

    def _manager(self, agent_id: str) -> MemoryManager:
        return self._runtime.manager_for(Caller(agent_id))

    async def _followed(self, size: int) -> None:
        """Waits until this process uses the new model."""
        model = self._model_of(size).embedder.model
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self._runtime.parts.vector_model != model or self._runtime.parts.vectors_moving:
                await model_in_force(self._runtime.database)
