"""A2A: an example agent called with a JWT by another agent keeps its memory; the service's agent card."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from a2a.client import A2ACardResolver, A2AClientError, ClientConfig, create_client
from a2a.helpers import get_stream_response_text, new_text_message
from a2a.types import Role, SendMessageRequest
from a2a.utils.proto_utils import validate_proto_required_fields

from agentcore.agent_card import A2A_CONTEXT
from agentcore.auth import mint_token
from agentcore.client import MemoryClient
from agentcore.embedded import Home
from agentcore.errors import AuthenticationFailed, NotAuthorised
from agentcore.memory.params.memories import ListParams
from agentcore.server import ENDPOINT
from tests.fixtures.forked_commands import Done
from tests.fixtures.serving import ROOT, START_SECONDS, STOP_SECONDS, Serving

EXAMPLES = ROOT / "examples"
GUIDE = (ROOT / "docs" / "integrations" / "a2a.md").read_text(encoding="utf-8")
PARROTS = "I love African Grey parrots"
QUESTION = "What bird did I like?"
SECRET = "the librarian's own, of which the memory service knows nothing"


def calling(
    caller: str,
    secret: str = SECRET,
    ttl_seconds: float = 600,
    *,
    issuer: str = "librarian",
    audience: str = "librarian",
) -> str:
    """Returns a caller's token for the librarian agent."""
    return mint_token(secret, caller, (), ttl_seconds, issuer=issuer, audience=audience)


@contextmanager
def librarian(serving: Serving, agent_id: str) -> Iterator[str]:
    """Starts the example agent as a process and yields its URL."""
    own = {
        "AGENTCORE_URL": serving.url,
        "AGENTCORE_TOKEN": serving.token(agent_id),
        "LIBRARIAN_SECRET": SECRET,
        # This home has no service secret: the agent must work without it.
        "AGENTCORE_HOME": str(serving.home / "nowhere"),
    }
    process = subprocess.Popen(
        [sys.executable, str(EXAMPLES / "a2a_agent.py"), "--port", "0"],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**serving.environment, **own},
    )
    try:
        assert process.stdout is not None
        match = re.search(r"listens on (\S+)", process.stdout.readline())
        assert match is not None, process.communicate()
        yield match[1]
    finally:
        process.terminate()
        _, complaints = process.communicate(timeout=STOP_SECONDS)
    assert complaints == ""


