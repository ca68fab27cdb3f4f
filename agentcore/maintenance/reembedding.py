"""Embeds all memories again with another model, while the service runs.

`filling` stores new vectors in a second column, indexes them and switches searches; `moving` moves them to the
main column; then `settled`. Every step commits its state: after a crash, the next run resumes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from uuid import UUID

from pgvector import HalfVector
from psycopg import sql

from agentcore.database import Connection, Database, Row, query, shaped_query
from agentcore.errors import Conflict
from agentcore.failpoints import failpoint
from agentcore.maintenance import index_keeper
from agentcore.maintenance.index_keeper import (
    MAX_INDEXED_DIMENSIONS,
    MIN_ROWS,
    IndexKeeper,
    PartitionState,
    indexes_of,
    is_of_passages,
    rebuild_plan,
)
from agentcore.memory.embeddings import Embedder, refused_by
from agentcore.memory.encoding import embedding_text
from agentcore.memory.rows.vector_index import IndexPolicy, VectorIndex, default_width, max_width, shape_for
from agentcore.memory.rows.vector_rows import LIFE_SECONDS, MOVING, KnownModel, known_models
from agentcore.memory.writing.document_vectors import embed_each

LOCK_KEY = 5_520_981_347_702_114_406
ROWS_A_BATCH, MOVED_A_BATCH = 500, 500
SAMPLED_TEXTS = 64
# Passes before the switch, each over the memories stored during the one before, until one embeds at most TAIL_ROWS.
PASSES, TAIL_ROWS = 10, 100
# After the switch, until every process has loaded the new model and ended earlier requests.
SETTLE_SECONDS = 15.0
PAUSE_SECONDS = 0.5
_START = ("", UUID(int=0))

# Called with a step, the number done, and the total.
Tell = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Extent:
    """Remaining work: memories and passages to embed, vectors to migrate, and memories in total."""

    to_embed: int
    passages_to_embed: int
    to_move: int
    memories: int


class Reembedding:
    def __init__(
        self,
        database: Database,
        embedder: Embedder,
        target: KnownModel,
        policy: IndexPolicy,
        *,
        exact_search_limit: int = 1_000,
        tell: Tell = lambda step, done, total: None,
    ) -> None:
        self._database = database
        self._embedder = embedder
        self._target = target
        self._tell = tell
        self._policy = policy
        self._keeper = IndexKeeper(
            database,
            target.model,
            target.dimensions,
            policy,
            exact_search_limit=exact_search_limit,
            tell=lambda partition, step: tell(f"{partition}: {step}", 0, 0),
        )
        # Embedded by this model, or rejected by it: in both cases complete.
        self._made = [target.model, refused_by(target.model)]

    async def extent(self) -> Extent:
        statement = shaped_query("count_to_reembed", missing=query("missing_passage"))
        rows = await self._database.owner_rows(statement, done=self._made)
        return Extent(**rows[0])

    async def seconds_a_memory(self) -> float:
        """Measures a sample of stored memories."""
        rows = await self._database.owner_rows(query("some_to_reembed"), limit=SAMPLED_TEXTS)
        if not rows:
            return 0.0
        began = time.monotonic()
        await embed_each(self._embedder, _texts(rows), "document")
        return (time.monotonic() - began) / len(rows)

    async def run(self) -> None:
        """Raises Conflict while another process embeds or another model is migrating, and DependencyUnavailable."""
        async with self._alone():
            stage = await self._begin()
            failpoint("reembed.begun")
            if stage == "filling":
                await self._fill_before_switch()
                failpoint("reembed.filled")
                await self._index_beside()
                failpoint("reembed.indexed")
                await self._switch()
                failpoint("reembed.switched")
            await self._move_in(stage)
            failpoint("reembed.in_place")
            await self._index_in_place()
            failpoint("reembed.kept")
            await self._database.owner_rows(query("set_stage"), model=self._target.model, stage="settled")
            failpoint("reembed.settled")
            await self._drop_indexes_beside()

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        async with self._database.owner_autocommit() as connection:
            cursor = await connection.execute(query("take_reembedding_lock"), {"key": LOCK_KEY})
            row = await cursor.fetchone()
            if not row or not row["taken"]:
                raise Conflict("another process is already re-embedding the memories")
            yield
            await connection.execute(query("release_reembedding_lock"), {"key": LOCK_KEY})

    async def _begin(self) -> str:
        known = {each.model: each for each in await known_models(self._database)}
        moving = next((each.model for each in known.values() if each.moving), None)
        if moving not in (None, self._target.model):
            raise Conflict(
                f"the vectors of {moving} are still being moved: finish that first, "
                f"with: agentcore reembed {known[moving].arguments()}"
            )
        if self._target.model in known and known[self._target.model].stage != "filling":
            return known[self._target.model].stage
        target = self._target
        async with self._database.owner_transaction() as connection:
            await connection.execute(query("forget_other_fillings"), {"model": target.model})
            values = {"model": target.model, "provider": target.provider, "model_name": target.model_name}
            await connection.execute(query("begin_filling"), {**values, "dimensions": target.dimensions})
        return "filling"

    async def _fill_before_switch(self) -> None:
        for _ in range(PASSES):
            if await self._fill_pass() <= TAIL_ROWS:
                break
        for state in await self._keeper.states():
            if state.rows:
                await self._vacuum(state.partition)

    async def _fill_pass(self) -> int:
        extent = await self.extent()
        done, total = extent.memories - extent.to_embed, extent.memories
        made = 0
        if extent.to_embed:
            for state in await self._memory_states():
                place = _START
                statement = shaped_query("set_next_embeddings", partition=sql.Identifier(state.partition))
                while rows := await self._next_memories(state.partition, place):
                    await self._write(statement, rows)
                    place = (rows[-1]["agent_id"], rows[-1]["memory_id"])
                    made += len(rows)
                    self._tell("embedding", min(done + made, total), total)
        if extent.passages_to_embed:
            made += await self._fill_passages(extent.passages_to_embed)
        return made

    async def _memory_states(self) -> list[PartitionState]:
        return [each for each in await self._keeper.states() if not is_of_passages(each.partition)]

    async def _passage_states(self) -> list[PartitionState]:
        return [each for each in await self._keeper.states() if is_of_passages(each.partition)]

    async def _fill_passages(self, total: int) -> int:
        """Adds rows: searches read the rows of one model only."""
        made = 0
        for state in await self._passage_states():
            statement = shaped_query(
                "passages_to_reembed", partition=sql.Identifier(state.partition), missing=query("missing_passage")
            )
            place: tuple[str, UUID, int] = (*_START, 0)
            while rows := await self._database.owner_rows(
                statement,
                after_agent=place[0],
                after_id=place[1],
                after_passage=place[2],
                done=self._made,
                limit=ROWS_A_BATCH,
            ):
                place = rows[-1]["agent_id"], rows[-1]["memory_id"], rows[-1]["passage"]
                await self._write(query("add_passages"), rows)
                made += len(rows)
                self._tell("embedding passages", min(made, total), total)
        return made

    async def _next_memories(self, partition: str, place: tuple[str, UUID]) -> list[Any]:
        statement = shaped_query("memories_to_reembed", partition=sql.Identifier(partition))
        return await self._database.owner_rows(
            statement, after_agent=place[0], after_id=place[1], done=self._made, limit=ROWS_A_BATCH
        )

    async def _write(self, statement: sql.SQL | sql.Composed, rows: Sequence[Row]) -> None:
        """Embeds these memories or passages; executes the statement for each agent: Citus locks rows of one only."""
        vectors = await embed_each(self._embedder, _texts(rows), "document")
        failpoint("reembed.embedded")
        model, refused = self._made
        for agent_id, group in groupby(zip(rows, vectors, strict=True), lambda pair: pair[0]["agent_id"]):
            pairs = list(group)
            await self._database.owner_rows(
                statement,
                agent_id=agent_id,
                memory_ids=[row["memory_id"] for row, _ in pairs],
                passages=[row.get("passage") for row, _ in pairs],
                versions=[row["version"] for row, _ in pairs],
                vectors=[None if vector is None else HalfVector(vector) for _, vector in pairs],
                models=[refused if vector is None else model for _, vector in pairs],
            )
        failpoint("reembed.written")

    async def _index_beside(self) -> None:
        if self._target.dimensions > MAX_INDEXED_DIMENSIONS:
            return
        async with self._indexing() as connection:
            for state in await self._keeper.states():
                await index_keeper.drop(connection, state.half_made)
                if state.rows >= MIN_ROWS and not self._beside(state):
                    self._tell(f"{state.partition}: building an index over the new vectors", 0, 0)
                    index = self._index_for(state)
                    moving = None if is_of_passages(state.partition) else self._target.model
                    await index_keeper.build(connection, state.partition, index, self._target.dimensions, moving=moving)

    def _index_for(self, state: PartitionState) -> VectorIndex:
        rows = state.rows
        # Each moved row is inserted into this index again, which is slow in HNSW. Passages are not moved.
        kind = self._policy.kind if is_of_passages(state.partition) else "ivfflat"
        shape = shape_for(kind, rows)
        # Not measured yet: it uses the width of the old model's index, plus a quarter.
        measured = [each.reach / each.shape for each in state.indexes if each.kind == kind]
        reaches = [default_width(kind, shape, rows), *(int(1.25 * share * shape) + 1 for share in measured)]
        model = self._beside_model(state)
        return VectorIndex(
            name=index_keeper.new_name(state.partition, model),
            kind=kind,
            model=model,
            shape=shape,
            built_rows=rows,
            built_at=time.time(),
            reach=min(max_width(kind, shape), max(reaches)),
        )

    def _beside(self, state: PartitionState) -> list[VectorIndex]:
        return indexes_of(state, self._beside_model(state))

    def _beside_model(self, state: PartitionState) -> str:
        passages = is_of_passages(state.partition)
        return self._target.model if passages else MOVING.index_model(self._target.model)

    async def _switch(self) -> None:
        await self._fill_pass()
        async with self._database.owner_transaction() as connection:
            model = {"model": self._target.model}
            await connection.execute(query("forget_model_in_force"), model)
            await connection.execute(query("set_stage"), {**model, "stage": "moving"})
            failpoint("reembed.switching")
        self._tell("switched", 0, 0)

    async def _move_in(self, stage: str) -> None:
        if stage != "settled":
            await self._let_processes_follow()
        total = (await self.extent()).to_move
        moved = 0
        while True:
            await self._fill_pass()
            for state in await self._memory_states():
                moved += await self._move(state.partition, moved, total)
            extent = await self.extent()
            if not (extent.to_embed or extent.passages_to_embed or extent.to_move):
                break
            await asyncio.sleep(PAUSE_SECONDS)
        for state in await self._passage_states():
            statement = shaped_query("delete_old_passages", partition=sql.Identifier(state.partition))
            await self._database.owner_rows(statement, done=self._made)
            await self._vacuum(state.partition)

    async def _let_processes_follow(self) -> None:
        """Sleeps until running processes use the new model; embeds what they stored with the old one."""
        [known] = [each for each in await known_models(self._database) if each.moving]
        ends = time.monotonic() + SETTLE_SECONDS - known.seconds
        while (began := time.monotonic()) < ends:
            await self._fill_pass()
            left = max(0.0, ends - time.monotonic())
            self._tell("waiting for running processes", int(SETTLE_SECONDS - left), int(SETTLE_SECONDS))
            # Sleeps as long as the pass took: half of one core at most.
            await asyncio.sleep(min(max(PAUSE_SECONDS, time.monotonic() - began), left))

    async def _move(self, partition: str, before: int, total: int) -> int:
        named = {"partition": sql.Identifier(partition)}
        next_rows, move = shaped_query("next_embeddings", **named), shaped_query("move_next_embeddings", **named)
        place, moved = _START, 0
        while rows := await self._database.owner_rows(
            next_rows, after_agent=place[0], after_id=place[1], limit=MOVED_A_BATCH
        ):
            for agent_id, group in groupby(rows, lambda row: row["agent_id"]):
                done = await self._database.owner_rows(
                    move,
                    agent_id=agent_id,
                    memory_ids=[row["memory_id"] for row in group],
                    done=self._made,
                    model=self._target.model,
                )
                moved += len(done)
            place = (rows[-1]["agent_id"], rows[-1]["memory_id"])
            failpoint("reembed.moved")
            self._tell("moving", min(before + moved, total), total)
        if moved:
            await self._vacuum(partition)
        return moved

    async def _index_in_place(self) -> None:
        async with self._indexing() as connection:
            for state in await self._keeper.states():
                kept = {*self._beside(state), *indexes_of(state, self._target.model)}
                gone = [each.name for each in state.indexes if each not in kept]
                await index_keeper.drop(connection, [*state.half_made, *gone])
                large = state.rows >= MIN_ROWS and self._target.dimensions <= MAX_INDEXED_DIMENSIONS
                if large and not indexes_of(state, self._target.model):
                    await self._keeper.carry_out(connection, state, rebuild_plan(state, self._target.model))

    async def _drop_indexes_beside(self) -> None:
        states = [state for state in await self._memory_states() if self._beside(state)]
        if not states:
            return
        await asyncio.sleep(LIFE_SECONDS)
        async with self._indexing() as connection:
            for state in states:
                await index_keeper.drop(connection, [each.name for each in self._beside(state)])

    @asynccontextmanager
    async def _indexing(self) -> AsyncIterator[Connection]:
        while True:
            async with self._keeper.alone() as connection:
                if connection is not None:
                    yield connection
                    return
            await asyncio.sleep(PAUSE_SECONDS)

    async def _vacuum(self, partition: str) -> None:
        async with self._database.owner_autocommit() as connection:
            await connection.execute(shaped_query("vacuum_partition", partition=sql.Identifier(partition)))


def _texts(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [embedding_text(row["content"], row["speaker"]) for row in rows]
