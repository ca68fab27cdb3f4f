"""Sessions in any combination of tiers are listed once each, in order, with their contents."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.agents.session_memory import RetrieveOptions, SessionListing, SessionMessage
from agentcore.agents.session_memory.hierarchical import HierarchicalSessionMemory, HierarchyConfig
from agentcore.agents.session_memory.in_memory import InMemorySessionMemory

MORNING = datetime(2026, 3, 2, 9, tzinfo=UTC)
SESSIONS = "abcdef"
STORED = st.tuples(st.sampled_from(SESSIONS), st.integers(0, 8), st.booleans())


@given(st.lists(STORED, max_size=40), st.lists(STORED, max_size=10), st.integers(1, 4))
@pytest.mark.shows("issue6-4-sessions")
async def test_tiers_list_each_session_once_in_order_with_what_it_holds(
    stored: list[tuple[str, int, bool]], before: list[tuple[str, int, bool]], limit: int
) -> None:
    lasting = InMemorySessionMemory()
    memory = HierarchicalSessionMemory(lasting, HierarchyConfig(working_capacity=1, short_term_capacity=2))
    for session_id, minute, important in before:
        await lasting.store(session_id, message(minute), {"importance": 0.9 if important else 0.7})
    for session_id, minute, important in stored:
        await memory.store(session_id, message(minute), {"importance": 0.9 if important else 0.1})
    found: list[SessionListing] = []
    while page := await memory.sessions(limit, found[-1] if found else None):
        assert len(page) <= limit
        found += page
    held = {each: await memory.retrieve(each, RetrieveOptions(limit=1_000)) for each in SESSIONS}
    expected = sorted(((each[0].timestamp, name, len(each)) for name, each in held.items() if each), reverse=True)
    assert [(each.newest, each.session_id, each.message_count) for each in found] == expected
    usage = await memory.usage()
    assert (usage.messages, usage.sessions) == (sum(map(len, held.values())), len(expected))


def message(minute: int) -> SessionMessage:
    return SessionMessage(content="A note.", timestamp=MORNING + timedelta(minutes=minute))