async def asked(url: str, token: str | None, text: str) -> str:
    """Returns the answer to an A2A client of the SDK."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers) as http:
        agent = await create_client(url, ClientConfig(streaming=False, httpx_client=http))
        request = SendMessageRequest(
            message=new_text_message(text, role=Role.ROLE_USER),
            metadata={A2A_CONTEXT: {"session_id": "s-1", "source_agent": "somebody else"}},
        )
        return "".join([get_stream_response_text(event) async for event in agent.send_message(request)])


@pytest.fixture
def own_serving(new_serving: Callable[..., Serving]) -> Iterator[Serving]:
    """A service that a test may stop and start."""
    serving = new_serving(EMBEDDING_MODEL="local")
    serving.start()
    serving.await_listening()
    yield serving
    assert serving.stop() == 0


@pytest.mark.shows("issue6-shows-restart-A2A")
async def test_what_one_conversation_told_the_agent_the_next_is_answered_after_all_was_restarted(
    own_serving: Serving, agent_id: str
) -> None:
    serving = own_serving
    with librarian(serving, agent_id) as url:
        for said in (PARROTS, "The Hawaii budget is 3,000 dollars.", "Bruno plays cello on Sundays."):
            assert await asked(url, calling("planner"), said) == "I will remember that."
    assert serving.stop() == 0
    while serving.said.get(timeout=START_SECONDS):
        pass
    serving.start()
    serving.await_listening()
    with librarian(serving, agent_id) as url:
        assert await asked(url, calling("planner"), QUESTION) == f"You told me: {PARROTS}"
        assert "3,000" in await asked(url, calling("planner"), "What was the budget for Hawaii?")
        assert PARROTS not in await asked(url, calling("another"), QUESTION)


@pytest.mark.shows("issue6-5-A2A-agent")
async def test_the_agent_answers_nobody_without_a_good_token_and_keeps_who_called(
    serving: Serving, agent_id: str
) -> None:
    with librarian(serving, agent_id) as url:
        foreign = calling("planner", "of somebody else, who signs nothing here")
        for token in (None, "t.o.k", calling("planner", ttl_seconds=-60), foreign):
            with pytest.raises(A2AClientError, match="401"):
                await asked(url, token, PARROTS)
        assert await asked(url, calling("planner"), PARROTS) == "I will remember that."
    async with serving.client(agent_id) as memory:
        [record] = (await memory.list(ListParams())).memories
    context = record.provenance["a2a_context"]
    assert (context["source_agent"], context["target_agent"]) == ("planner", "librarian")
    assert (context["session_id"], context["conversation_id"]) == ("s-1", record.session_id)
    assert (record.user_id, record.speaker) == ("planner", "planner")


@pytest.mark.shows("issue6-5-A2A-agent")
async def test_a_token_made_for_something_else_calls_nobody(serving: Serving, agent_id: str) -> None:
    others = [
        serving.token("planner"),
        calling("planner", audience="archivist"),
        calling("planner", issuer="archivist"),
        mint_token(SECRET, "planner", ("memory:read",), 600),
    ]
    with librarian(serving, agent_id) as url:
        for token in others:
            with pytest.raises(A2AClientError, match="401"):
                await asked(url, token, PARROTS)


@pytest.mark.shows("issue6-5-A2A-agent")
async def test_a_callers_token_opens_no_memory(serving: Serving) -> None:
    own = Home(serving.home).secret("jwt")
    refusals = {calling("planner"): AuthenticationFailed, calling("planner", own): NotAuthorised}
    for token, refusal in refusals.items():
        async with MemoryClient(serving.url, token) as memory:
            with pytest.raises(refusal):
                await memory.list(ListParams())


@pytest.mark.shows("issue6-5-A2A-agent")
def test_the_commands_of_the_guide_work_as_printed(serving: Serving, agent_id: str, tmp_path: Path) -> None:
    [calls] = [
        block
        for block in re.findall(r"^```sh\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
        if "a2a_caller.py" in block
    ]
    with librarian(serving, agent_id) as url:
        done = run(calls.replace("http://127.0.0.1:9000", url), serving, tmp_path)
    assert done.returncode == 0, done.stderr
    first, second, third, goodbye = done.stdout.splitlines()
    assert (first, second, third) == ("I will remember that.", f"You told me: {PARROTS}", first)
    assert goodbye.startswith("Goodbye. We spoke of this: ")
    assert "HX-2210" in goodbye
    assert PARROTS not in goodbye
    assert f"`You told me: {PARROTS}`" in GUIDE


def run(script: str, serving: Serving, directory: Path) -> Done:
    """Runs the guide's script unchanged, with this Python and these examples."""
    lines = script.replace(".venv/bin/agentcore", f"{sys.executable} -m agentcore").replace(
        ".venv/bin/python examples", f"{sys.executable} {EXAMPLES}"
    )
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", lines],
        cwd=directory,
        text=True,
        capture_output=True,
        timeout=120,
        env={**serving.environment, "AGENTCORE_URL": serving.url, "LIBRARIAN_SECRET": SECRET},
        check=False,
    )


@pytest.mark.shows("issue6-shows-lines")
def test_the_lines_that_memory_costs_an_agent_are_those_of_the_example() -> None:
    [lines] = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    example = " ".join((EXAMPLES / "a2a_agent.py").read_text(encoding="utf-8").split())
    statements = [" ".join(each.split()) for each in re.split(r"\n(?=\S)", lines.strip())]
    assert len(statements) == 2
    assert [each for each in statements if each not in example] == []


@pytest.mark.shows("issue6-5-A2A-card")
async def test_the_services_card_is_found_by_the_sdk_without_a_token(serving: Serving) -> None:
    async with httpx.AsyncClient() as http:
        card = await A2ACardResolver(http, serving.url).get_agent_card()
    validate_proto_required_fields(card)
    assert card.supported_interfaces[0].url == serving.url + ENDPOINT
