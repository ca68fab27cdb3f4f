"""Query plans: certain statements must use an index, also under row security."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from pgvector import HalfVector
from psycopg import sql
from psycopg.types.json import Jsonb

from agentcore.database import KEY_LOOKUP, QUERIES, query, shaped_query, with_numbered_parameters
from agentcore.memory.lexical import term_keys
from agentcore.memory.models import MemoryType
from agentcore.memory.params.memories import PruneParams, StoreBatchParams, StoreParams
from agentcore.memory.rows.derived_rows import QUEUE_HEAD_ROWS
from agentcore.memory.rows.vector_rows import SETTLED
from agentcore.memory.summaries.summarizing import period_of
from agentcore.memory.vector_store import INDEXED_FILTERS
from agentcore.runtime import open_runtime
from tests.fixtures.databases import OwnDatabase, copied_database, migrated_database
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.services import Services

READER = "reader"


@pytest.fixture(scope="module")
def readings(services: Services) -> Iterator[OwnDatabase]:
    """A database with 4,000 memories of a single agent, analyzed."""

    async def fill(url: str) -> None:
        async with open_runtime(settings_for(services, database_url=url)) as runtime:
            agent = Agent(runtime, READER)
            for batch in range(4):
                items = [
                    StoreParams(
                        content=f"Reading {batch * 1000 + n} of sensor {n % 13} was {n * 31 % 977}.",
                        task_id=f"task-{n % 100}",
                    )
                    for n in range(1_000)
                ]
                await agent.memory.store_batch(StoreBatchParams(items=items))
            async with runtime.database.owner_transaction() as connection:
                await connection.execute("ANALYZE memories")

    with migrated_database(services) as own:
        with asyncio.Runner() as runner:
            runner.run(fill(own.url))
        yield own


@pytest.fixture
async def filled(services: Services, readings: OwnDatabase) -> AsyncIterator[Agent]:
    """The agent, in a copy of that database."""
    with copied_database(services, readings) as own:
        async with open_runtime(settings_for(services, database_url=own.url)) as runtime:
            yield Agent(runtime, READER)


async def plan(agent: Agent, statement: sql.Composable, **values: Any) -> str:
    async with agent.runtime.database.transaction(agent.agent_id) as connection:
        cursor = await connection.execute(sql.SQL("EXPLAIN ") + statement, {"agent_id": agent.agent_id, **values})
        return "\n".join(str(row["QUERY PLAN"]) for row in await cursor.fetchall())


async def test_a_search_of_users_reads_their_memories(filled: Agent) -> None:
    items = [StoreParams(content=f"Note {n} of a user.", user_id=f"user-{n % 50}") for n in range(500)]
    await filled.memory.store_batch(StoreBatchParams(items=items))
    async with filled.runtime.database.owner_transaction() as connection:
        await connection.execute("ANALYZE memories")
    exact = shaped_query("vector_retriever_exact", vector=sql.SQL("%(vector)s::halfvec"), **SETTLED.shape)
    nothing = dict.fromkeys(INDEXED_FILTERS)
    for users in ("user-7", ["user-7", "user-8"]):
        values = {**passage_values(filled), "filter": Jsonb({"current": True, "user_id": users})}
        for statement in (exact, query("selected_up_to")):
            text = await plan(filled, statement, **values, **{**nothing, "user": Jsonb(users)})
            assert "user_id_timestamp_idx" in text
            assert "Seq Scan" not in text


@pytest.mark.shows("issue2-7-words")
async def test_words_go_through_the_gin_index_inside_the_owners_function(filled: Agent) -> None:
    [key] = term_keys(filled.agent_id, "977")[:1] or [0]
    async with filled.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(
            "EXPLAIN SELECT memory_id FROM memories m WHERE m.agent_id = %s "
            "AND m.term_keys @> ARRAY[%s::bigint] AND memory_matches(m, '{}')",
            (filled.agent_id, key),
        )
        text = "\n".join(str(row["QUERY PLAN"]) for row in await cursor.fetchall())
    assert "term_keys_idx" in text
    assert text.count("memories_p") <= 3


@pytest.mark.shows("issue5-3-facts-follow")
async def test_what_was_read_from_a_memory_is_found_by_it(filled: Agent) -> None:
    """Every update, supersession and deletion runs it, and most memories have no facts."""
    one, two, successor = UUID(int=1), UUID(int=2), UUID(int=3)
    asked: dict[str, dict[str, Any]] = {
        "lock_facts_of": {"memory_ids": [one, two], "successors": [None, successor]},
        "unmodified_facts": {"memory_id": one},
        "facts_superseded_with": {"memory_id": one, "successor": successor},
        "lock_in_order": {"memory_ids": [one, two], "changing": [one], "unchanged": [two], "kept": []},
        "delete_memories": {"memory_ids": [one, two]},
        "existing_with_changing": {"memory_ids": [one, two], "changing": [one]},
    }
    for name, values in asked.items():
        text = await plan(filled, shaped_query(name, going=query("going")), **values)
        assert "parent_memory_id" in text.split("Index Cond", 1)[1], name
        assert "Seq Scan on memories" not in text, name


async def test_a_filter_by_task_goes_through_its_index(filled: Agent) -> None:
    text = await plan(filled, query("count_memories"), filter=Jsonb({"task_id": "task-7"}))
    assert "task_id" in text.split("Index Cond")[1]
    assert "Seq Scan" not in text


async def test_one_agent_means_one_partition(filled: Agent) -> None:
    text = await plan(filled, query("count_memories"), filter=Jsonb({}))
    assert "Append" not in text


async def test_a_page_by_time_is_read_in_the_indexs_order(filled: Agent) -> None:
    statement = shaped_query("list_by_timestamp", direction=sql.SQL("DESC"), beyond=sql.SQL("<"))
    text = await plan(filled, statement, filter=Jsonb({}), place=None, after_id=None, limit=50)
    assert "Sort" not in text
    assert "timestamp" in text


async def test_vectors_for_a_map_are_read_in_the_indexs_order(filled: Agent) -> None:
    shape = {"stored": SETTLED.stored, "held": SETTLED.held, "dimensions": sql.Literal(64)}
    values = {"filter": Jsonb({}), "model": "m", "place": None, "after_id": None, "limit": 50}
    text = await plan(filled, shaped_query("newest_vectors", **shape), **values)
    assert "Sort" not in text
    assert "timestamp" in text


async def tie(filled: Agent) -> None:
    """Links each memory to another one."""
    async with filled.runtime.database.owner_transaction() as connection:
        await connection.execute(
            "WITH numbered AS (SELECT memory_id, row_number() OVER (ORDER BY memory_id) AS number "
            "                    FROM memories WHERE agent_id = %s) "
            "INSERT INTO memory_links (agent_id, source_id, target_id, relation) "
            "SELECT %s, a.memory_id, b.memory_id, 'beside' FROM numbered a "
            "  JOIN numbered b ON b.number = a.number * 7 %% 4000 + 1 AND b.number <> a.number",
            (filled.agent_id, filled.agent_id),
        )
        await connection.execute("ANALYZE memory_links")


@pytest.mark.parametrize("then", ["held_ever", "held_then"])
async def test_candidates_and_their_ties_are_read_by_their_keys(filled: Agent, then: str) -> None:
    await tie(filled)
    text = await plan(
        filled,
        shaped_query(
            "candidates",
            nearest=query("vector_retriever_none"),
            lexical=query("lexical_retriever"),
            beside=shaped_query(
                "beside_foremost", memories=sql.Identifier("memories"), matches=query("matches_filter")
            ),
            timely=query("temporal_retriever_none"),
            best=query("no_passage"),
            distance=shaped_query("distance_to_one", stored=SETTLED.stored),
            then=query(then),
            **SETTLED.shape,
        ),
        model=None,
        vector=None,
        filter=Jsonb({}),
        held_starts=["2026-01-01Z"],
        held_ends=["2026-02-01Z"],
        term_keys=[1, 2],
        weights=[1.0, 0.5],
        lexical_limit=60,
        k1=1.2,
        b=0.75,
        foremost=20,
        link_limit=20,
        most_terms=1_024,
        compared=10,
        query_keys=[],
    )
    assert "memories_pkey" in text or "_pkey on memories_p" in text
    assert "memory_links_by_target" in text
    assert "Seq Scan on memories" not in text
    assert "Seq Scan on memory_links" not in text


@pytest.mark.shows("issue3-1-temporal")
async def test_a_span_of_time_goes_through_its_index(filled: Agent) -> None:
    await filled.store("We moved in May 2023.")
    statement = sql.SQL(
        "SELECT memory_id FROM memories m WHERE m.agent_id = %(agent_id)s AND m.event_from < %(end)s "
        "AND m.event_to > %(start)s AND memory_matches(m, '{}')"
    )
    text = await plan(filled, statement, start=datetime(2023, 5, 1, tzinfo=UTC), end=datetime(2023, 6, 1, tzinfo=UTC))
    assert "event_to" in text.split("Index Cond")[1]
    assert "event_from" in text.split("Index Cond")[1].splitlines()[0]
    assert "Seq Scan" not in text


async def test_an_exact_search_reads_the_agents_rows_alone(filled: Agent) -> None:
    vector = HalfVector(np.ones(64, dtype=np.float32))
    text = await plan(
        filled,
        shaped_query("vector_retriever_exact", vector=sql.SQL("%(vector)s::halfvec"), **SETTLED.shape),
        model=filled.runtime.parts.vector_model,
        limit=5,
        filter=Jsonb({}),
        vector=vector,
    )
    assert "Append" not in text


@pytest.fixture
async def with_passages(filled: Agent) -> Agent:
    """The agent with one passage per memory, and an index on them."""
    rng = np.random.default_rng(1)
    async with filled.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute("SELECT memory_id FROM memories WHERE agent_id = %s", [READER])
        values = [
            (READER, row["memory_id"], filled.runtime.parts.vector_model, HalfVector(rng.normal(size=64)))
            for row in await cursor.fetchall()
        ]
        await connection.cursor().executemany(
            'INSERT INTO memory_passages (agent_id, memory_id, passage, embedding_model, start, "end", '
            "embedding) VALUES (%s, %s, 1, %s, 1, 2, %s)",
            values,
        )
        cursor = await connection.execute("SELECT DISTINCT tableoid::regclass::text AS name FROM memory_passages")
        [row] = await cursor.fetchall()
        shape: dict[str, sql.Composable] = {
            "index": sql.Identifier("ann_passages"),
            "partition": sql.Identifier(row["name"]),
            "dimensions": sql.Literal(64),
            "shape": sql.Literal(16),
            "model": sql.Literal(filled.runtime.parts.vector_model),
        }
        built = shaped_query("build_ivfflat_index", **shape).as_string(connection)
        await connection.execute(built.replace("CONCURRENTLY", "").encode())
        await connection.execute("ANALYZE memory_passages")
    return filled


def passage_values(agent: Agent) -> dict[str, Any]:
    model, vector = agent.runtime.parts.vector_model, HalfVector(np.ones(64, dtype=np.float32))
    return {"model": model, "limit": 60, "filter": Jsonb({}), "vector": vector}


async def test_passages_are_compared_by_the_agents_key_or_through_their_index(with_passages: Agent) -> None:
    asked, values = sql.SQL("%(vector)s::halfvec"), passage_values(with_passages)
    exact = shaped_query("passage_retriever_exact", vector=asked, then=query("held_ever"))
    text = await plan(with_passages, exact, **values)
    assert "Append" not in text
    assert "ann_passages" not in text
    async with with_passages.runtime.database.transaction(with_passages.agent_id) as connection:
        await connection.execute("SELECT set_config('enable_sort', 'off', true)")
        shape = {"vector": asked, "then": query("held_ever"), "dimensions": sql.Literal(64)}
        indexed = shaped_query("passage_retriever_indexed", **shape)
        cursor = await connection.execute(sql.SQL("EXPLAIN ") + indexed, {"agent_id": with_passages.agent_id, **values})
        text = "\n".join(str(row["QUERY PLAN"]) for row in await cursor.fetchall())
    assert "Index Scan using ann_passages" in text
    assert "Seq Scan" not in text


async def test_the_best_passage_of_a_candidate_is_read_by_its_key(with_passages: Agent) -> None:
    distance = shaped_query("distance_to_one", stored=SETTLED.stored)
    passage_distance = shaped_query("distance_to_one", stored=sql.SQL("p.embedding"))
    best = shaped_query("best_passage", passage_distance=passage_distance, distance=distance, held=SETTLED.held)
    statement = sql.SQL(
        "SELECT best.start FROM memories m LEFT JOIN LATERAL ({}) AS best ON true "
        "WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[])"
    ).format(best)
    text = await plan(with_passages, statement, memory_ids=[UUID(int=1)], **passage_values(with_passages))
    assert "memory_id = m.memory_id" in text.split("Index Cond", 1)[1]
    assert "Seq Scan" not in text


async def test_pending_passages_are_found_in_their_order(with_passages: Agent) -> None:
    text = await plan(with_passages, query("pending_passages"), done=["m"], limit=8)
    assert "llm_queue_passages" in text


async def test_archived_memories_are_read_in_the_order_of_their_index(filled: Agent) -> None:
    await filled.memory.prune(PruneParams(memory_layer=MemoryType.EPISODIC, target=2_000))
    async with filled.runtime.database.owner_transaction() as connection:
        await connection.execute("ANALYZE archived_memories")
    where = {"place": datetime(2100, 1, 1, tzinfo=UTC), "after_id": UUID(int=0), "limit": 50}
    text = await plan(filled, query("list_tombstones"), filter=Jsonb({}), max_bytes=2**22, **where)
    assert "archived_memories_by_time" in text
    assert "Sort" not in text


@pytest.mark.shows("issue5-2-refreshed")
async def test_what_is_made_of_a_memory_is_looked_up_by_keys(filled: Agent) -> None:
    """A change of a memory without summaries and facts must cost only a lookup."""
    await tie(filled)
    async with filled.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(
            "SELECT memory_id FROM memories WHERE agent_id = %s LIMIT 1", (filled.agent_id,)
        )
        row = await cursor.fetchone()
    assert row is not None
    text = await plan(filled, query("mark_summaries_stale"), memory_ids=[row["memory_id"]])
    assert "memory_links_by_target" in text
    assert "Seq Scan" not in text
    for name in ("pending_again", "stale_summaries"):
        limit = {"limit": 20} if name == "stale_summaries" else {}
        assert "Seq Scan on memories" not in await plan(filled, query(name), **limit)


async def test_the_sessions_of_a_period_are_looked_up_by_their_time(filled: Agent) -> None:
    period = period_of("week", datetime(2026, 6, 1, tzinfo=UTC))
    where = {"starts": period.starts, "ends": period.ends, "user_id": None, "namespace": None}
    statement = shaped_query("sessions_of_period", columns=query("source_columns"))
    text = await plan(filled, statement, **where)
    assert "timestamp" in text.split("Index Cond")[1].splitlines()[0]
    assert "Append" not in text
    text = await plan(filled, query("summary_of_period"), label=period.label, **where)
    assert "timestamp" in text.split("Index Cond")[1].splitlines()[0]


OTHERS_SUBJECTS = """
INSERT INTO memory_subjects (agent_id, subject_key, memory_id)
SELECT agent_id, n * 1000 + 1, memory_id FROM memories, generate_series(1, %(times)s) AS n
 WHERE agent_id = %(agent_id)s"""


@pytest.mark.parametrize("times", [1, 15])
async def test_a_thousand_subjects_of_a_new_agent_are_looked_up_one_by_one(filled: Agent, times: int) -> None:
    """A new agent has no statistics, yet none of its rows may be read once per subject.

    With many subjects of other agents, the primary key is one level deeper than indexes that look cheaper.
    """
    async with filled.runtime.database.owner_transaction() as connection:
        await connection.execute(OTHERS_SUBJECTS, {"agent_id": filled.agent_id, "times": times})
        await connection.execute("ANALYZE memory_subjects")
    agent = Agent(filled.runtime, "new")
    items = [StoreParams(content=f"Pallet {n} is on the barge.") for n in range(1_000)]
    await agent.memory.store_batch(StoreBatchParams(items=items))
    asked = {"agent_id": agent.agent_id, "subject_keys": list(range(1_000)), "max_chars": 1_000, "limit": 8}
    async with agent.runtime.database.transaction(agent.agent_id) as connection:
        cursor = await connection.execute(sql.SQL("EXPLAIN (ANALYZE, FORMAT JSON) ") + query("stated_before"), asked)
        [row] = await cursor.fetchall()
    pages = row["QUERY PLAN"][0]["Plan"]["Shared Hit Blocks"]
    assert pages < 10_000, pages


WAITING = """
WITH copies AS (
    INSERT INTO memories (agent_id, memory_id, memory_type, content, summary, relevance_score, timestamp,
                          valid_from, user_id, content_hash, token_count, embedding, embedding_model)
    SELECT m.agent_id, gen_random_uuid(), m.memory_type, m.content, m.summary, 0.5, m.timestamp, m.valid_from,
           'user ' || n %% 7, m.content_hash, m.token_count, m.embedding, m.embedding_model
      FROM memories m, generate_series(1, 10000) AS n
     WHERE m.agent_id = %(agent_id)s
    RETURNING agent_id, memory_id)
