"""Query analysis properties for any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.memory.lexical import terms
from agentcore.memory.params.memories import Turn
from agentcore.memory.query import KEY_TERMS, MAX_QUERIES, QUERY_CHARS, WHOLE_CHARS, complete, split

SAID = """
hi thanks ok what is the capital of France my budget run tests translate this to French how much Anna explain
TCP we again ERROR failed ``` . ? ! 42 Lisbon load_customer User: it
"""
WORDS = st.sampled_from(["\n", *SAID.split()])
CHARACTERS = st.characters(exclude_characters="\x00", exclude_categories=["Cs"])
TEXTS = st.text(CHARACTERS, max_size=300) | st.lists(WORDS, max_size=120).map(" ".join)
TURNS = st.builds(Turn, role=st.sampled_from(["user", "assistant"]), content=TEXTS)


@given(TEXTS, st.lists(TURNS, max_size=4))
@pytest.mark.shows("issue3-4-vague")
def test_a_completed_query_begins_with_itself_and_repeats_nothing(query: str, history: list[Turn]) -> None:
    text = complete(query, history)
    assert text.startswith(query)
    added = text[len(query) :].split()
    assert len(added) <= KEY_TERMS
    assert all(not set(terms(query)).issuperset(terms(word)) for word in added)


@given(TEXTS)
def test_a_prompt_is_split_into_a_bounded_number_of_bounded_queries(prompt: str) -> None:
    queries = split(prompt)
    assert 1 <= len(queries) <= MAX_QUERIES
    assert len(set(queries)) == len(queries)
    assert all(len(query) <= max(QUERY_CHARS, WHOLE_CHARS) for query in queries)
