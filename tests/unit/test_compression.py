"""Building a context: sections, order, budget, and items over the budget."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from agentcore.memory.compression import Context, build_context, compress_memory_sequence
from agentcore.memory.contexts.fencing import CLOSING, NOTICE, OPENING
from agentcore.memory.contexts.filling import PLAIN, Manner
from agentcore.memory.contexts.rendering import FORMATS, KNOWLEDGE, PAST, TASK, ContextEntry

START = datetime(2026, 5, 1, 9, tzinfo=UTC)
LONG = " ".join(f"On trip {number} the ferry carried crates of lemons to the island." for number in range(60))
ANSWER = "The captain is called Benedita."


def entry(number: int, section: str = PAST, content: str = "", summary: str = "short") -> ContextEntry:
    moment = START + timedelta(minutes=number)
    return ContextEntry(UUID(int=number), section, moment, "anna", content or f"memory {number}", summary)


def words(text: str) -> int:
    return len(text.split())


def numbers(text: str) -> list[str]:
    return [line.split(".")[0] for line in text.splitlines() if line.split(".")[0].isdigit()]


def test_sections_stand_in_order_and_lines_in_time_order() -> None:
    built = build_context([entry(5), entry(2), entry(3, KNOWLEDGE), entry(1, TASK)], 500, words)
    headings = [line for line in built.text.splitlines() if line.startswith("## ")]
    assert headings == ["## Current Task Context", "## Relevant Past Interactions", "## Relevant Knowledge"]
    assert [line.entry.memory_id.int for line in built.lines] == [1, 2, 5, 3]
    assert built.text.index("memory 2") < built.text.index("memory 5")
    assert built.text.startswith(f"{OPENING}\n{NOTICE}\n")
    assert built.text.endswith(f"\n{CLOSING}\n")


def test_the_number_of_a_line_is_its_place_among_the_ids() -> None:
    built = build_context([entry(5), entry(2), entry(3, KNOWLEDGE), entry(1, TASK)], 500, words)
    assert numbers(built.text) == ["1", "2", "3", "4"]
    for number, line in enumerate(built.lines, 1):
        assert f"\n{number}. anna: {line.entry.content}\n" in built.text


@pytest.mark.shows("issue5-1-order")
def test_what_was_said_together_stands_under_one_time() -> None:
    built = build_context([entry(1), entry(2), entry(50), entry(70)], 500, words)
    assert [line for line in built.text.splitlines() if line.startswith("2026-")] == [
        "2026-05-01 09:01",
        "2026-05-01 10:10",
    ]


@pytest.mark.shows("issue5-1-order")
def test_a_session_stands_in_one_piece_beside_another_of_the_same_hour() -> None:
    talks = [replace(entry(number), session_id="ab"[number % 2]) for number in range(6)]
    built = build_context(talks, 500, words)
    assert [line.entry.memory_id.int for line in built.lines] == [0, 2, 4, 1, 3, 5]
    assert built.text.count("2026-05-01 09:0") == 2


@pytest.mark.shows("FR-3.2")
def test_of_what_is_too_long_the_sentences_stand_that_tell_of_the_query() -> None:
    long = entry(1, content=f"{LONG} {ANSWER} {LONG}")
    built = build_context([long], 100, words, Manner(query_terms=frozenset({"captain"})))
    assert ANSWER in built.text
    assert built.token_count <= 100
    assert (built.shortened, list(built.left_out)) == ([long.memory_id], [])


def test_what_has_no_sentence_that_fits_stands_by_its_summary() -> None:
    long = entry(1, content="word " * 300, summary="the gist")
    built = build_context([long], 60, words)
    assert "the gist" in built.text
    assert built.shortened == [long.memory_id]


def test_what_does_not_fit_is_left_out_by_name() -> None:
    entries = [entry(number, content=f"w{number} " * 20, summary="word " * 20) for number in range(1, 11)]
    built = build_context(entries, 80, words)
    assert built.token_count <= 80
    there = {line.entry.memory_id for line in built.lines}
    assert [(each, why) for each, why in built.left_out] == [
        (each.memory_id, "beyond_max_tokens") for each in entries if each.memory_id not in there
    ]
    assert built.left_out


def test_the_same_words_of_the_same_speaker_stand_once_and_the_task_stays_whole() -> None:
    same = [entry(number, content="The gate  is red.") for number in (1, 2)]
    other = replace(entry(3, content="the gate is red."), speaker="rui")
    built = build_context([*same, other], 500, words)
    assert [line.entry.memory_id.int for line in built.lines] == [1, 3]
    assert list(built.left_out) == [(UUID(int=2), "same_text")]
    task = [entry(number, TASK, content="The gate is red.") for number in (1, 2)]
    assert len(build_context([*task, entry(4, content="The gate is red.")], 500, words).lines) == 2
    assert len(build_context(same, 500, words, Manner(distinct=False)).lines) == 2


def test_a_budget_too_small_for_anything_gives_an_empty_context() -> None:
    built = build_context([entry(1)], 1, words)
    assert (built.text, built.token_count, len(built.left_out)) == ("", 0, 1)


@pytest.mark.shows("issue5-1-used-well")
def test_room_that_a_long_memory_leaves_is_filled_with_shorter_ones() -> None:
    found = [replace(entry(number), rank=number, score=1 - number / 100) for number in range(40)]
    found[5] = replace(found[5], content=LONG)
    built = build_context(found, 120, words)
    assert built.token_count > 110
    assert UUID(int=5) not in {line.entry.memory_id for line in built.lines if not line.shortened}


def test_behind_the_best_a_long_text_of_nearly_the_same_worth_stands_after_shorter_ones() -> None:
    best = [replace(entry(number), rank=number, score=0.9) for number in range(3)]
    long = replace(entry(3, content=LONG), rank=3, score=0.8)
    short = [replace(entry(number, content="lemon " * 20), rank=number, score=0.79) for number in range(4, 9)]
    short = [replace(each, content=f"{each.content} {each.rank}") for each in short]
    built = build_context([*best, long, *short], 200, words)
    assert {each.memory_id for each in short} <= {line.entry.memory_id for line in built.lines}


def test_the_current_task_leaves_half_of_the_budget_to_the_rest() -> None:
    task = [entry(number, TASK, content=f"{number} " * 30, summary="word " * 30) for number in range(1, 11)]
    built = build_context([*task, entry(99, content="found it")], 200, words)
    assert "found it" in built.text
    assert sum(line.entry.section == TASK for line in built.lines) >= 3


def test_the_tasks_own_answer_comes_before_all_that_was_found() -> None:
    answer = replace(entry(1, TASK, content="answer " * 70, summary="the gist"), rank=0)
    noise = [entry(number, content=f"noise{number} " * 20, summary="noise " * 20) for number in range(2, 20)]
    built = build_context([answer, *noise], 110, words)
    assert ("answer " * 70).strip() in built.text
    assert built.lines[0].shortened is False


def test_what_was_found_gets_a_share_of_the_room_where_little_speaks_for_it() -> None:
    found = [entry(number, content=f"noise{number} " * 9) for number in range(40)]
    task = [entry(100, TASK, content="step one")]
    whole = build_context([*task, *found], 300, words)
    quarter = build_context([*task, *found], 300, words, Manner(found_share=0.25))
    assert "step one" in quarter.text
    assert 50 < quarter.token_count < 120 < whole.token_count


def test_an_empty_section_takes_no_room() -> None:
    task = entry(1, TASK, content="word " * 200, summary="word " * 200)
    alone = build_context([entry(2, content="found it")], 21, words)
    assert "found it" in alone.text
    assert build_context([task, entry(2, content="found it")], 21, words).text == alone.text


def test_a_sequence_is_compressed_in_the_order_of_its_importance() -> None:
    lines = compress_memory_sequence([entry(1, content="a " * 8), entry(2, content="b " * 8)], 32, words)
    assert [line.entry.memory_id.int for line in lines] == [1]


def test_what_was_stored_with_more_tokens_than_there_are_is_not_counted_again() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return words(text)

    long = "word " * 50_000
    known = [replace(entry(number, content=f"{number} {long}"), content_tokens=50_000) for number in (1, 2)]
    unknown = [entry(number, TASK, content=long) for number in (3, 4)]
    built = build_context([*known, *unknown], 200, count)
    assert (len(built.shortened), list(built.left_out)) == (4, [])
    assert max(len(text) for text in counted) < 1_000


def test_no_text_is_counted_twice() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return words(text)

    task = [entry(number, TASK, content=f"{number} " * 20, summary="word " * 10) for number in range(1, 11)]
    built = build_context([*task, *(entry(number) for number in range(20, 30))], 120, count)
    assert built.left_out
    assert len(counted) == len(set(counted))


def test_a_whole_that_counts_more_than_its_lines_loses_the_least_important_ones() -> None:
    whole: list[str] = []

    def count(text: str) -> int:
        extra = 40 if text.count("anna: ") > 1 else 0
        whole.extend([text] if extra else [])
        return words(text) + extra

    built = build_context([entry(number) for number in range(1, 61)], 200, count)
    assert built.token_count == count(built.text) <= 200
    assert [line.entry.memory_id.int for line in built.lines] == list(range(1, len(built.lines) + 1))
    assert len(built.lines) > 20
    assert len(whole) <= 4


def test_json_says_the_same_as_the_lines() -> None:
    entries = [entry(5), entry(2), replace(entry(3, KNOWLEDGE, content='a "fact"'), speaker=None)]
    told = json.loads(build_context(entries, 500, words, Manner(FORMATS["json"])).text)
    assert told == {
        "notice": NOTICE,
        PAST: [
            {
                "time": "2026-05-01 09:02",
                "memories": [
                    {"n": 1, "speaker": "anna", "text": "memory 2"},
                    {"n": 2, "speaker": "anna", "text": "memory 5"},
                ],
            }
        ],
        KNOWLEDGE: [{"time": "2026-05-01", "memories": [{"n": 3, "text": 'a "fact"'}]}],
    }


def test_plain_text_has_headings_without_marks() -> None:
    built = build_context([entry(1)], 500, words, Manner(FORMATS["text"]))
    assert "\nRelevant Past Interactions:\n2026-05-01 09:01\n1. anna: memory 1\n" in built.text
    assert "#" not in built.text


def fact(number: int, parent: int, content: str) -> ContextEntry:
    return replace(entry(number, KNOWLEDGE, content), parent_id=UUID(int=parent))


def test_a_fact_stands_back_where_the_memory_it_was_read_from_stands() -> None:
    parent = entry(1, content="I moved to Ghent, and my sister helped me.")
    read = fact(2, 1, "The user moved to Ghent.")
    for entries in ([parent, read], [read, parent], [read, entry(3), parent]):
        built = build_context(entries, 500, words)
        assert UUID(int=1) in {line.entry.memory_id for line in built.lines}
        assert list(built.left_out) == [(UUID(int=2), "told_by_parent")]
        assert "The user moved" not in built.text


def test_where_a_memory_does_not_fit_the_facts_read_from_it_stand_for_it() -> None:
    parent = entry(1, content=f"{LONG} {ANSWER}")
    read = fact(2, 1, "The captain of the lemon ferry is Benedita.")
    for entries in ([parent, read], [read, parent]):
        built = build_context(entries, 120, words)
        assert [line.entry.memory_id.int for line in built.lines] == [2]
        assert list(built.left_out) == [(UUID(int=1), "beyond_max_tokens")]
        assert built.token_count <= 120


def test_a_memory_that_neither_fits_nor_has_a_fact_that_does_is_shortened() -> None:
    parent = entry(1, content=f"{LONG} {ANSWER}")
    read = fact(2, 1, LONG)
    built = build_context([parent, read], 200, words, Manner(query_terms=frozenset({"captain"})))
    assert UUID(int=1) in built.shortened


def summary(number: int, *sources: int, content: str = "") -> ContextEntry:
    of = frozenset(UUID(int=each) for each in sources)
    return replace(entry(number, KNOWLEDGE, content or f"summary {number}"), sources=of)


def stands(built: Context) -> list[int]:
    return sorted(line.entry.memory_id.int for line in built.lines)


def ranked(*entries: ContextEntry) -> list[ContextEntry]:
    return [replace(each, rank=rank) for rank, each in enumerate(entries)]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (1, 0, 2)])
@pytest.mark.shows("issue5-2-reused", "issue5-2-summaries")
def test_a_summary_adds_nothing_to_its_sources(order: tuple[int, ...]) -> None:
    found = (summary(9, 1, 2), entry(1), entry(2))
    built = build_context(ranked(*(found[place] for place in order)), 500, words)
    assert stands(built) == [1, 2]
    assert list(built.left_out) == [(UUID(int=9), "told_by_sources")]
    assert built.token_count == words(built.text)


def test_a_summary_of_more_than_stands_there_is_told() -> None:
    built = build_context(ranked(summary(9, 1, 2, 3), entry(1), entry(2)), 500, words)
    assert stands(built) == [1, 2, 9]
    assert list(built.left_out) == []


@pytest.mark.shows("FR-3.2", "issue5-2-reused")
def test_a_periods_summary_adds_nothing_to_those_of_its_sessions_or_to_what_they_are_of() -> None:
    period, one, other = summary(9, 7, 8), summary(7, 1, 2), summary(8, 3)
    built = build_context(ranked(period, one, other, entry(1), entry(2)), 500, words)
    assert stands(built) == [1, 2, 8]
    assert dict(built.left_out) == {UUID(int=9): "told_by_sources", UUID(int=7): "told_by_sources"}
    built = build_context(ranked(period, one), 500, words)
    assert stands(built) == [7, 9]


def test_the_room_of_a_summary_that_is_told_is_used_again() -> None:
    said = [entry(number, content=f"so many words as {number} fit in here") for number in (1, 2, 3)]
    told = summary(9, 1, 2, content="these are the words of a summary of both of them")
    unlike = replace(told, sources=frozenset())
    room = build_context(ranked(unlike, *said[:2]), 500, words).token_count
    assert stands(build_context(ranked(unlike, *said), room, words)) == [1, 2, 9]
    built = build_context(ranked(told, *said), room, words)
    assert stands(built) == [1, 2, 3]


@pytest.mark.shows("issue5-2-reused")
def test_of_what_does_not_fit_its_summary_stands_there_before_any_shortening() -> None:
    best = [entry(number) for number in (1, 2, 3)]
    long = entry(4, content=f"{LONG} {ANSWER}")
    told = summary(9, 4, 5, content="They told of lemons and of Benedita.")
    manner = Manner(query_terms=frozenset({"captain", "benedita"}))
    built = build_context(ranked(*best, long), 110, words, manner)
    assert built.shortened == [UUID(int=4)]
    built = build_context(ranked(*best, long, told), 110, words, manner)
    assert stands(built) == [1, 2, 3, 9]
    assert list(built.left_out) == [(UUID(int=4), "beyond_max_tokens")]


def test_of_the_best_that_does_not_fit_its_own_sentences_are_told() -> None:
    long = entry(4, content=f"{LONG} {ANSWER}")
    manner = Manner(query_terms=frozenset({"captain", "benedita"}))
    built = build_context(ranked(long, summary(9, 4, 5)), 110, words, manner)
    assert built.shortened == [UUID(int=4)]
    assert ANSWER in built.text


@pytest.mark.shows("FR-3.2")
def test_a_summary_that_was_not_found_stands_for_what_has_no_room_and_is_not_left_out() -> None:
    best = [entry(number) for number in (1, 2, 3)]
    long = [entry(number, content=f"{LONG} {number}") for number in (4, 5)]
    told = summary(9, 4, 5, content="They told of lemons and of Benedita.")
    built = build_context(ranked(*best, *long), 110, words, PLAIN, [told])
    assert stands(built) == [1, 2, 3, 9]
    assert {each.int for each, _ in built.left_out} == {4, 5}
    roomy = build_context(ranked(*best, *long), 5_000, words, PLAIN, [told])
    assert stands(roomy) == [1, 2, 3, 4, 5]
    assert list(roomy.left_out) == []
