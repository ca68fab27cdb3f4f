"""MCP: the SDK's client against a real service, over both transports."""

from __future__ import annotations

import json
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from agentcore.agents.tools import ALL_TOOLS, TOOLS, memory_instructions
from agentcore.client import MemoryClient
from agentcore.memory.params.memories import CountParams, GetParams, StoreParams
from agentcore.server import MCP_ENDPOINT
from tests.fixtures.mcp_clients import WAYS, failure, opened, text_of, told
from tests.fixtures.serving import ROOT, START_SECONDS, Serving

Connected = Callable[[], AbstractAsyncContextManager[Client]]
PARROTS = "I love African Grey parrots"
QUESTION = "What bird did I like?"
HAWAII = "My budget for the Hawaii trip is $10,000"
OTHERS = [
    "The tax office wants the papers by June.",
    "Bruno plays cello on Sundays.",
    "The blue bicycle needs a new chain.",
]
GUIDE = (ROOT / "docs" / "integrations" / "mcp.md").read_text(encoding="utf-8")
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


# Behavior common to both transports is tested over HTTP only, to save a process per test.
over_http = pytest.mark.parametrize("way", WAYS[:2], indirect=True)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def connected(serving: Serving, way: str, agent_id: str) -> Connected:
    """Returns a function that opens a client for this test's agent, for each transport."""
    return lambda: opened(serving, way, serving.token(agent_id))


@pytest.fixture(scope="module")
def local(new_serving: Callable[..., Serving]) -> Iterator[Serving]:
    """A service with the local embedding model and a fixed port across restarts."""
    serving = new_serving(EMBEDDING_MODEL="local")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    serving.start("--port", str(port))
    serving.await_listening()
    yield serving
    assert serving.stop() == 0


def restarted(serving: Serving) -> None:
    """Restarts the service at the same address."""
    assert serving.stop() == 0
    while serving.said.get(timeout=START_SECONDS):
        pass
    serving.start("--port", serving.url.rpartition(":")[2])
    serving.await_listening()


# --- memory across sessions ---------------------------------------------------------------------------------


@pytest.mark.shows("issue6-shows-restart-MCP")
async def test_what_one_session_saved_the_next_recalls_after_a_restart(local: Serving) -> None:
    agents = {way: f"agent-{uuid4()}" for way in WAYS}
    for way, agent in agents.items():
        async with opened(local, way, local.token(agent)) as first:
            for content in (*OTHERS, PARROTS, HAWAII):
                await told(first, "save_memory", content=content)
    restarted(local)
    for way, agent in agents.items():
        async with opened(local, way, local.token(agent)) as second:
            found = await told(second, "recall_memory", query=QUESTION)
            assert found["memories"][0]["content"] == PARROTS, way
            budget = await told(second, "recall_memory", query="What's my budget for the Hawaii trip?")
            assert budget["memories"][0]["content"] == HAWAII, way


@pytest.mark.shows("issue6-5-MCP")
async def test_open_clients_neither_hold_up_a_stop_nor_mind_a_restart(local: Serving, agent_id: str) -> None:
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(opened(local, way, local.token(agent_id))) for way in WAYS]
        await told(clients[0], "save_memory", content=PARROTS)
        restarted(local)
        for client in clients:
            assert (await told(client, "recall_memory", query=QUESTION))["memories"][0]["content"] == PARROTS


# --- listing of tools ---------------------------------------------------------------------------------------


@pytest.mark.shows("issue6-3-one-definition", "issue6-shows-tools")
async def test_the_tools_are_those_of_the_one_definition_with_the_same_schemas(connected: Connected) -> None:
    async with connected() as client:
        listed = (await client.list_tools()).tools
        assert tuple(tool.name for tool in listed) == ALL_TOOLS
        assert [(tool.description, tool.input_schema) for tool in listed] == [
            (tool.description, dict(tool.parameters)) for tool in TOOLS
        ]
        assert [tool.name for tool in listed if tool.annotations and tool.annotations.destructive_hint] == [
            "forget_memory"
        ]
        assert {tool.name for tool in listed if tool.annotations and tool.annotations.read_only_hint} == {
            "recall_memory",
            "prefetch_memory",
            "memory_session",
        }


@pytest.mark.shows("issue6-5-MCP")
async def test_a_memory_lives_its_life_by_tools_alone(connected: Connected) -> None:
    async with connected() as client:
        saved = await told(client, "save_memory", content="The Hawaii budget is 3,000 dollars.", tags=["a"])
        changed = await told(
            client, "update_memory", memory_id=saved["memory_id"], content="The Hawaii budget is 4,500 dollars."
        )
        assert changed["version"] == 2
        prefetched = await client.call_tool("prefetch_memory", {"message": "What is the budget for Hawaii?"})
        assert "4,500" in text_of(prefetched)
        around = await told(client, "memory_session", memory_id=saved["memory_id"])
        assert [each["memory_id"] for each in around["memories"]] == [saved["memory_id"]]
        proposed = await told(client, "forget_memory", query="Hawaii budget")
        assert proposed["would_forget"][0]["memory_id"] == saved["memory_id"]
        forgotten = await told(
            client, "forget_memory", memory_ids=[saved["memory_id"]], confirmation=proposed["confirmation"]
        )
        assert forgotten["deleted_count"] == 1
        assert "memories" not in await told(client, "recall_memory", query="Hawaii budget")


