"""The labeled sets of linked notes match their data card."""

from __future__ import annotations

from collections import Counter

from agentcore.memory.lexical import terms
from agentcore.memory.models import SERVICE_RELATIONS
from benchmarks.linked_notes import sets

SETS = sets()


def test_there_are_forty_sets_with_a_needed_link_and_ten_with_an_irrelevant_one() -> None:
    assert Counter(each["kind"] for each in SETS) == {"linked": 40, "irrelevant": 10}
    assert sum(len(each["notes"]) for each in SETS) == 352
    assert {len(each["notes"]) for each in SETS} == {6, 7, 8}
    assert all((each["needed"] == each["linked"]) == (each["kind"] == "linked") for each in SETS)


def test_every_label_names_a_note_and_every_link_joins_answer_and_linked_note() -> None:
    for each in SETS:
        ids = {note["id"] for note in each["notes"]}
        assert {each["answer"], each["linked"], each["needed"]} <= ids
        assert {each["link"]["source"], each["link"]["target"]} == {each["answer"], each["linked"]}
        assert each["link"]["relation"] not in SERVICE_RELATIONS


def test_a_linked_note_has_no_term_of_its_question() -> None:
    for each in SETS:
        texts = {note["id"]: note["text"] for note in each["notes"]}
        assert not set(terms(each["query"])) & set(terms(texts[each["linked"]])), each["set"]
