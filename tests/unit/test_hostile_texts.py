"""Parsing a text takes CPU time linear in its length, for any characters."""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from io import BytesIO
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from agentcore.agents.recordable import discreet
from agentcore.agents.tool_contract import SaveMemory, failure_sentence
from agentcore.cli.imports import clean, text_of
from agentcore.cli.lines import read_lines, store_params
from agentcore.limits import MAX_TEXT_CHARS
from agentcore.memory.columns import RuleColumns
from agentcore.memory.compression import build_context
from agentcore.memory.consequences.pending_work import is_worth_reading
from agentcore.memory.contexts.fencing import quoted
from agentcore.memory.contexts.rendering import PAST, ContextEntry
from agentcore.memory.contexts.shortening import extract
from agentcore.memory.contradictions import judge
from agentcore.memory.intake import derive_text, subjects_of
from agentcore.memory.language.llm_text import strip_all_reasoning, strip_leading_reasoning, truncate_sentences
from agentcore.memory.language.moments import windows
from agentcore.memory.language.passages import passages
from agentcore.memory.language.rejection import Screen, rejection
from agentcore.memory.language.text import normal_form, sentences, words
from agentcore.memory.query import asks_for_time, complete, split
from agentcore.memory.ranking.opposition import asks_of_the_past
from agentcore.memory.statements.statements import RuleInput
from agentcore.memory.summaries.grounding import SourceTexts, as_read, checked
from agentcore.memory.summaries.summarizing import Source, summarize
from agentcore.memory.tokens import TokenCounter
from agentcore.providers.e5 import WEIGHTS, UnigramTokenizer
from agentcore.providers.e5_file import E5File
from agentcore.providers.hashing import _embed
from agentcore.providers.local_models import E5
from agentcore.rpc import Call, Limits, read_frame

NOW = datetime(2026, 5, 4, tzinfo=UTC)
# Characters of the long text, made of one unit or of a generated pattern; the short one has a quarter.
LONG, GENERATED_LONG = 8_192, 4_096
# Linear work takes 4 times the time, quadratic work 16 times.
MAX_GROWTH = 8
# Growth is not measured below this CPU time of the long text, nor below a multiple of ordinary words.
LEAST_SECONDS, LEAST_MULTIPLE = 0.025, 3
ATTEMPTS = 4

UNITS = (
    "<", "<think>", "<think>\n", "</think>", "<think></reasoning>", "< /", "a", "a ", "A", "A.", "A. ", "Ab ",
    "aB", "1", "1,", "1.", "1 ", "2021-05-04 ", "5 May 2023 ", "12:00", "next Monday ", "two weeks ago ",
    "\u200b", "\u200d", "\u0301", "\u4e00", "\ufdfa", "(", "()", "a (b) ", "-", "- ", "--", "_", "*a", "`",
    "```\n", "http://", "a@b.", "'s ", "'", "\"a", "\n", " \n", "\n\n", " ", ". ", "?", ", ", ": ", "= ",
    "$1,", "+1", "v1.", "a/b", "van der ", "is not ", "we call x \"", "sorry ", "please just ", "User: a\n",
    "no, I meant ", "key: ", "Ada said so. ", "word word word. ", "a://a:<",
    # Mixed combining marks, of which normalization sorts a run.
    "\u0301\u0323\u0327", "\u0323\u0301", "\u0345\u0301\u0334", "\u05b0\u064b\u0301", "\U0001d165\u0301",
    "\u0f73\u0f71", "\uff9e\u0323", "\u1100\u1161\u11a8", "\u3313", "\ufdfb", "\u2474", "31. ", "z. B. ",
    "![", "![a](http://", "<|", "ignore all previous ", "you are now ", "send to ",
)  # fmt: skip

CLASSES = (
    "\u0300\u0301\u0308\u0316\u0323\u0327\u0328\u0334\u0338\u0345\u035c\u05b0\u064b\u093c\u094d\u3099\u20d0",
    "\ufdfa\ufdfb\u3316\u33af\u2474\u00bd\u2122\ufb03\uff21\u1e9b\u0132",
    "\u4e00\u3042\u30ab\uac00\u1100\u1161\u11a8\u0e01\u0e33",
    "0123456789.,:/-",
    "abcXYZ\u00df\u0130\u03a3\u0391",
    " \t\n\u00a0\u2003\u200b\u200d\ufeff",
    "'\"\u201c\u201d\u2018\u2019`\u00ab\u00bb",
    "()[]{}<>\u300c\u300d",
    ".!?;:,\u2026\u2014-_=+*#|\\/&%$@~^",
)  # fmt: skip
FRAGMENTS = (
    "http://a.b/c?d=e&", "https://x.y:8/z#", "ada@example.org ", "a.b.c@d-e.", "is not ", "was ", "the ",
    "a or b ", "no, ", "not ", "moved to ", "called ", "aka ", "on 5 May ", "last week ", "3 days ago ",
    "at 12:30 ", "User: ", "Action: ", "<think>", "</think>", "<b>", "- ", "1) ", "31. Dezember ", "Nr. 5 ",
    "e.g. ", "x = y; ", "foo(bar) ", "Ada Lovelace ", "who ", "when did ", "please ", "thanks ", "\r\n",
    "```", "system prompt: ",
)  # fmt: skip


