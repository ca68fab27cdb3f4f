"""Memory ids: UUIDv7, increasing and unique."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from uuid import RFC_4122

from agentcore.memory.storage import mint_memory_id


def test_ids_rise_in_the_order_they_are_made() -> None:
    made = [mint_memory_id() for _ in range(20_000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_an_id_is_a_uuid_of_version_7_and_tells_its_millisecond() -> None:
    before = time.time_ns() // 1_000_000
    made = mint_memory_id()
    assert (made.version, made.variant) == (7, RFC_4122)
    assert before <= made.int >> 80 <= time.time_ns() // 1_000_000 + 1


def test_threads_never_make_the_same_id() -> None:
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: mint_memory_id(), range(20_000)))
    assert len(set(made)) == 20_000
