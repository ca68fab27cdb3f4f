"""The task benchmark uses the running service: the agent reads exactly the lines of the context."""

from __future__ import annotations

import argparse
import re
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from agentcore.runtime import open_runtime
from benchmarks.service import SECRET, Service
from benchmarks.task_success import Memory
from benchmarks.tasks import Persona, Slot, Step, Task, Turn, attempt
from tests.fixtures.memory import settings_for
from tests.fixtures.services import Services

BEGIN = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
TOLD = (
    "The ferry to Gotland leaves at 07:15.",
    "The ferry to Gotland leaves at 11:40 these days.",
    "The bus to Uppsala leaves at 12:05.",
)
HOUR = Slot("hour of the ferry", "11:40", re.compile(r"Gotland leaves at (\d\d:\d\d)"), False, ("07:15",))
TICKET = Slot("ticket", "GT-4471", re.compile(r"ticket is (GT-\d+)"), False)
STEPS = (
    Step("Book the ferry to Gotland.", (HOUR,), "For {hour of the ferry}, the ticket is GT-4471."),
    Step("Which ticket is it?", (TICKET,), "It is {ticket}."),
)


@pytest.mark.parametrize("request_first", [False, True])
async def test_an_agent_reads_what_was_said_before_and_what_it_did_itself(
    services: Services, request_first: bool
) -> None:
    said = tuple(
        Turn(BEGIN + timedelta(days=place), "Ana", text, f"session-{place}") for place, text in enumerate(TOLD)
    )
    task = Task("gotland", BEGIN + timedelta(days=30), "Ana", STEPS)
    persona = Persona(f"traveller-{uuid.uuid4()}", said, (task,))
    options = argparse.Namespace(max_tokens=500, history=2)
    advanced: list[int] = []
    async with open_runtime(settings_for(services, jwt_secret_key=SECRET)) as runtime:
        memory = Memory(Service(runtime).call, persona, options, request_first=request_first)
        await memory.remember(advanced.append)
        outcome = await attempt(task, memory)
    assert sum(advanced) == len(TOLD)
    assert (outcome.done, outcome.turns, outcome.missing) == (True, 2, [])
    assert all("Ana" in context for context in outcome.contexts)
