"""Who may erase, and what attests it: scopes, confirmation, the signed receipt, the log."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from agentcore.auth import mint_token
from agentcore.client import MemoryClient
from agentcore.errors import AuthenticationFailed, InvalidParams, NotAuthorised
from agentcore.memory.forgetting.erase_receipt import read_receipt
from agentcore.memory.params.erasing import EraseParams, EraseResult
from agentcore.memory.params.memories import CountParams
from agentcore.runtime import Runtime
from agentcore.server import create_app
from tests.fixtures.memory import Agent

EVERYTHING = EraseParams(all=True, confirm=True)
OF_ADA = EraseParams(user_id="ada", confirm=True)


# --- the receipt -------------------------------------------------------------------------------------------


def _read(runtime: Runtime, result: EraseResult) -> dict[str, Any]:
    assert result.signed_receipt is not None
    return read_receipt(runtime.parts.receipt_key(), result.signed_receipt)


async def test_the_receipt_tells_whose_what_when_and_by_whom(runtime: Runtime, agent: Agent) -> None:
    await agent.stored_id("Ada keeps bees on the roof.", user_id="ada")
    result = await agent.memory.erase(OF_ADA)
    told = _read(runtime, result)
    assert (told["agent_id"], told["user_id"], told["verified"]) == (agent.agent_id, "ada", True)
    assert (told["erased"], told["token_id"], told["trace_id"]) == (result.erased, "token-1", "t" * 32)
    assert "user_id" not in _read(runtime, await agent.memory.erase(EVERYTHING))


async def test_a_receipt_that_was_changed_or_is_a_token_is_none(runtime: Runtime, agent: Agent) -> None:
    receipt = (await agent.memory.erase(EVERYTHING)).signed_receipt
    assert receipt is not None
    head, body, signature = receipt.split(".")
    secret = runtime.settings.jwt_secret_key
    assert secret is not None
    token = mint_token(secret.get_secret_value(), agent.agent_id, ["memory:admin"], 600)
    for other in (f"{head}.{body[:-2]}AA.{signature}", f"{head}.{body}.{signature[::-1]}", token, "x"):
        with pytest.raises(InvalidParams):
            read_receipt(runtime.parts.receipt_key(), other)


async def test_a_receipt_opens_nothing(runtime: Runtime, agent: Agent) -> None:
    receipt = (await agent.memory.erase(EVERYTHING)).signed_receipt
    with pytest.raises(AuthenticationFailed):
        await runtime.verifier.verify(f"Bearer {receipt}")


async def test_the_log_says_that_it_happened_and_no_word_of_what(
    agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "agentcore")
    await agent.stored_id("The canoe is green.", user_id="ada")
    await agent.memory.erase(OF_ADA)
    [line] = [each for each in caplog.records if each.getMessage().startswith("memories were erased")]
    assert "memories 1" in line.getMessage()
    assert vars(line)["agent_id"] == agent.agent_id
    assert "canoe" not in caplog.text


# --- who may, and how --------------------------------------------------------------------------------------


async def test_it_needs_the_admin_scope(runtime: Runtime, agent: Agent) -> None:
    await agent.stored_id("The canoe is green.")
    secret = runtime.settings.jwt_secret_key
    assert secret is not None
    transport = httpx.ASGITransport(create_app(runtime))
    writer, admin = (
        MemoryClient("http://service", mint_token(secret.get_secret_value(), agent.agent_id, scopes, 600),
                     transport=transport, max_attempts=1)
        for scopes in (["memory:read", "memory:write"], ["memory:admin"]))
    with pytest.raises(NotAuthorised):
        await writer.erase(EVERYTHING)
    assert (await agent.memory.count(CountParams())).count == 1
    assert (await admin.erase(EVERYTHING)).verified
    await transport.aclose()


@pytest.mark.parametrize("given", [
    {}, {"all": True}, {"user_id": "ada"}, {"confirm": True}, {"user_id": "", "confirm": True},
    {"all": True, "user_id": "ada", "confirm": True}])
def test_what_does_not_say_whose_or_is_not_confirmed_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"all: true|confirm: true|at least 1"):
        EraseParams.model_validate(given)