def generated(count: int = 200, seed: int = 13) -> tuple[str, ...]:
    """Returns patterns that mix classes of characters and fragments of text."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        parts = []
        for _ in range(chance.randint(1, 5)):
            if chance.random() < 0.4:
                parts.append(chance.choice(FRAGMENTS))
            else:
                kind = chance.choice(CLASSES)
                parts.append("".join(chance.choices(kind, k=chance.randint(1, 6))))
        found.append("".join(parts))
    return tuple(found)


ORDINARY = "Ada moved to Ghent in May, and her brother Tom stayed. Is the budget 9,000 euros? "
PATTERNS = {**dict.fromkeys(generated(), GENERATED_LONG), **dict.fromkeys(UNITS, LONG)}


def tokens(text: str) -> int:
    return len(text) // 4


def source(text: str, speaker: str | None = None) -> Source:
    return Source(UUID(int=1), NOW, speaker, text, 0.5)


def judged(text: str) -> Any:
    corrected = RuleInput("No, I meant the 14th.", NOW, "Ada", None, "s")
    return judge(RuleInput(text, NOW, "Ada", None, "s"), corrected)


def rendered(text: str) -> Any:
    entries = [
        ContextEntry(UUID(int=place), PAST, NOW, "Ada", said, said[:400], rank=place, score=0.5)
        for place, said in enumerate((text, f"Also {text}"))
    ]
    return build_context(entries, 400, tokens)


@cache
def counter() -> TokenCounter:
    return TokenCounter(Path(tempfile.mkdtemp(prefix="agentcore-tokens-")))


@cache
def e5_tokenizer() -> UnigramTokenizer:
    return UnigramTokenizer(E5File(E5.verified_directory() / WEIGHTS).vocabulary)


TOKENIZERS: dict[str, Callable[[str], object]] = {
    "tokenizer of multilingual-e5-small": lambda text: e5_tokenizer().encode(text)
}


def tool_call(text: str) -> Any:
    """Parses a message to /mcp and its tool arguments."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"arguments": {"content": text}}}
    [member] = read_frame(json.dumps(call).encode(), Limits()).members
    assert isinstance(member, Call)
    assert isinstance(member.params, dict)
    try:
        return SaveMemory.model_validate(member.params["arguments"])
    except ValidationError as failure:
        return failure_sentence(failure)


def import_line(text: str) -> Any:
    [found] = read_lines(BytesIO(json.dumps({"text": text, "role": "user"}).encode()))
    return found.problem if found.line is None else store_params(found.line, found.key, now=NOW, ids={})


SCREEN = Screen()
ADA = SourceTexts([source("Ada lives in Ghent.")])


def stated(text: str) -> RuleColumns:
    return RuleColumns(
        content=text,
        timestamp=NOW,
        speaker=None,
        user_id=None,
        session_id="s",
        task_id=None,
        namespace=None,
        flagged=False,
    )


READERS: Mapping[str, Callable[[str], Any]] = {
    "words": words,
    "sentences": sentences,
    "passages": passages,
    "normal form": normal_form,
    "columns of a stored memory": lambda text: derive_text("agent", text, "Ada", tokens, NOW, SCREEN),
    "statements": lambda text: subjects_of("agent", stated(text)),
    "relation to another memory": judged,
    "rejection": rejection,
    "screening": lambda text: SCREEN(normal_form(text)),
    "worth reading by a model": is_worth_reading,
    "reasoning blocks": lambda text: (strip_all_reasoning(text), strip_leading_reasoning(text, cut_off=True)),
    "sources as a model reads them": lambda text: as_read([source(text), source(text, "assistant")]),
    "evidence": lambda text: (SourceTexts([source(text)]), ADA.sentences(text)),
    "a model's summary": lambda text: checked(text, [text], ADA, [source(text)], 99, tokens),
    "extractive summary": lambda text: summarize([source(text)], 300, tokens),
    "extraction for a context": lambda text: extract(text, {"ada"}, 200, tokens),
    "first sentences": lambda text: truncate_sentences(text, 200, tokens),
    "context rendering": rendered,
    "quotation": quoted,
    "query planning": lambda text: (asks_for_time(text), split(text), complete(text, ())),
    "times in a query": lambda text: windows(text, NOW),
    "questions about the past": asks_of_the_past,
    "import": lambda text: text_of(clean(text)),
    "import line": import_line,
    "tool arguments over MCP": tool_call,
    "token counter": lambda text: counter().count(text),
    **TOKENIZERS,
    "hashing embedder": lambda text: _embed([text], 64),
    "an error for the MCP client": discreet,
}  # fmt: skip