INSERT INTO llm_queue (agent_id, memory_id, work, queued_at)
SELECT agent_id, memory_id, 'facts', now() - random() * interval '1 day' FROM copies"""


@pytest.mark.shows("issue5-3-hostile-texts")
async def test_of_a_long_line_that_waits_for_facts_only_the_head_is_read(filled: Agent) -> None:
    """Neither a new agent nor its queue has statistics."""
    agent = Agent(filled.runtime, "new-agent")
    await agent.store("Ada keeps the key of the cellar.")
    async with agent.runtime.database.owner_transaction() as connection:
        await connection.execute("ALTER TABLE llm_queue SET (autovacuum_enabled = false)")
        await connection.execute("ANALYZE llm_queue")
        await connection.execute(WAITING, {"agent_id": agent.agent_id})
    asked = {"agent_id": agent.agent_id, "limit": 8, "head": QUEUE_HEAD_ROWS}
    async with agent.runtime.database.transaction(agent.agent_id) as connection:
        cursor = await connection.execute(
            sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ") + query("pending_for_facts"), asked
        )
        [row] = await cursor.fetchall()
    told = row["QUERY PLAN"][0]["Plan"]
    pages = told["Shared Hit Blocks"] + told["Shared Read Blocks"]
    assert told["Actual Rows"] == 8
    # With any index: the queue's rows at most once, and only the head's memories.
    assert pages < 15_000, pages


WAITING_IN_SESSIONS = """
INSERT INTO llm_queue (agent_id, memory_id, work, session_id)
SELECT agent_id, memory_id, 'summary', 'session ' || row_number() OVER (ORDER BY memory_id) / 4
  FROM memories WHERE agent_id = %(agent_id)s"""


@pytest.mark.parametrize("known", [True, False])
async def test_what_waits_in_a_thousand_sessions_is_read_once_and_the_rules_with_it(filled: Agent, known: bool) -> None:
    """With and without statistics."""
    async with filled.runtime.database.owner_transaction() as connection:
        await connection.execute("INSERT INTO agent_settings (agent_id) VALUES (%s)", (filled.agent_id,))
        await connection.execute(WAITING_IN_SESSIONS, {"agent_id": filled.agent_id})
        if known:
            await connection.execute("ANALYZE llm_queue")
        cursor = await connection.execute(
            sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ") + query("llm_work_of_agents")
        )
        [row] = await cursor.fetchall()
    told = row["QUERY PLAN"][0]["Plan"]
    pages = told["Shared Hit Blocks"] + told["Shared Read Blocks"]
    assert told["Actual Rows"] == 1_001
    assert pages < 300, pages


# --- reads by key, with one plan per connection ---------------------------------------------------------------------


async def lookup_plan(agent: Agent, name: str) -> str:
    text, _ = with_numbered_parameters(QUERIES[name])
    async with agent.runtime.database.owner_autocommit() as connection:
        for setting, value in KEY_LOOKUP.items():
            await connection.execute(sql.SQL("SET {} = {}").format(sql.Identifier(setting), sql.Literal(value)))
        cursor = await connection.execute(b"EXPLAIN (GENERIC_PLAN) " + text, prepare=False)
        return "\n".join(str(row["QUERY PLAN"]) for row in await cursor.fetchall())


@pytest.fixture
async def empty(services: Services) -> AsyncIterator[Agent]:
    """The agent, in a database without memories and statistics."""
    with migrated_database(services) as own:
        async with open_runtime(settings_for(services, database_url=own.url)) as runtime:
            yield Agent(runtime, READER)


async def scans_of_hits(agent: Agent) -> list[tuple[str, str]]:
    """Returns index and condition of each scan, two for each of 32 partitions."""
    text = await lookup_plan(agent, "search_hits")
    scans: list[tuple[str, str]] = re.findall(r"Scan using (\S+) on memories_p\d+ .*\n\s+Index Cond: (.*)", text)
    assert len(scans) == 64, text
    return scans


# Each in a database of its own: in a partition with two analyzed rows any index will do.
async def test_search_hits_are_read_by_id_if_the_plan_was_made_before_the_first_memory(empty: Agent) -> None:
    assert not [each for each in await scans_of_hits(empty) if not each[0].endswith("_pkey")]


async def test_search_hits_are_read_by_id_among_thousands(filled: Agent) -> None:
    assert not [each for each in await scans_of_hits(filled) if not each[0].endswith("_pkey")]


async def test_search_hits_of_a_large_agent_among_many_small_ones_are_read_by_id(filled: Agent) -> None:
    """A generic plan knows only how many rows an agent has on average."""
    async with filled.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'memories'::regclass "
            "AND attnum > 0 AND attname <> 'agent_id' AND attgenerated = ''"
        )
        columns = sql.SQL(", ").join(sql.Identifier(row["attname"]) for row in await cursor.fetchall())
        await connection.execute(
            sql.SQL(
                "INSERT INTO memories (agent_id, {0}) SELECT 'small-' || n, {0} FROM generate_series(1, 3000) AS n "
                "CROSS JOIN (SELECT * FROM memories LIMIT 3) AS m"
            ).format(columns)
        )
        await connection.execute("ANALYZE memories")
    others = [each for each in await scans_of_hits(filled) if not each[0].endswith("_pkey")]
    assert not others


async def test_term_statistics_are_read_by_their_keys(agent: Agent) -> None:
    assert re.search(
        r"lexical_terms_pkey on lexical_terms .*\n\s+Index Cond: .*term_key = ANY",
        await lookup_plan(agent, "lexical_statistics"),
    )
