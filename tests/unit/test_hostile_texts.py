"""Reading a text takes time in proportion to its length, whatever it is made of: no page stops all agents."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from agentcore.agents.error_words import discreet
from agentcore.memory.consequences.llm_work import is_worth_reading
from agentcore.memory.consolidation import judge
from agentcore.memory.contexts.extraction import extract
from agentcore.memory.contexts.fencing import quoted
from agentcore.memory.intake import subjects_of, text_columns
from agentcore.memory.language.gate import gate
from agentcore.memory.language.llm_text import within, without_thought_lines, without_thoughts
from agentcore.memory.language.past import sign_of_the_past
from agentcore.memory.language.rejection import rejection
from agentcore.memory.language.text import normal_form, sentences, words
from agentcore.memory.query import complete, split, wants
from agentcore.memory.ranking.opposition import asks_of_the_past
from agentcore.memory.statements.statements import Told
from agentcore.memory.summaries.grounding import Heard
from agentcore.memory.summaries.summarizing import Source, summarize
from agentcore.memory.summaries.survival import as_read, checked

NOW = datetime(2026, 5, 4, tzinfo=UTC)
SHORT, LONG = 2_048, 8_192
# Four times the length takes four times the time, and a square takes sixteen.
MOST_TIMES = 9
# What is read in so little time is not measured.
LEAST_SECONDS = 0.025

UNITS = (
    "<", "<think>", "<think>\n", "</think>", "<think></reasoning>", "< /", "a", "a ", "A", "A.", "A. ", "Ab ",
    "aB", "1", "1,", "1.", "1 ", "2021-05-04 ", "5 May 2023 ", "12:00", "next Monday ", "two weeks ago ",
    "\u200b", "\u200d", "\u0301", "\u4e00", "\ufdfa", "(", "()", "a (b) ", "-", "- ", "--", "_", "*a", "`",
    "```\n", "http://", "a@b.", "'s ", "'", "\"a", "\n", " \n", "\n\n", " ", ". ", "?", ", ", ": ", "= ",
    "$1,", "+1", "v1.", "a/b", "van der ", "is not ", "we call x \"", "sorry ", "please just ", "User: a\n",
    "no, I meant ", "key: ", "Ada said so. ", "word word word. ", "a://a:<",
)  # fmt: skip


def tokens(text: str) -> int:
    return len(text) // 4


def source(text: str, speaker: str | None = None) -> Source:
    return Source(UUID(int=1), NOW, speaker, text, 0.5)


def judged(text: str) -> Any:
    corrected = Told("No, I meant the 14th.", NOW, "Ada", None, "s")
    return judge(Told(text, NOW, "Ada", None, "s"), corrected)


ADA = Heard([source("Ada lives in Ghent.")])
COLUMNS = {"user_id": None, "namespace": None, "speaker": None, "timestamp": NOW, "session_id": "s",
           "task_id": None, "provenance": {}}
READERS: Mapping[str, Callable[[str], Any]] = {
    "words": words,
    "sentences": sentences,
    "normal form": normal_form,
    "the columns of a store": lambda text: text_columns("agent", text, "Ada", tokens, NOW),
    "what it states": lambda text: subjects_of("agent", {**COLUMNS, "content": text}),
    "what it means for another": judged,
    "rejection": rejection,
    "worth reading": is_worth_reading,
    "thoughts": without_thoughts,
    "thoughts of lines": without_thought_lines,
    "as a model reads it": lambda text: as_read([source(text), source(text, "assistant")]),
    "what was heard": lambda text: Heard([source(text)]),
    "whether it was said": ADA.sentences,
    "a model's summary": lambda text: checked(text, [text], ADA, [source(text)], 99, tokens),
    "extraction of a summary": lambda text: summarize([source(text)], 300, tokens),
    "extraction for a context": lambda text: extract(text, {"ada"}, 200, tokens),
    "its first sentences": lambda text: within(text, 200, tokens),
    "quotation": quoted,
    "a question": lambda text: (gate(text), wants(text), split(text), complete(text, ())),
    "whether it asks of the past": lambda text: (asks_of_the_past(text), sign_of_the_past(text)),
    "an error": discreet,
}  # fmt: skip


def seconds(read: Callable[[str], Any], text: str) -> float:
    """What it takes of this thread's time, whatever else runs."""
    begun = time.thread_time()
    read(text)
    return time.thread_time() - begun


def times_longer(read: Callable[[str], Any], unit: str) -> float:
    """How much more time a text of four times the length takes; 0 where that is little."""
    short, long = ((unit * (size // len(unit) + 1))[:size] for size in (SHORT, LONG))
    if seconds(read, f"Ada {long}.") < LEAST_SECONDS:
        return 0
    # Other words each time: some are remembered.
    of_short = min(seconds(read, f"Ada {n} {short}.") for n in range(2))
    return min(seconds(read, f"Ada {n} {long}.") for n in range(2)) / of_short


@pytest.mark.parametrize("name", READERS)
def test_a_hostile_text_takes_time_in_proportion_to_its_length(name: str) -> None:
    slow = {unit: found for unit in UNITS if (found := times_longer(READERS[name], unit)) > MOST_TIMES}
    assert slow == {}


def test_a_number_longer_than_a_number_may_be_is_one_all_the_same() -> None:
    assert judged("1" * 400).relation == "none"
