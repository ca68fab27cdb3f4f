"""The ablation's switches: each patched entry point exists, is replaced within a block, counted and
restored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from agentcore.memory.embeddings import EmbedderOptions, EmbeddingKind, Vectors
from agentcore.memory.recall import reranking, searching
from agentcore.providers.hashing import HashingEmbedder
from benchmarks.ablated_parts import CHOICES, FROM_BELOW, PRODUCT, Part, Replacement, always, replaced
from benchmarks.ablation import (
    Answer,
    KeptEmbedder,
    Stored,
    asked_of,
    difference,
    figures,
    idle,
    report,
    spread,
    stores,
    unused,
)

SPLIT = Replacement("agentcore.memory.recall.searching:split", lambda prompt: [prompt.upper()])


@pytest.mark.parametrize("name", CHOICES)
def test_every_entry_point_exists(name: str) -> None:
    for each in CHOICES[name].replacements:
        owner, entry = each.place()
        assert callable(getattr(owner, entry))


def test_a_missing_entry_point_raises() -> None:
    with pytest.raises(AttributeError):
        Replacement("agentcore.memory.recall.searching:no_such_name", always(None)).place()


def test_a_replacement_is_counted_and_put_back_also_after_an_error() -> None:
    called: Counter[str] = Counter()
    original = vars(searching)["split"]
    with pytest.raises(ZeroDivisionError), replaced((SPLIT,), called):
        assert vars(searching)["split"]("a") == ["A"]
        raise ZeroDivisionError
    assert vars(searching)["split"] is original
    assert called == {SPLIT.entry: 1}


def test_a_part_can_be_replaced_twice_in_one_block() -> None:
    original = vars(reranking)["contradicted"]
    with replaced((*CHOICES["settling"].asking, *CHOICES["statements"].storing), Counter()):
        assert vars(reranking)["contradicted"]("ada", []) == {}
    assert vars(reranking)["contradicted"] is original


def test_parts_of_one_store_are_stored_alike_and_only_those_that_act_when_storing_have_a_store() -> None:
    by_store: dict[str, set[tuple[str, ...]]] = {}
    for part in CHOICES.values():
        by_store.setdefault(part.store, set()).add(tuple(each.entry for each in part.storing))
    assert by_store[""] == {()}
    assert all(len(storing) == 1 for storing in by_store.values())


def test_the_product_is_stored_and_asked_once_whatever_is_chosen() -> None:
    made = stores([CHOICES["facts"], *FROM_BELOW])
    assert [[part.name for part in each.parts] for each in made] == [
        [PRODUCT],
        ["facts"],
        [part.name for part in FROM_BELOW],
    ]


def test_a_limit_spreads_over_the_rows_of_the_first_agents() -> None:
    assert spread("abcdef", 3) == ["a", "c", "e"]
    assert spread("abc", None) == "abc"
    rows = {"one": [{"id": "1"}, {"id": "2"}], "two": [{"id": "3"}], "three": [{"id": "4"}]}
    asked = asked_of(list(rows), lambda name: rows[name], 3)
    assert [(name, [each["id"] for each in found]) for name, found in asked] == [("one", ["1", "2"]), ("two", ["3"])]


def test_a_difference_is_paired_and_leaves_out_what_does_not_apply() -> None:
    without = [Answer({"first": 0.0}, "b"), Answer({}, ""), Answer({"first": 1.0}, "a")]
    product = [Answer({"first": 1.0}, "a"), Answer({}, ""), Answer({"first": 1.0}, "a")]
    adds, low, high = difference(without, product, "first")
    assert adds == 50.0
    assert low <= adds <= high
    assert difference(product, product, "first") == [0.0, 0.0, 0.0]


def test_parts_without_effect_are_reported_apart_from_those_never_called() -> None:
    parts = [Part(PRODUCT), Part("useful"), Part("idle"), Part("unused")]
    called = {each.name: Counter({"entry": each.name != "unused"}) for each in parts}
    right, wrong = Answer({"first": 1.0}, ["a"]), Answer({"first": 0.0}, ["b"])
    answers = {each.name: [wrong if each.name == "useful" else right] for each in parts}
    found = figures([Stored("", parts, called, answers)])
    assert (found["product"], found["adds"]["useful"]["first"]) == ({"first": 100.0}, [100.0, 100.0, 100.0])
    assert (idle(found), unused(found)) == (["idle"], ["unused"])
    page = "\n".join(report("a set", found))
    assert "| useful | asking | 1 | **+100.0** (+100.0 to +100.0) |" in page
    assert "Without effect on this set: idle.\nNot called on this set: unused." in page


class CountingEmbedder(HashingEmbedder):
    def __init__(self) -> None:
        super().__init__(EmbedderOptions("counting", 16, Path("unused")))
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        self.asked += texts
        return await super().embed(texts, kind)


async def test_each_text_is_embedded_once_for_each_kind() -> None:
    inner = CountingEmbedder()
    kept = KeptEmbedder(inner)
    first = await kept.embed(["a fox", "a dog", "a fox"], "document")
    again = await kept.embed(["a dog", "a cat"], "document")
    await kept.embed(["a fox"], "query")
    assert inner.asked == ["a fox", "a dog", "a cat", "a fox"]
    assert np.array_equal(first[1], again[0])
    assert (await kept.embed([], "query")).shape == (0, 16)
