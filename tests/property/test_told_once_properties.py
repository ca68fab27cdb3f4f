"""Deduplication in contexts: no statement is lost and none is repeated."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from agentcore.memory.compression import build_context
from agentcore.memory.contexts.filling import Manner
from agentcore.memory.contexts.rendering import FORMATS, SECTIONS, ContextEntry

START = datetime(2026, 1, 1, tzinfo=UTC)
THINGS = ("cat", "key", "map", "hat", "owl")
SENTENCES = [f"The {thing} is in room {number}." for number, thing in enumerate(THINGS)]


@st.composite
def entries(draw: st.DrawFn) -> list[ContextEntry]:
    made = []
    for number in range(draw(st.integers(1, 7))):
        told = draw(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=5, unique=True))
        of = draw(st.none() | st.sets(st.integers(0, 7), min_size=1))
        made.append(
            ContextEntry(
                UUID(int=number),
                draw(st.sampled_from(SECTIONS)),
                START + timedelta(hours=draw(st.integers(0, 90))),
                None if of else "user",
                "\n".join(f"user: {each}" for each in told) if of else " ".join(told),
                f"user: {told[0]}" if of else told[0],
                rank=number,
                score=1 - number / 10,
                session_id="a",
                sources=frozenset(UUID(int=each) for each in of or ()),
            )
        )
    return made


@given(entries(), st.integers(120, 900), st.sampled_from(sorted(FORMATS)))
def test_nothing_is_told_twice_by_a_summary_and_nothing_lost(made: list[ContextEntry], budget: int, form: str) -> None:
    built = build_context(made, budget, len, Manner(FORMATS[form]))
    assert len(built.text) == built.token_count <= budget
    told = Counter(each for line in built.lines for each in SENTENCES if each in line.text)
    for line in built.lines:
        for each in SENTENCES:
            if line.entry.sources and each in line.text:
                assert told[each] == 1
            if line.has_duplicates_removed and each in line.unquoted_text and each not in line.text:
                assert told[each]
    content = {each.memory_id: each.content for each in made}
    for memory_id, reason in built.left_out:
        if reason == "told_by_others":
            assert all(told[each] for each in SENTENCES if each in content[memory_id])