def cpu_seconds(read: Callable[[str], Any], text: str) -> float:
    """Returns the CPU time of this thread alone: other processes do not count."""
    begun = time.thread_time()
    read(text)
    return time.thread_time() - begun


def growth(read: Callable[[str], Any], unit: str, size: int, least: float) -> float:
    """Returns how much more CPU time 4 times the length takes; 0 if that is less than `least` seconds."""
    short, long = ((unit * (chars // len(unit) + 1))[:chars] for chars in (size // 4, size))
    found = 0.0
    # A busy machine only adds time, so the best measurement counts and one passing attempt suffices.
    for attempt in range(ATTEMPTS):
        slow = min(cpu_seconds(read, f"Ada {attempt}{n} {long}.") for n in range(1 + min(attempt, 2)))
        if slow < least:
            return 0.0
        fast = max(cpu_seconds(read, f"Ada {attempt}{n} {short}.") for n in range(2))
        found = slow / fast
        if found <= MAX_GROWTH:
            return found
    return found


def sustained_growth(read: Callable[[str], Any], unit: str, size: int, least: float) -> float:
    """Returns the smaller growth of two pairs of lengths, the second pair twice as long.

    One step is no superlinear growth: a text that no longer fits in a budget starts work that short ones skip.
    """
    found = growth(read, unit, size, least)
    return found if found <= MAX_GROWTH else min(found, growth(read, unit, 2 * size, least))


@pytest.mark.parametrize("name", READERS)
@pytest.mark.shows("issue5-3-hostile-texts", "B23", "A1", "issue13-growth")
def test_a_hostile_text_takes_time_in_proportion_to_its_length(name: str) -> None:
    read = READERS[name]
    ordinary = min(cpu_seconds(read, f"Ada {n} {(ORDINARY * LONG)[:LONG]}.") for n in range(2))
    least = max(LEAST_SECONDS, LEAST_MULTIPLE * ordinary)
    slow = {
        unit: found
        for unit, size in PATTERNS.items()
        if (found := sustained_growth(read, unit, size, least * size / LONG)) > MAX_GROWTH
    }
    assert slow == {}


MARKS, HANGUL = "a\u0301\u0323\u0327", "\u1100\u1161\u11a8"


@pytest.mark.parametrize("unit", [MARKS, "\u0301\u0323", "\ufdfa", "\u3313", HANGUL])
@pytest.mark.shows("A14-U+FDFA")
def test_the_longest_text_is_normalized_in_short_c_calls(unit: str) -> None:
    text = (unit * MAX_TEXT_CHARS)[:MAX_TEXT_CHARS]
    begun, longest = 0.0, 0.0

    def watch(frame: FrameType, event: str, called: Any) -> None:
        nonlocal begun, longest
        if called is unicodedata.normalize:
            now = time.thread_time()
            longest = max(longest, now - begun if event == "c_return" else 0.0)
            begun = now

    sys.setprofile(watch)
    try:
        normal_form(text)
    finally:
        sys.setprofile(None)
    # Some milliseconds; one call for the whole text took seconds.
    assert 0 < longest < 0.2


@pytest.mark.parametrize("char", ["\u4e00", "\u3042", ".", "-"])
@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.shows("A14-U+FDFA")
def test_the_local_model_reads_only_the_start_of_the_longest_text_without_blanks(char: str, name: str) -> None:
    TOKENIZERS[name]("loaded before it is timed")
    # About 25 ms on an idle machine, ten times that under load; the whole text took 650 ms.
    assert min(cpu_seconds(TOKENIZERS[name], char * MAX_TEXT_CHARS) for _ in range(3)) < 0.5


def test_a_number_with_too_many_digits_is_compared_without_an_error() -> None:
    assert judged("1" * 400).relation == "none"
