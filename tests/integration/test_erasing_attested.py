"""Scopes, confirmation, signed receipt and log of erasures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from typing import Any

import httpx
import pytest
from psycopg.errors import InsufficientPrivilege

from agentcore.auth import mint_token
from agentcore.client import MemoryClient
from agentcore.errors import AuthenticationFailed, InvalidParams, NotAuthorised
from agentcore.memory.forgetting import erasing, removing
from agentcore.memory.forgetting.erase_receipt import key_id_of, read_receipt, sign_receipt
from agentcore.memory.params.archived import EraseParams
from agentcore.memory.params.memories import CountParams
from agentcore.runtime import Runtime, open_runtime
from agentcore.server import create_app
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.services import Services

EVERYTHING = EraseParams(all=True, confirm=True)
OF_ADA = EraseParams(user_id="ada", confirm=True)


async def _read(runtime: Runtime, receipt: str | None) -> dict[str, Any]:
    assert receipt is not None
    key = await runtime.parts.storage.receipt_key()
    assert key_id_of(receipt) == key["key_id"]
    return read_receipt([key["key"]], receipt)


@pytest.mark.shows("issue4-8-receipt")
async def test_the_receipt_tells_whose_what_when_and_by_whom(runtime: Runtime, agent: Agent) -> None:
    await agent.stored_id("Ada keeps bees on the roof.", user_id="ada")
    result = await agent.memory.erase(OF_ADA)
    told = await _read(runtime, result.signed_receipt)
    assert (told["agent_id"], told["user_id"], told["verified"]) == (agent.agent_id, "ada", True)
    assert (told["erased"], told["token_id"], told["trace_id"]) == (result.erased, "token-1", "t" * 32)
    assert "user_id" not in await _read(runtime, (await agent.memory.erase(EVERYTHING)).signed_receipt)


@pytest.mark.shows("issue13-receipt-totals")
async def test_the_last_receipt_of_several_calls_states_the_sum_of_all(
    runtime: Runtime, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        await agent.stored_id(f"Ada saw heron {number}.", user_id="ada")
    monkeypatch.setattr(erasing, "ERASE_CHUNK", 2)
    monkeypatch.setattr(removing, "WRITE_DEADLINE_SECONDS", 0.0)
    first = await agent.memory.erase(OF_ADA)
    partial = await _read(runtime, first.signed_receipt)
    assert (partial["complete"], partial["verified"], partial["erased"]["memories"]) == (False, False, 2)
    second = await agent.memory.erase(OF_ADA.model_copy(update={"continues": first.signed_receipt}))
    last = await agent.memory.erase(OF_ADA.model_copy(update={"continues": second.signed_receipt}))
    told = await _read(runtime, last.signed_receipt)
    assert (told["complete"], told["verified"], told["since"]) == (True, True, partial["since"])
    assert told["erased"] == last.erased
    assert [each.erased["memories"] for each in (first, second, last)] == [2, 4, 5]


@pytest.mark.shows("issue13-receipt-totals")
async def test_only_an_unfinished_erasure_of_the_same_whose_can_be_continued(
    runtime: Runtime, agent: Agent, new_agent: Callable[..., Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = (await agent.memory.erase(OF_ADA)).signed_receipt
    for number in range(2):
        await agent.stored_id(f"Ada saw heron {number}.", user_id="ada")
    monkeypatch.setattr(erasing, "ERASE_CHUNK", 1)
    monkeypatch.setattr(removing, "WRITE_DEADLINE_SECONDS", 0.0)
    partial = (await agent.memory.erase(OF_ADA)).signed_receipt
    for whose, params, receipt in (
        (agent, OF_ADA, finished),
        (new_agent(), OF_ADA, partial),
        (agent, EVERYTHING, partial),
        (agent, OF_ADA, f"{partial}x"),
    ):
        with pytest.raises(InvalidParams):
            await whose.memory.erase(params.model_copy(update={"continues": receipt}))
    assert (await agent.memory.count(CountParams())).count == 1


async def test_a_forged_receipt_is_not_continued_and_creates_no_key(agent: Agent, runtime: Runtime) -> None:
    before = await runtime.parts.storage.receipt_key()
    forged = sign_receipt("another-key", b"a key of somebody else, 32 bytes", {"agent_id": agent.agent_id})
    with pytest.raises(InvalidParams):
        await agent.memory.erase(OF_ADA.model_copy(update={"continues": forged}))
    assert await runtime.parts.storage.receipt_key() == before


@pytest.mark.shows("B11")
async def test_a_receipt_verifies_after_the_token_secret_has_changed(
    runtime: Runtime, services: Services, agent: Agent
) -> None:
    receipt = (await agent.memory.erase(EVERYTHING)).signed_receipt
    old = runtime.settings.jwt_secret_key
    assert old is not None
    async with open_runtime(settings_for(services, jwt_secret_key=token_hex(32))) as changed:
        assert (await _read(changed, receipt))["agent_id"] == agent.agent_id
        token = mint_token(old.get_secret_value(), agent.agent_id, ["memory:admin"], 600)
        with pytest.raises(AuthenticationFailed):
            await changed.verifier.verify(f"Bearer {token}")


@pytest.mark.shows("issue13-receipt-keys")
async def test_the_services_role_cannot_read_the_keys_of_receipts(runtime: Runtime, agent: Agent) -> None:
    await agent.memory.erase(EVERYTHING)
    with pytest.raises(InsufficientPrivilege):
        async with runtime.database.transaction(agent.agent_id) as connection:
            await connection.execute("SELECT key FROM receipt_keys")


@pytest.mark.shows("issue13-receipt-keys")
async def test_two_servers_sign_with_keys_of_the_database_and_read_each_others_receipts(
    runtime: Runtime, services: Services, agent: Agent, tmp_path: Path
) -> None:
    async with open_runtime(settings_for(services, agentcore_home=tmp_path)) as other:
        receipt = (await Agent(other, agent.agent_id).memory.erase(EVERYTHING)).signed_receipt
    assert (await _read(runtime, receipt))["agent_id"] == agent.agent_id


@pytest.mark.shows("issue4-8-receipt")
async def test_a_receipt_that_was_changed_or_is_a_token_is_none(runtime: Runtime, agent: Agent) -> None:
    receipt = (await agent.memory.erase(EVERYTHING)).signed_receipt
    assert receipt is not None
    head, body, signature = receipt.split(".")
    secret = runtime.settings.jwt_secret_key
    assert secret is not None
    token = mint_token(secret.get_secret_value(), agent.agent_id, ["memory:admin"], 600)
    for other in (f"{head}.{body[:-2]}AA.{signature}", f"{head}.{body}.{signature[::-1]}", token, "x"):
        with pytest.raises(InvalidParams):
            await _read(runtime, other)


@pytest.mark.shows("issue4-8-receipt")
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


@pytest.mark.shows("issue4-8-erase")
async def test_it_needs_the_admin_scope(runtime: Runtime, agent: Agent) -> None:
    await agent.stored_id("The canoe is green.")
    secret = runtime.settings.jwt_secret_key
    assert secret is not None
    transport = httpx.ASGITransport(create_app(runtime))
    writer, admin = (
        MemoryClient(
            "http://service",
            mint_token(secret.get_secret_value(), agent.agent_id, scopes, 600),
            transport=transport,
            max_attempts=1,
        )
        for scopes in (["memory:read", "memory:write"], ["memory:admin"])
    )
    with pytest.raises(NotAuthorised):
        await writer.erase(EVERYTHING)
    assert (await agent.memory.count(CountParams())).count == 1
    assert (await admin.erase(EVERYTHING)).verified
    await transport.aclose()


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"all": True},
        {"user_id": "ada"},
        {"confirm": True},
        {"user_id": "", "confirm": True},
        {"all": True, "user_id": "ada", "confirm": True},
    ],
)
def test_what_does_not_say_whose_or_is_not_confirmed_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"all: true|confirm: true|at least 1"):
        EraseParams.model_validate(given)
