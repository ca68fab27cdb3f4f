"""`agentcore erase` and its signed receipt."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agentcore.client import MemoryClient
from agentcore.memory.forgetting.erase_receipt import sign_receipt
from agentcore.memory.params.memories import CountParams, StoreBatchParams, StoreParams
from tests.fixtures.forked_commands import Done
from tests.fixtures.scripted_http import Received, Reply, scripted_http
from tests.fixtures.serving import Serving


async def _fill(memory: MemoryClient) -> None:
    await memory.store_batch(
        StoreBatchParams(
            items=[
                StoreParams(content=f"{user_id} saw heron {number}.", user_id=user_id)
                for user_id in ("ada", "ben")
                for number in range(3)
            ]
        )
    )


@pytest.mark.shows("issue4-8-receipt")
async def test_an_erasure_is_confirmed_done_attested_and_its_receipt_checked(
    run: Callable[..., Done], serving: Serving, memory: MemoryClient, agent_id: str, tmp_path: Path
) -> None:
    await _fill(memory)
    assert run("prune", "episodic", "--strategy", "oldest_first", "--target", "2").returncode == 0
    refused = run("erase", "--user", "ada", said="n\n")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "user ada (1 memory), archive included? This cannot be undone" in refused.stderr
    assert "nothing was erased" in refused.stderr
    erased = run("erase", "--user", "ada", said="y\n")
    assert (erased.returncode, len(erased.stdout.splitlines())) == (0, 1)
    assert "archived_memories: 2" in erased.stderr
    assert "nothing is left" in erased.stderr
    assert (await memory.count(CountParams())).count == 3

    checked = serving.cli("erase", "--check", erased.stdout.strip())
    told = json.loads(checked.stdout)
    assert (told["agent_id"], told["user_id"], told["verified"]) == (agent_id, "ada", True)
    assert told["erased"]["memories"] == 1
    kept = tmp_path / "receipt.jws"
    kept.write_text(erased.stdout)
    for given, said in ((str(kept), None), ("-", erased.stdout)):
        assert serving.cli("erase", "--check", given, said=said).stdout == checked.stdout
    for no_receipt in ("no-such-file.jws", "{}", "[", str(tmp_path)):
        refused = serving.cli("erase", "--check", no_receipt)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "the path of a file" in refused.stderr
    forged = serving.cli("erase", "--check", erased.stdout.strip()[:-4] + "AAAA")
    assert (forged.returncode, forged.stdout) == (1, "")
    assert "not one that this service signed" in forged.stderr

    everything = run("erase", "--all", "--yes", "--json")
    assert json.loads(everything.stdout)["verified"] is True
    kept.write_text(everything.stdout)
    assert json.loads(serving.cli("erase", "--check", str(kept)).stdout)["agent_id"] == agent_id
    assert (await memory.count(CountParams())).count == 0


@pytest.mark.shows("issue13-receipt-totals")
async def test_each_call_continues_the_one_before_so_that_the_last_receipt_is_of_all(serving: Serving) -> None:
    def answered(request: Received) -> Reply:
        continued = request.json["params"].get("continues")
        complete = continued == "receipt of the first 2"
        result = {
            "erased": {"memories": 5 if complete else 2},
            "verified": complete,
            "complete": complete,
            "signed_receipt": "receipt of all 5" if complete else "receipt of the first 2",
            "receipt": {},
        }
        return Reply({"jsonrpc": "2.0", "id": request.json["id"], "result": result})

    async with scripted_http(answered) as service:
        done = await asyncio.to_thread(serving.cli, "erase", "--all", "--yes", "--url", service.url, "--token", "t")
    assert (done.returncode, done.stdout) == (0, "receipt of all 5\n")
    assert len(service.received) == 2
    assert "memories: 5" in done.stderr


async def test_without_the_admin_scope_or_without_saying_whose_nothing_goes(
    run: Callable[..., Done], serving: Serving, memory: MemoryClient, agent_id: str
) -> None:
    await _fill(memory)
    token = serving.cli("token", "--agent", agent_id).stdout.strip()
    assert serving.cli("erase", "--all", "--yes", "--token", token).returncode == 1
    for arguments in ((), ("--all", "--user", "ada")):
        assert run("erase", *arguments, "--yes").returncode == 2
    assert (await memory.count(CountParams())).count == 6


def test_a_receipt_is_not_checked_where_no_service_runs(new_serving: Callable[..., Serving]) -> None:
    done = new_serving().cli("erase", "--check", sign_receipt("k1", bytes(32), {}))
    assert (done.returncode, done.stdout) == (1, "")
    assert "agentcore serve" in done.stderr
