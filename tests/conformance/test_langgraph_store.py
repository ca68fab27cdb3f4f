"""Conformance with LangGraph's store: its in-memory store and ours, embedded and remote, behave the same."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from agentcore.integrations.langgraph import AgentCoreStore
from agentcore.runtime import Runtime
from tests.fixtures.memory_faces import FACES

PLACES = ("LangGraph's own", "manager", "HTTP client")
USER = ("users", "ada")
DEEP = {
    "text": "Zürich 🦜 \x00 \ud800",
    "number": 1.0,
    "large": 10**30,
    "small": 5e-324,
    "yes": True,
    "nothing": None,
    "list": [1, [2, {"three": [3.5]}], []],
    "empty": {},
    "": "no name",
    "z": 1,
    "a": 2,
    "history": [{"turn": number, "said": f"line {number}"} for number in range(2_000)],
}


def vectors(texts: Sequence[str]) -> list[list[float]]:
    """Returns bag-of-words vectors, hashed by letters: equal words give equal vectors."""

    def vector(text: str) -> list[float]:
        counts = [0.0] * 64
        for word in re.findall(r"\w+", text.lower()):
            counts[sum(map(ord, word)) % 64] += 1.0
        return counts

    return [vector(text) for text in texts]


@pytest.fixture(params=PLACES)
async def store(request: pytest.FixtureRequest, runtime: Runtime) -> AsyncIterator[BaseStore]:
    """Each store, empty."""
    if request.param == PLACES[0]:
        index: IndexConfig = {"dims": 64, "embed": vectors, "fields": ["$"]}
        yield InMemoryStore(index=index)
        return
    async with FACES[request.param](runtime, f"agent-{uuid.uuid4()}") as memory:
        yield AgentCoreStore(memory)


def keys(items: list[Any]) -> list[str]:
    return [item.key for item in items]


@pytest.mark.shows("issue6-5-LangGraph")
async def test_a_value_comes_back_exactly_as_it_was_put(store: BaseStore) -> None:
    await store.aput(USER, "deep", DEEP)
    item = await store.aget(USER, "deep")
    assert item is not None
    assert item.value == DEEP
    assert list(item.value) == list(DEEP)
    assert [type(each) for each in item.value.values()] == [type(each) for each in DEEP.values()]
    assert (item.namespace, item.key) == (USER, "deep")
    assert item.created_at.tzinfo is not None
    assert item.created_at <= item.updated_at


async def test_a_key_is_one_items_in_its_own_namespace_alone(store: BaseStore) -> None:
    for namespace in (USER, ("users",), ("users", "ada", "x"), ("users/ada",), ("users", "Ada")):
        await store.aput(namespace, "name", {"in": list(namespace)})
    for namespace in (USER, ("users",), ("users", "ada", "x"), ("users/ada",), ("users", "Ada")):
        item = await store.aget(namespace, "name")
        assert item is not None
        assert item.value == {"in": list(namespace)}
    assert await store.aget(("ada",), "name") is None
    assert await store.aget(USER, "nam") is None
    assert await store.aget(USER, "name?") is None


async def test_a_put_takes_the_place_of_the_whole_value(store: BaseStore) -> None:
    await store.aput(USER, "prefs", {"theme": "dark", "size": 3})
    first = await store.aget(USER, "prefs")
    await store.aput(USER, "prefs", {"theme": "light"})
    second = await store.aget(USER, "prefs")
    assert first is not None
    assert second is not None
    assert second.value == {"theme": "light"}
    assert second.updated_at > first.updated_at
    assert keys(await store.asearch(USER)) == ["prefs"]


async def test_none_and_delete_take_an_item_away_and_it_may_come_again(store: BaseStore) -> None:
    await store.aput(USER, "a", {"n": 1})
    await store.aput(USER, "b", {"n": 2})
    await store.adelete(USER, "a")
    await store.abatch([PutOp(USER, "b", None)])
    await store.adelete(USER, "never there")
    assert [await store.aget(USER, key) for key in "ab"] == [None, None]
    assert await store.asearch(()) == []
    await store.aput(USER, "a", {"n": 3})
    assert [item.value for item in await store.asearch(USER)] == [{"n": 3}]


async def test_a_search_sees_what_lies_below_its_prefix_a_page_at_a_time(store: BaseStore) -> None:
    for number in range(12):
        await store.aput(("docs", "v1"), f"k{number:02}", {"n": number})
    await store.aput(("docs",), "top", {"n": 100})
    await store.aput(("docsx", "v1"), "other", {"n": 101})
    assert keys(await store.asearch(("docs", "v1"))) == [f"k{number:02}" for number in range(10)]
    assert keys(await store.asearch(("docs", "v1"), limit=5, offset=10)) == ["k10", "k11"]
    assert keys(await store.asearch(("docs", "v1"), limit=3, offset=2)) == ["k02", "k03", "k04"]
    assert await store.asearch(("docs", "v1"), offset=12) == []
    assert len(await store.asearch(("docs",), limit=50)) == 13
    assert len(await store.asearch((), limit=50)) == 14
    assert await store.asearch(("v1",)) == []


FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"a", "b", "c"}),
    ({"color": "red"}, {"a", "c"}),
    ({"color": {"$eq": "red"}}, {"a", "c"}),
    ({"color": {"$ne": "red"}}, {"b"}),
    ({"score": {"$gt": 4.5}}, {"b", "c"}),
    ({"score": {"$gte": 4.5}}, {"a", "b", "c"}),
    ({"score": {"$lt": 5}}, {"a"}),
    ({"score": {"$lte": 5}}, {"a", "b"}),
    ({"score": {"$gt": 4.5, "$lt": 6}, "color": "red"}, set()),
    ({"score": {"$gt": 4.5, "$lt": 6}, "color": "blue"}, {"b"}),
    ({"missing": None}, {"a", "b", "c"}),
    ({"missing": {"$ne": 1}}, {"a", "b", "c"}),
    ({"owner": {"name": "Ada"}}, {"a"}),
    ({"owner": {"name": {"$ne": "Ada"}}}, {"b"}),
    ({"tags": ["x", "y"]}, {"a"}),
    ({"tags": ["y", "x"]}, set()),
    ({"tags": ["x"]}, {"b"}),
    ({"score": 5}, {"b"}),
    ({"done": True}, {"c"}),
    ({"done": False}, set()),
]


@pytest.mark.shows("issue6-5-LangGraph")
async def test_filters_mean_the_same(store: BaseStore) -> None:
    await store.abatch(
        [
            PutOp(USER, "a", {"color": "red", "score": 4.5, "owner": {"name": "Ada", "age": 3}, "tags": ["x", "y"]}),
            PutOp(USER, "b", {"color": "blue", "score": 5, "owner": {"name": "Bo"}, "tags": ["x"]}),
            PutOp(USER, "c", {"color": "red", "score": 7, "done": True}),
        ]
    )
    for wanted, found in FILTERS:
        assert set(keys(await store.asearch(USER, filter=wanted))) == found, wanted
        assert set(keys(await store.asearch(USER, filter=wanted, query="red or blue"))) == found, wanted


async def test_an_unknown_operator_is_a_value_error(store: BaseStore) -> None:
    await store.aput(USER, "a", {"n": 1})
    with pytest.raises(ValueError, match="Unsupported operator"):
        await store.asearch(USER, filter={"n": {"$regex": "1"}})


async def test_filters_and_pages_go_together(store: BaseStore) -> None:
    await store.abatch([PutOp(USER, f"k{n:02}", {"n": n, "even": n % 2 == 0}) for n in range(20)])
    even = await store.asearch(USER, filter={"even": True}, limit=3, offset=4)
    assert [item.value["n"] for item in even] == [8, 10, 12]


async def test_a_query_puts_what_fits_first_with_a_score(store: BaseStore) -> None:
    await store.aput(USER, "bike", {"text": "The blue bicycle needs a new chain."})
    await store.aput(USER, "bird", {"text": "I love African Grey parrots."})
    await store.aput(USER, "tea", {"text": "Green tea in the morning."})
    await store.aput(("users", "bo"), "bird", {"text": "African Grey parrots are too loud."})
    found = await store.asearch(USER, query="African Grey parrots")
    assert found[0].key == "bird"
    assert found[0].score is not None
    assert {item.key for item in found} == {"bike", "bird", "tea"}
    assert keys(await store.asearch(USER, query="African Grey parrots", limit=1)) == ["bird"]
    assert {item.namespace for item in await store.asearch(("users",), query="African parrots", limit=2)} == {
        USER,
        ("users", "bo"),
    }


async def test_what_is_not_indexed_is_found_by_key_filter_and_listing_but_by_no_query(store: BaseStore) -> None:
    await store.aput(USER, "hidden", {"text": "African Grey parrots"}, index=False)
    await store.aput(USER, "shown", {"text": "The blue bicycle"})
    first, second = await store.asearch(USER, query="African Grey parrots")
    assert (second.key, second.score) == ("hidden", None)
    assert first.key == "shown"
    assert keys(await store.asearch(USER, filter={"text": "African Grey parrots"})) == ["hidden"]
    assert await store.aget(USER, "hidden") is not None
    await store.aput(USER, "hidden", {"text": "African Grey parrots"})
    [found, *_] = await store.asearch(USER, query="African Grey parrots")
    assert (found.key, found.score is None) == ("hidden", False)


async def test_an_index_of_paths_is_all_that_is_searched(store: BaseStore) -> None:
    lines = [{"said": "African Grey parrots"}, {"said": "green tea"}]
    value = {"title": "Winter", "lines": lines, "no": "bicycle"}
    await store.aput(USER, "talk", value, index=["lines[*].said"])
    await store.aput(USER, "bike", {"text": "bicycle"})
    [found, *_] = await store.asearch(USER, query="African Grey parrots", limit=1)
    assert (found.key, found.value) == ("talk", value)
    [found, *_] = await store.asearch(USER, query="bicycle", limit=1)
    assert found.key == "bike"


SPACES = [("a", "b", "c"), ("a", "b", "d", "e"), ("a", "b", "d", "i"), ("a", "b", "f"), ("a", "c", "f"), ("b",)]
LISTINGS: list[dict[str, Any]] = [
    {},
    {"prefix": ("a", "b")},
    {"prefix": ("a", "b"), "max_depth": 3},
    {"suffix": ("f",)},
    {"prefix": ("a", "*", "f")},
    {"suffix": ("*", "e")},
    {"prefix": ("a",), "suffix": ("f",)},
    {"max_depth": 1},
    {"limit": 2},
    {"limit": 2, "offset": 3},
    {"prefix": ("z",)},
    {"prefix": ("a", "b", "c", "x")},
]


@pytest.mark.shows("issue6-5-LangGraph")
async def test_namespaces_are_listed_the_same(store: BaseStore) -> None:
    reference = InMemoryStore()
    for each in (store, reference):
        # Values differ, because LangGraph's own store fails on equal texts in one batch.
        await each.abatch([PutOp(space, key, {"is": [*space, key]}) for space in SPACES for key in ("x", "y")])
    for asked in LISTINGS:
        assert await store.alist_namespaces(**asked) == await reference.alist_namespaces(**asked), asked


@pytest.mark.shows("issue6-5-LangGraph")
async def test_a_batch_answers_in_order_reads_what_was_there_before_and_keeps_the_last_put(store: BaseStore) -> None:
    await store.aput(USER, "old", {"n": 0})
    results = await store.abatch(
        [
            PutOp(USER, "new", {"n": 1}),
            GetOp(USER, "new"),
            GetOp(USER, "old"),
            PutOp(USER, "new", {"n": 2}),
            SearchOp(USER),
            PutOp(USER, "old", None),
            ListNamespacesOp(match_conditions=(MatchCondition("prefix", ("users",)),)),
            PutOp(("projects",), "p", {"n": 3}),
        ]
    )
    assert [results[index] for index in (0, 1, 3, 5, 7)] == [None] * 5
    assert isinstance(results[2], Item)
    assert results[2].value == {"n": 0}
    assert isinstance(results[4], list)
    assert keys(results[4]) == ["old"]
    assert results[6] == [USER]
    after = await store.abatch([GetOp(USER, "new"), GetOp(USER, "old"), GetOp(("projects",), "p")])
    assert [item.value if isinstance(item, Item) else item for item in after] == [{"n": 2}, None, {"n": 3}]


async def test_a_large_batch_keeps_its_order(store: BaseStore) -> None:
    await store.abatch([PutOp(USER, f"k{n:03}", {"n": n}) for n in range(300)])
    assert [item.value["n"] for item in await store.asearch(USER, limit=300)] == list(range(300))
    got = await store.abatch([GetOp(USER, f"k{n:03}") for n in range(299, 279, -1)])
    assert [item.value["n"] for item in got if isinstance(item, Item)] == list(range(299, 279, -1))


async def test_puts_of_one_key_at_the_same_time_leave_one_item(store: BaseStore) -> None:
    await asyncio.gather(*(store.aput(USER, "one", {"n": n}) for n in range(10)))
    [item] = await store.asearch(USER)
    assert item.value in [{"n": n} for n in range(10)]


async def test_namespaces_that_cannot_be_are_refused(store: BaseStore) -> None:
    for namespace in ((), ("a.b",), ("",), ("langgraph", "x")):
        with pytest.raises(InvalidNamespaceError):
            await store.aput(namespace, "k", {"n": 1})
    with pytest.raises(InvalidNamespaceError):
        await store.aget(("a.b",), "k")


HOSTILE = ["/x", "a:b", "a/b", "a?b", "%2F", "*", "#", " ", "\n", "é" * 300, "'; DROP TABLE memories; --"]


async def test_any_label_and_key_is_kept_as_it_is(store: BaseStore) -> None:
    for text in HOSTILE:
        assert await kept_as_it_is(store, text), text


async def kept_as_it_is(store: BaseStore, text: str) -> bool:
    """Checks that the text is preserved as a namespace label and as a key."""
    await store.aput((text, "x"), f"../{text}", {"n": 1})
    await store.aput((text,), text, {"n": 2})
    item = await store.aget((text, "x"), f"../{text}")
    found = keys(await store.asearch((text,), limit=5))
    spaces = set(await store.alist_namespaces())
    return (
        item is not None
        and (item.namespace, item.key, item.value) == ((text, "x"), f"../{text}", {"n": 1})
        and found == [f"../{text}", text]
        and {(text,), (text, "x")} <= spaces
    )


async def test_code_without_await_is_answered_the_same(store: BaseStore) -> None:
    def session() -> tuple[Any, ...]:
        store.put(USER, "a", {"n": 1})
        store.put(USER, "b", {"n": 2})
        store.delete(USER, "b")
        item = store.get(USER, "a")
        assert item is not None
        return item.value, keys(store.search(USER, query="n")), store.list_namespaces(), store.get(USER, "b")

    assert await asyncio.to_thread(session) == ({"n": 1}, ["a"], [USER], None)
