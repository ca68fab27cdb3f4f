"""`agentcore reembed`: beside a running service, killed, and run again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from agentcore.embedded import Home, attach
from agentcore.memory.params.memories import CapabilitiesParams, RetrieveParams, StoreBatchParams, StoreParams
from tests.fixtures.serving import Serving

COUNT = 1_000
TO = ("reembed", "--model", "hashing", "--dimensions", "768")
PATIENCE_SECONDS = 60.0


@pytest.fixture
def own(new_serving: Callable[..., Serving]) -> Iterator[Serving]:
    started = new_serving()
    started.start()
    started.await_listening()
    yield started
    assert started.stop() == 0


def asked(serving: Serving, statement: str) -> tuple[Any, ...]:
    url = attach(Home(serving.home)).database_url
    assert url is not None
    with psycopg.connect(url) as connection:
        row = connection.execute(statement.encode()).fetchone()
    assert row is not None
    return row


@pytest.mark.shows("issue4-10.2")
async def test_a_killed_run_goes_on_and_the_service_never_stops_answering(own: Serving) -> None:
    async with own.client("ada") as memory:
        for start in range(0, COUNT, 100):
            items = [
                StoreParams(content=f"Note {n} is about topic {n * 7919}.", force=True)
                for n in range(start, start + 100)
            ]
            assert (await memory.store_batch(StoreBatchParams(items=items))).success

        async def found() -> tuple[bool, list[str]]:
            query = "Note 812 is about topic 6430228."
            result = await memory.retrieve(RetrieveParams(query=query))
            return result.memories[0].content == query, result.receipt.degraded

        estimated = own.cli(*TO, "--dry-run")
        assert estimated.returncode == 0, estimated.stderr
        assert f"{COUNT} memories of {COUNT} would be embedded" in estimated.stderr
        first = own.open_cli(*TO)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while asked(own, "SELECT count(next_embedding) FROM memories") == (0,):
            assert first.poll() is None and time.monotonic() < deadline
        first.kill()
        first.communicate()
        assert asked(own, "SELECT count(*), count(DISTINCT embedding_model) FROM memories") == (COUNT, 1)
        assert await found() == (True, [])
        again = own.open_cli(*TO)
        answers = []
        while again.poll() is None:
            answers.append(await found())
        told = again.communicate()[1]
        assert again.returncode == 0, told
        assert set(map(str, answers)) == {str((True, []))}
        assert "set EMBEDDING_MODEL=hashing EMBEDDING_DIMENSIONS=768" in " ".join(told.split())
        assert asked(
            own,
            "SELECT count(*), min(vector_dims(embedding)), max(vector_dims(embedding)), "
            "count(next_embedding) FROM memories",
        ) == (COUNT, 768, 768, 0)
        assert (await memory.capabilities(CapabilitiesParams())).embedding_dimensions == 768
        assert await found() == (True, [])


def test_a_model_that_makes_no_vectors_is_refused(serving: Serving) -> None:
    done = serving.cli("reembed", "--model", "none")
    assert done.returncode == 2
    assert "pass another model" in done.stderr
