"""Session strategies: newest, important or summarized messages, within the token budget."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agentcore.agents.session_memory import (
    ImportanceWeighting,
    SelectionStrategy,
    SessionMessage,
    SlidingWindow,
    Summarization,
    TokenBudget,
    session_context,
)
from agentcore.agents.session_memory.in_memory import InMemorySessionMemory
from agentcore.errors import InvalidParams
from agentcore.memory.tokens import TokenCounter

MORNING = datetime(2026, 3, 2, 9, tzinfo=UTC)
STRATEGIES = (SlidingWindow(window=4), ImportanceWeighting(always_recent=1), Summarization(recent=3))

TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(str.strip)


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> TokenCounter:
    return TokenCounter(tmp_path_factory.mktemp("tokens"))


def words(text: str) -> int:
    return len(text.split())


def newest_first(*said: tuple[str, float]) -> list[SessionMessage]:
    """Returns messages with their importance; arguments are oldest first."""
    return [
        SessionMessage(
            content=content,
            importance=importance,
            message_id=f"m-{place}",
            timestamp=MORNING + timedelta(minutes=place),
        )
        for place, (content, importance) in enumerate(said)
    ][::-1]


def chosen(strategy: SelectionStrategy, messages: Sequence[SessionMessage], max_tokens: int) -> list[str]:
    return [each.content for each in strategy.select(messages, TokenBudget(max_tokens, words))]


@pytest.mark.shows("G12")
def test_a_window_slides_over_the_newest_and_has_no_gap() -> None:
    messages = newest_first(("one", 1.0), ("two", 0.0), ("a long one of six words", 0.9), ("four", 0.1))
    assert chosen(SlidingWindow(), messages, 100) == ["one", "two", "a long one of six words", "four"]
    assert chosen(SlidingWindow(window=2), messages, 100) == ["a long one of six words", "four"]
    assert chosen(SlidingWindow(), messages, 8) == ["two", "a long one of six words", "four"]
    # Older messages than the first that does not fit would leave a gap.
    assert chosen(SlidingWindow(), messages, 6) == ["four"]
    assert chosen(SlidingWindow(), messages[1:], 5) == []


@pytest.mark.shows("G12")
def test_the_important_are_chosen_the_newer_rather_and_the_newest_always() -> None:
    messages = newest_first(
        ("old and dear", 0.9), ("old and cheap", 0.1), ("middling", 0.6), ("younger and middling", 0.6), ("new", 0.0)
    )
    strategy = ImportanceWeighting(always_recent=1)
    assert chosen(strategy, messages, 100) == ["old and dear", "middling", "younger and middling", "new"]
    assert chosen(strategy, messages, 4) == ["old and dear", "new"]
    # On equal importance the newer wins; one that does not fit is skipped.
    assert chosen(ImportanceWeighting(always_recent=1, recency_weight=1.0), messages, 5) == [
        "middling",
        "younger and middling",
        "new",
    ]
    assert chosen(ImportanceWeighting(always_recent=0, threshold=0.9), messages, 100) == ["old and dear"]
    assert chosen(ImportanceWeighting(always_recent=2), messages, 100)[-2:] == ["younger and middling", "new"]


def test_importance_may_be_measured_in_another_way() -> None:
    messages = newest_first(("the plan is Antwerp", 0.0), ("nothing else", 1.0))
    strategy = ImportanceWeighting(
        always_recent=0, importance=lambda message: 1.0 if "plan" in message.content else 0.0
    )
    assert chosen(strategy, messages, 100) == ["the plan is Antwerp"]
    # Without an importance the default of memories applies.
    untold = [SessionMessage(content="untold")]
    assert chosen(ImportanceWeighting(always_recent=0, threshold=0.5), untold, 9) == ["untold"]
    assert chosen(ImportanceWeighting(always_recent=0, threshold=0.6), untold, 9) == []


@pytest.mark.shows("G12")
def test_the_older_are_summed_up_before_the_newest() -> None:
    messages = newest_first(
        ("The warehouse in Antwerp flooded on Friday morning.", 0.5),
        ("The insurance claim for the warehouse is HX-2210.", 0.9),
        ("Thanks!", 0.5),
        ("And now?", 0.5),
    )
    strategy = Summarization(recent=2, summary_share=0.5)
    summary, *rest = strategy.select(messages, TokenBudget(40, words))
    assert (summary.role, summary.metadata) == ("memory", {"message_count": 2})
    assert summary.content == (
        "user: The warehouse in Antwerp flooded on Friday morning.\n"
        "user: The insurance claim for the warehouse is HX-2210."
    )
    assert [each.content for each in rest] == ["Thanks!", "And now?"]
    # If only one of two fits, the more important; without a share there is no summary.
    summary, *_ = strategy.select(messages, TokenBudget(22, words))
    assert summary.content == "user: The insurance claim for the warehouse is HX-2210."
    assert chosen(Summarization(recent=2, summary_share=0.0), messages, 40) == ["Thanks!", "And now?"]
    # If all messages fit, there is no summary.
    assert chosen(Summarization(), messages, 40) == [each.content for each in messages[::-1]]


def test_a_recent_message_that_is_too_long_is_summed_up_and_not_lost() -> None:
    pasted = "The bridge opens in May. " + "It rains again and again over all the hills. " * 40
    messages = newest_first(("Hello there.", 0.5), (pasted, 0.5), ("What now?", 0.5))
    summary, *rest = Summarization().select(messages, TokenBudget(60, words))
    assert [each.content for each in rest] == ["Hello there.", "What now?"]
    assert "The bridge opens in May." in summary.content
    assert words(summary.content) <= 15


@given(
    st.lists(st.tuples(TEXTS, st.floats(0, 1, width=32)), max_size=12),
    st.integers(1, 60),
    st.integers(0, 4),
    st.sampled_from(STRATEGIES),
)
@pytest.mark.shows("G12")
def test_no_strategy_exceeds_its_tokens_or_changes_the_order(
    counter: TokenCounter,
    said: list[tuple[str, float]],
    max_tokens: int,
    message_tokens: int,
    strategy: SelectionStrategy,
) -> None:
    messages = newest_first(*said)
    budget = TokenBudget(max_tokens, counter.count, message_tokens)
    found = strategy.select(messages, budget)
    assert sum(map(budget.cost, found)) <= max_tokens
    whole = [each for each in found if each.role != "memory"]
    assert whole == [each for each in messages[::-1] if each in whole]
    assert len(found) - len(whole) <= 1


@pytest.mark.shows("G12")
async def test_a_context_says_how_many_tokens_it_has_and_what_it_leaves_out(counter: TokenCounter) -> None:
    memory = InMemorySessionMemory()
    for place in range(30):
        await memory.store(
            "s",
            SessionMessage(
                name="ada" if place % 2 else None,
                content=f"Parcel {place} was sent to Antwerp.",
                timestamp=MORNING + timedelta(minutes=place),
            ),
            {"importance": 0.9 if place == 3 else 0.2},
        )
    context = await session_context(memory, "s", max_tokens=1_000, count=counter.count, message_tokens=4)
    assert [each.content for each in context.messages] == [
        f"Parcel {place} was sent to Antwerp." for place in range(20, 30)
    ]
    assert context.left_out_count == 0
    assert context.token_count == sum(
        counter.count(each.content) + (counter.count("ada") if each.name else 0) + 4 for each in context.messages
    )
    weighed = await session_context(memory, "s", max_tokens=1_000, count=counter.count, strategy=ImportanceWeighting())
    assert [each.content[:9] for each in weighed.messages] == ["Parcel 3 ", "Parcel 27", "Parcel 28", "Parcel 29"]
    assert weighed.left_out_count == 26
    summed = await session_context(memory, "s", max_tokens=200, count=counter.count, strategy=Summarization(recent=2))
    assert (summed.messages[0].role, len(summed.messages), summed.left_out_count) == ("memory", 3, 28)
    assert summed.token_count <= 200
    assert (await session_context(memory, "none", max_tokens=9, count=len)).messages == []


async def test_numbers_that_cannot_be_are_refused() -> None:
    memory = InMemorySessionMemory()
    for max_tokens, message_tokens in ((0, 0), (9, -1)):
        with pytest.raises(InvalidParams, match="max_tokens"):
            await session_context(memory, "s", count=len, max_tokens=max_tokens, message_tokens=message_tokens)
    for wrong in (
        lambda: SlidingWindow(window=0),
        lambda: ImportanceWeighting(threshold=1.5),
        lambda: Summarization(summary_share=-0.1),
    ):
        with pytest.raises(ValidationError):
            wrong()
