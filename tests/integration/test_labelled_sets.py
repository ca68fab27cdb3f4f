"""Labeled conversations as the benchmarks store them, also in a home that was used before."""

from __future__ import annotations

import uuid

import pytest

from agentcore.runtime import open_runtime
from benchmarks.contexts import summarise
from benchmarks.labelled import Conversation, remember
from benchmarks.service import SECRET, Service
from tests.fixtures.memory import settings_for
from tests.fixtures.services import Services

SAID = ("The ferry to Gotland leaves at 07:15.", "Rui paints boats in Olhos de Agua.", "Ines moved to Porto.")


async def test_a_home_is_measured_again_until_its_sessions_have_summaries(services: Services) -> None:
    memories = [{"id": text, "timestamp": "2026-03-01T09:00", "text": text, "session_id": "talk"} for text in SAID]
    talk = Conversation("own", f"own-{uuid.uuid4()}", memories, [])
    async with open_runtime(settings_for(services, jwt_secret_key=SECRET)) as runtime:
        service = Service(runtime)
        advanced: list[int] = []
        for _ in range(2):
            await remember(service.call, talk, advanced.append)
        await summarise(service, talk)
        with pytest.raises(SystemExit, match=r"holds summaries .* need another --home"):
            await remember(service.call, talk, advanced.append)
    assert advanced == [len(SAID), len(SAID)]
