"""Methods of a memory accept a params object or its fields as keyword arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast, get_type_hints
from uuid import UUID

import pytest

from agentcore.client import MemoryClient, SyncMemoryClient
from agentcore.errors import InvalidParams
from agentcore.memory.api import METHODS, AnyMethod, MemoryApi, Method, P, ParamsT, ResultT
from agentcore.memory.manager import MemoryOperations
from agentcore.memory.models import Interaction
from agentcore.params import ListParams, RetrieveParams, StoreParams, UpdateParams, Updates
from tests.fixtures.scripted_transport import Script, result

TOKEN = "token"
MEMORY_ID = UUID("7f4f3f0e-32a5-4f5e-9d8f-6b7c8d9e0f1a")
TURN = Interaction(query="When?", response="On Friday.")


class Recorder(MemoryApi):
    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []

    async def call(self, method: Method[P, ParamsT, ResultT], params: ParamsT) -> ResultT:
        self.asked.append((method.attribute, params))
        answer: Any = method.result.model_construct()
        return cast(ResultT, answer)


@pytest.mark.parametrize(
    ("attribute", "given", "fields", "expected"),
    [
        ("store", ("Ada likes tea",), {"user_id": "anna"}, StoreParams(content="Ada likes tea", user_id="anna")),
        ("store", (), {"content": "Ada likes tea"}, StoreParams(content="Ada likes tea")),
        ("store", (TURN,), {"tags": ["plan"]}, StoreParams(interaction=TURN, tags=["plan"])),
        ("store", (StoreParams(content="a"),), {}, StoreParams(content="a")),
        ("retrieve", ("tea?",), {"k": 3}, RetrieveParams(query="tea?", k=3)),
        ("retrieve", ("tea?", 3), {}, RetrieveParams(query="tea?", k=3)),
        ("list", (), {}, ListParams()),
        ("list", (), {"user_id": "anna"}, ListParams(user_id="anna")),
        (
            "update",
            (MEMORY_ID,),
            {"content": "b", "importance": 0.9},
            UpdateParams(memory_id=MEMORY_ID, updates=Updates(content="b", importance=0.9)),
        ),
        (
            "update",
            (str(MEMORY_ID),),
            {"updates": {"pinned": True}, "content": "b"},
            UpdateParams(memory_id=MEMORY_ID, updates=Updates(pinned=True, content="b")),
        ),
    ],
)
@pytest.mark.shows("B4-keywords")
async def test_fields_become_the_params(
    attribute: str, given: tuple[Any, ...], fields: Mapping[str, Any], expected: Any
) -> None:
    memory = Recorder()
    await getattr(memory, attribute)(*given, **fields)
    [(asked, params)] = memory.asked
    assert (asked, params) == (attribute, expected)
    assert params.model_dump(exclude_unset=True) == expected.model_dump(exclude_unset=True)


@pytest.mark.parametrize(
    ("attribute", "given", "fields", "said"),
    [
        ("store", ("tea",), {"user": "anna"}, "memory.store: user is not a known field"),
        ("retrieve", (), {"k": 3}, "memory.retrieve: query is required"),
        ("update", (MEMORY_ID,), {"contnt": "b"}, "memory.update: updates.contnt is not a known field"),
        ("get", ("7",), {}, "memory.get: memory_id is not a memory id (a UUID such as "),
    ],
)
@pytest.mark.shows("B4-keywords")
async def test_a_wrong_name_or_value_is_refused_before_anything_is_sent(
    attribute: str, given: tuple[Any, ...], fields: Mapping[str, Any], said: str
) -> None:
    script = Script(result({}))
    async with MemoryClient("http://memory.test", TOKEN, transport=script) as memory:
        with pytest.raises(InvalidParams) as refused:
            await getattr(memory, attribute)(*given, **fields)
    assert str(refused.value).startswith(said)
    assert refused.value.data["errors"][0]["field"] in said
    assert script.requests == []


async def test_an_error_does_not_quote_what_was_given() -> None:
    with pytest.raises(InvalidParams) as refused:
        await Recorder().store("the secret of Ada", importance="the secret of Bob")
    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None


async def test_a_value_given_twice_or_too_many_are_type_errors() -> None:
    memory = Recorder()
    with pytest.raises(TypeError, match="store got content twice"):
        await memory.store("tea", content="coffee")
    with pytest.raises(TypeError, match="list takes a ListParams"):
        await memory.list("anna")


async def test_only_the_given_fields_are_sent() -> None:
    script = Script(result({"count": 3, "receipt": {}}), result({"count": 4, "receipt": {}}))
    async with MemoryClient("http://memory.test", TOKEN, transport=script) as memory:
        assert (await memory.count(user_id="anna")).count == 3
        assert (await memory.batched().count()).count == 4
    assert [script.body(index)["params"] for index in (0, 1)] == [{"user_id": "anna"}, {}]


@pytest.mark.shows("B4-keywords")
def test_the_client_without_await_takes_them_too() -> None:
    script = Script(result({"count": 3, "receipt": {}}))
    with SyncMemoryClient("http://memory.test", TOKEN, transport=script) as memory:
        assert memory.count(user_id="anna").count == 3
        with pytest.raises(InvalidParams, match=r"memory\.count: user is not a known field"):
            memory.count(user="anna")  # type: ignore[call-overload]
    assert script.body(0)["params"] == {"user_id": "anna"}


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.shows("issue13-operations")
def test_the_manager_has_an_operation_of_the_same_types(method: AnyMethod) -> None:
    hints = get_type_hints(getattr(MemoryOperations, method.attribute))
    assert hints == {"params": method.params, "return": method.result}
    assert set(method.positional) <= set(method.params.model_fields)
