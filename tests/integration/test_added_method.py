"""A method is one descriptor and one operation: the service, its contract and the client follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import pytest

from agentcore.auth import TokenVerifier
from agentcore.call_queue import CallQueue
from agentcore.client import MemoryClient
from agentcore.config import Settings
from agentcore.errors import InvalidParams, NotAuthorised
from agentcore.memory.api import Caller, MemoryApi, Method, methods_of
from agentcore.memory.jsonrpc import memory_methods, schema_document, service_document
from agentcore.memory.manager import MemoryManager, MemoryOperations
from agentcore.memory.models import Strict
from agentcore.memory.params.memories import ListParams
from agentcore.runtime import Runtime
from agentcore.server import ENDPOINT, create_app
from agentcore.telemetry import Metrics
from tests.fixtures.memory_faces import token_of


class SpeakersParams(Strict):
    limit: int = 10


class SpeakersResult(Strict):
    speakers: list[str]


class WiderApi(MemoryApi):
    speakers = Method(
        SpeakersParams, SpeakersResult, "memory:read", "Returns the speakers of the newest memories.", for_users=True
    )


class WiderOperations(MemoryOperations):
    async def speakers(self, params: SpeakersParams) -> SpeakersResult:
        found = await self.list(ListParams(limit=params.limit))
        return SpeakersResult(speakers=sorted({each.speaker for each in found.memories if each.speaker}))


class WiderManager(WiderApi, MemoryManager):
    operations = WiderOperations

    def __init__(self, runtime: Runtime, caller: Caller) -> None:
        super().__init__(runtime.parts, caller)


class WiderClient(WiderApi, MemoryClient):
    """The client needs nothing of its own."""


@dataclass
class WiderRuntime:
    runtime: Runtime

    @property
    def settings(self) -> Settings:
        return self.runtime.settings

    @property
    def verifier(self) -> TokenVerifier:
        return self.runtime.verifier

    @property
    def metrics(self) -> Metrics:
        return self.runtime.metrics

    @property
    def calls(self) -> CallQueue:
        return self.runtime.calls

    def manager_for(self, caller: Caller) -> MemoryApi:
        return WiderManager(self.runtime, caller)

    async def readiness(self) -> dict[str, dict[str, Any]]:
        return await self.runtime.readiness()


@pytest.mark.shows("issue15-shows-added-method")
async def test_a_descriptor_and_an_operation_are_a_method_of_service_contract_and_client(runtime: Runtime) -> None:
    methods = memory_methods(methods_of(WiderApi))
    app = create_app(WiderRuntime(runtime), methods=methods)
    agent_id = f"agent-{uuid4()}"

    def client(*scopes: str) -> WiderClient:
        return WiderClient("http://wider", token_of(runtime, agent_id, scopes), transport=httpx.ASGITransport(app))

    async with client("memory:read", "memory:write") as memory:
        await memory.store(content="The ferry leaves at nine.", speaker="Ada")
        assert (await memory.speakers(limit=5)).speakers == ["Ada"]
        with pytest.raises(InvalidParams, match="limit"):
            await memory.speakers(limit="many")
    read = {"authorization": f"Bearer {token_of(runtime, agent_id, ['memory:read'])}"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://wider") as http:
        call = {"jsonrpc": "2.0", "id": 1, "method": "memory.speakers", "params": {"limit": "many"}}
        answer = (await http.post(ENDPOINT, json=call, headers=read)).json()
    assert (answer["error"]["code"], answer["error"]["data"]["errors"][0]["field"]) == (-32602, "limit")
    async with client("memory:write") as memory:
        with pytest.raises(NotAuthorised):
            await memory.speakers()
    described = {each["name"]: each for each in service_document(methods)["methods"]}
    assert described["memory.speakers"]["summary"] == WiderApi.speakers.summary
    assert [each["name"] for each in described["memory.speakers"]["params"]] == ["limit"]
    assert "memory.speakers.result" in schema_document(methods, "wider")["$defs"]