async def test_a_confirmation_holds_in_another_connection_of_the_same_token_and_for_no_other(
    serving: Serving, agent_id: str
) -> None:
    token, other = serving.token(agent_id), serving.token(agent_id, ttl_seconds=700)
    async with opened(serving, "http", token) as first:
        memory_id = (await told(first, "save_memory", content=PARROTS))["memory_id"]
        confirmation = (await told(first, "forget_memory", memory_ids=[memory_id]))["confirmation"]
    async with opened(serving, "http-handshake", other) as stranger:
        assert "Nothing was deleted" in await failure(
            stranger, "forget_memory", memory_ids=[memory_id], confirmation=confirmation
        )
    async with opened(serving, "http-handshake", token) as second:
        forgotten = await told(second, "forget_memory", memory_ids=[memory_id], confirmation=confirmation)
    assert forgotten["deleted_count"] == 1


async def test_the_instructions_explain_the_tools_offered(connected: Connected) -> None:
    async with connected() as client:
        assert client.instructions == memory_instructions(ALL_TOOLS)


# --- failures -----------------------------------------------------------------------------------------------


async def test_what_a_tool_cannot_do_is_a_result_that_a_model_can_act_on(connected: Connected) -> None:
    async with connected() as client:
        assert await failure(client, "recall_memory", query="") == "query is empty."
        assert "There is no such memory" in await failure(client, "update_memory", memory_id=str(uuid4()), content="x")
        assert "there are save_memory" in await failure(client, "read_mind")


@over_http
@pytest.mark.shows("issue6-5-MCP-gate")
async def test_a_token_that_may_only_read_can_recall_and_not_save(
    serving: Serving, memory: MemoryClient, way: str, agent_id: str
) -> None:
    await memory.store(StoreParams(content=PARROTS))
    async with opened(serving, way, serving.token(agent_id, scopes=("memory:read",))) as reader:
        assert (await told(reader, "recall_memory", query=QUESTION))["memories"][0]["content"] == PARROTS
        assert "lacks the permission" in await failure(reader, "save_memory", content="x")
        listed = [tool.name for tool in (await reader.list_tools()).tools]
        assert listed == ["recall_memory", "prefetch_memory", "memory_session"]
    assert (await memory.count(CountParams())).count == 1


@pytest.mark.shows("issue6-5-MCP-owner")
async def test_the_memory_of_another_agent_is_not_to_be_reached(
    serving: Serving, memory: MemoryClient, way: str
) -> None:
    stored = await memory.store(StoreParams(content=PARROTS, session_id="s", tags=["birds"]))
    theirs = str(stored.memory_id)
    async with opened(serving, way, serving.token(f"agent-{uuid4()}")) as stranger:
        mine = (await told(stranger, "save_memory", content="My own note."))["memory_id"]
        found = await told(stranger, "recall_memory", query=PARROTS, tags=["birds"])
        assert "memories" not in found
        told_first = await client_text(stranger, "prefetch_memory", message=PARROTS)
        assert "African" not in told_first
        for tool, arguments in (
            ("update_memory", {"memory_id": theirs, "content": "changed"}),
            ("memory_session", {"memory_id": theirs}),
            ("forget_memory", {"memory_ids": [theirs]}),
            ("forget_memory", {"memory_ids": [mine, theirs]}),
        ):
            assert "There is no such memory" in await failure(stranger, tool, **arguments)
    assert stored.memory_id is not None
    assert (await memory.get(GetParams(memory_id=stored.memory_id))).memory.content == PARROTS


async def client_text(client: Client, tool: str, **arguments: Any) -> str:
    return text_of(await client.call_tool(tool, arguments))


@pytest.mark.parametrize(("ttl_seconds", "reason"), [(-60, "expired"), (None, "malformed")])
@over_http
async def test_a_bad_token_ends_the_connection_with_its_reason(
    serving: Serving, agent_id: str, way: str, ttl_seconds: float | None, reason: str
) -> None:
    token = "t.o.k" if ttl_seconds is None else serving.token(agent_id, ttl_seconds=ttl_seconds)
    with pytest.raises(ExceptionGroup) as raised:
        async with opened(serving, way, token):
            pass
    refusals = [error for error in _leaves(raised.value) if isinstance(error, MCPError)]
    assert [reason in refusal.message for refusal in refusals] == [True]


