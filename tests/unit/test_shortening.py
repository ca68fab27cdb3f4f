"""Statements repeated by several context lines: which line keeps them, and the receipt's entry."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from agentcore.memory.compression import Context, build_context
from agentcore.memory.contexts.filling import Manner
from agentcore.memory.contexts.rendering import FORMATS, KNOWLEDGE, PAST, TASK, ContextEntry
from agentcore.memory.contexts.shortening import LEFT_OUT, extract
from agentcore.memory.lexical import terms

TEXT = (
    "We met at the harbour. The weather was dull and everybody was late. Ines ordered 14 crates of lemons. "
    "She paid 220 euros for them. Later we walked home along the wall. Nobody said much."
)


def words(text: str) -> int:
    return len(text.split())


def extracted(query: str, max_tokens: int) -> str:
    return extract(TEXT, frozenset(terms(query)), max_tokens, words)


@pytest.mark.shows("issue5-2-extraction")
def test_the_sentence_that_holds_the_querys_words_stays_with_its_numbers() -> None:
    assert extracted("how many lemons did Ines order", 9) == "Ines ordered 14 crates of lemons."


def test_what_stands_beside_it_comes_next_in_the_texts_order() -> None:
    assert extracted("lemons", 17) == "Ines ordered 14 crates of lemons. She paid 220 euros for them."


def test_where_something_is_left_out_an_ellipsis_stands() -> None:
    said = extracted("lemons harbour", 18)
    assert said == f"We met at the harbour.{LEFT_OUT}Ines ordered 14 crates of lemons."


def test_without_a_word_in_common_the_beginning_and_what_is_named_stay() -> None:
    assert extracted("zeppelin", 8) == "We met at the harbour."


def test_no_more_is_given_than_there_is_room_for() -> None:
    for room in range(40):
        assert words(extracted("lemons", room)) <= room


def test_nothing_is_left_of_a_sentence_that_does_not_fit() -> None:
    assert extract("word " * 400, frozenset(), 50, words) == ""
    assert extract("", frozenset(), 50, words) == ""


START = datetime(2026, 5, 1, 9, tzinfo=UTC)


def said(number: int, content: str, speaker: str | None = "user", section: str = PAST) -> ContextEntry:
    moment = START + timedelta(minutes=number)
    return ContextEntry(UUID(int=number), section, moment, speaker, content, content[:20])


def summary(number: int, content: str, *sources: int) -> ContextEntry:
    of = frozenset(UUID(int=each) for each in sources or (98, 99))
    return replace(said(number, content, None, KNOWLEDGE), sources=of)


def texts(built: Context) -> dict[int, str]:
    return {line.entry.memory_id.int: line.text for line in built.lines}


def build(*entries: ContextEntry, max_tokens: int = 500, manner: Manner | None = None) -> Context:
    built = build_context(entries, max_tokens, words, manner or Manner())
    assert built.token_count == words(built.text) <= max_tokens
    return built


TEA = said(1, "I drink green tea in the morning.")
SESSION = summary(9, "user: I drink green tea in the morning.\nuser: My cat is called Miso.", 1, 2)


@pytest.mark.parametrize("order", [(TEA, SESSION), (SESSION, TEA)])
def test_a_summary_goes_without_what_a_message_tells(order: tuple[ContextEntry, ...]) -> None:
    built = build(*order)
    assert texts(built) == {1: TEA.content, 9: "user: My cat is called Miso."}
    assert built.shortened == [UUID(int=9)]
    assert "\n2. user: My cat is called Miso.\n" in built.text


def test_a_summary_of_which_nothing_is_left_is_told_by_others() -> None:
    cat = said(3, "My cat is called Miso. She is two years old.")
    built = build(SESSION, TEA, cat)
    assert texts(built) == {1: TEA.content, 3: cat.content}
    assert list(built.left_out) == [(UUID(int=9), "told_by_others")]


def test_case_and_punctuation_make_no_difference_but_signs_questions_and_words_do() -> None:
    told = "I drink tea.\nIt is -5 there.\nDo we meet at noon?\nI like cats."
    other = "user: i drink \u201cTea\u201d!\nuser: It is 5 there.\nDo we meet at noon.\nI like all cats."
    assert texts(build(said(1, told), summary(9, other)))[9] == (
        "user: It is 5 there. Do we meet at noon. I like all cats."
    )


def test_what_another_speaker_says_in_the_same_words_is_told() -> None:
    told = summary(9, "Anna: I like green tea.")
    built = build(said(1, "I like green tea.", "Ben"), told, said(2, "Hi", "Anna"))
    assert texts(built)[9] == "Anna: I like green tea."


def test_what_nobody_is_named_for_is_told_by_anybody() -> None:
    built = build(said(1, "The launch is in May."), summary(9, "The launch is in May. It costs 9,000."))
    assert texts(built)[9] == "It costs 9,000."


def test_an_ellipsis_stands_where_something_in_between_is_left_out() -> None:
    told = summary(9, "Alma runs the shop. The launch is in May. It costs 9,000.")
    left = texts(build(said(1, "The launch is in May."), told))[9]
    assert left == "Alma runs the shop. \u2026 It costs 9,000."


def test_of_two_summaries_the_one_worth_less_goes_without() -> None:
    session = summary(8, "Alma runs the shop.")
    period = summary(9, "Alma runs the shop. Ben keeps the books.")
    assert texts(build(session, period)) == {8: "Alma runs the shop.", 9: "Ben keeps the books."}
    assert texts(build(period, session)) == {9: "Alma runs the shop. Ben keeps the books."}


def test_a_line_that_a_later_one_of_its_speaker_holds_goes() -> None:
    longer = said(2, "I drink green tea in the morning. At noon I drink water.")
    built = build(TEA, longer)
    assert texts(built) == {2: longer.content}
    assert list(built.left_out) == [(UUID(int=1), "told_by_others")]


@pytest.mark.parametrize(
    "longer",
    [
        said(0, "I drink green tea in the morning. At noon I drink water."),
        said(2, "I drink green tea in the morning. At noon I drink water.", "Ben"),
        said(2, "Nobody says that I drink green tea in the morning. At noon I drink water."),
    ],
    ids=["earlier", "of another", "not in a sentence of its own"],
)
def test_a_line_stays_beside_a_longer_one(longer: ContextEntry) -> None:
    assert set(texts(build(TEA, longer))) == {1, longer.memory_id.int}


def test_short_answers_and_a_tasks_own_notes_stay() -> None:
    assert len(texts(build(said(1, "Yes."), said(2, "Yes. That is the plan.")))) == 2
    note = said(1, "The disk is full.", section=TASK)
    assert len(texts(build(note, said(2, "The disk is full. Call Ben.", section=TASK)))) == 2


def test_whoever_wants_copies_gets_them() -> None:
    built = build(TEA, SESSION, manner=Manner(distinct=False))
    assert texts(built)[9] == "user: I drink green tea in the morning. user: My cat is called Miso."


def test_the_room_of_what_is_told_goes_to_something_else() -> None:
    extra = said(5, "On Fridays the two of us walk to the harbour.")
    room = build(TEA, SESSION).token_count + 12
    assert words(build(TEA, SESSION, manner=Manner(distinct=False)).text) <= room
    assert 5 not in texts(build(TEA, SESSION, extra, max_tokens=room, manner=Manner(distinct=False)))
    assert set(texts(build(TEA, SESSION, extra, max_tokens=room))) == {1, 5, 9}


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_the_numbers_are_the_places_of_the_ids_in_every_form(form: str) -> None:
    cat, bye = said(3, "My cat is called Miso."), said(4, "Bye.")
    built = build(SESSION, TEA, cat, bye, manner=Manner(FORMATS[form]))
    assert [line.entry.memory_id.int for line in built.lines] == [1, 3, 4]
    assert built.text.count("Miso") == 1