def _leaves(group: BaseExceptionGroup[Any]) -> Iterator[BaseException]:
    for error in group.exceptions:
        yield from _leaves(error) if isinstance(error, BaseExceptionGroup) else (error,)


async def test_the_trace_of_a_message_stays_with_what_its_tool_stored(
    serving: Serving, memory: MemoryClient, agent_id: str
) -> None:
    trace_id = uuid4().hex
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "save_memory", "arguments": {"content": PARROTS}},
    }
    headers = {
        "Authorization": f"Bearer {serving.token(agent_id)}",
        "Accept": "application/json, text/event-stream",
        "traceparent": f"00-{trace_id}-00f067aa0ba902b7-01",
    }
    async with httpx.AsyncClient(headers=headers) as http:
        answer = (await http.post(serving.url + MCP_ENDPOINT, json=call)).json()
    saved = json.loads(answer["result"]["content"][0]["text"])
    record = (await memory.get(GetParams(memory_id=saved["memory_id"]))).memory
    assert record.provenance["trace_id"] == trace_id
    assert record.provenance["token_id"]


# --- stdio --------------------------------------------------------------------------------------------------


async def test_the_options_confine_the_tools_to_a_user_and_a_namespace(
    serving: Serving, memory: MemoryClient, agent_id: str
) -> None:
    outside = await memory.store(StoreParams(content=PARROTS, user_id="bob"))
    token = serving.token(agent_id)
    async with opened(serving, "stdio", token, ["--user", "ada", "--namespace", "home"]) as confined:
        assert "memories" not in await told(confined, "recall_memory", query=PARROTS)
        saved = await told(confined, "save_memory", content="Ada keeps bees.")
        assert "There is no such memory" in await failure(confined, "memory_session", memory_id=str(outside.memory_id))
    record = (await memory.get(GetParams(memory_id=saved["memory_id"]))).memory
    assert (record.user_id, record.namespace) == ("ada", "home")


@pytest.mark.parametrize("end", ["input", signal.SIGTERM, signal.SIGINT])
@pytest.mark.shows("issue6-5-MCP")
def test_stdio_prints_nothing_but_messages_and_ends_when_asked(
    serving: Serving, agent_id: str, end: signal.Signals | str
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "agentcore", "mcp"],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**serving.environment, "AGENTCORE_URL": "http://127.0.0.1:9", "AGENTCORE_TOKEN": serving.token(agent_id)},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        said = []
        for message in (
            HELLO,
            {
                "jsonrpc": "2.0",
                "id": 2,
                "method": "tools/call",
                "params": {"name": "recall_memory", "arguments": {"query": "anything"}},
            },
        ):
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            said.append(json.loads(process.stdout.readline()))
        assert said[0]["result"]["serverInfo"]["name"] == "agentcore-memory"
        assert said[1]["result"]["isError"] is True
        assert "is not available" in said[1]["result"]["content"][0]["text"]
        if isinstance(end, signal.Signals):
            process.send_signal(end)
        rest, complaints = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert (rest, complaints) == ("", "")
    assert process.returncode == (-end if isinstance(end, signal.Signals) else 0)


@pytest.mark.shows("issue6-5-MCP-extra")
def test_a_command_that_cannot_work_says_why_on_stderr_alone(serving: Serving, tmp_path: Path) -> None:
    without_token = serving.cli("mcp", said="", AGENTCORE_TOKEN="")
    assert without_token.returncode == 1
    assert "No token" in without_token.stderr
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['mcp'] = None\n")
    without_extra = serving.cli("mcp", said="", PYTHONPATH=f"{tmp_path}:{ROOT}", AGENTCORE_TOKEN="t.o.k")
    assert without_extra.returncode == 1
    assert "pip install 'agentcore-memory[mcp]'" in without_extra.stderr
    assert without_token.stdout == without_extra.stdout == ""


# --- the guide ---------------------------------------------------------------------------------------------


@pytest.mark.shows("issue6-5-MCP")
async def test_the_configuration_of_the_guide_starts_a_server_that_answers(serving: Serving, agent_id: str) -> None:
    [block] = re.findall(r"^```json\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    [entry] = json.loads(block)["mcpServers"].values()
    assert entry["command"] == "agentcore"
    own = {"AGENTCORE_URL": serving.url, "AGENTCORE_TOKEN": serving.token(agent_id)}
    assert own.keys() == entry["env"].keys()
    command = shlex.split(f"{shlex.quote(sys.executable)} -m agentcore")
    program = StdioServerParameters(
        command=command[0], args=[*command[1:], *entry["args"]], env={**serving.environment, **own}
    )
    async with Client(program) as client:
        assert (await told(client, "save_memory", content=PARROTS))["status"] == "stored"


def test_the_guide_names_every_tool() -> None:
    assert [name for name in ALL_TOOLS if f"| `{name}` |" not in GUIDE] == []
