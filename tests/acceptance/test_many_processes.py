"""Two service processes on one database; `make bench ARGS=eight_processes` does the same with eight."""

from __future__ import annotations

import argparse
import secrets

import pytest

from benchmarks.eight_processes import measure
from benchmarks.together.traffic import Account
from benchmarks.together.verdict import judge
from tests.fixtures.databases import migrated_database
from tests.fixtures.memory import Agent
from tests.fixtures.services import Services

SHORT = {"seconds": 3.0, "servers": 2, "workers": 0, "agents": 2, "clients": 3}


@pytest.mark.shows("issue4-shows-processes")
async def test_processes_on_one_database_lose_no_update_and_have_one_leader(services: Services) -> None:
    options = argparse.Namespace(**SHORT, seed=secrets.randbelow(1_000_000))
    with migrated_database(services) as own:
        environment = {
            "DATABASE_URL": own.url,
            "REDIS_URL": services.redis_url,
            "AGENTCORE_HOME": str(services.home),
            "EMBEDDING_MODEL": "hashing",
            "EMBEDDING_DIMENSIONS": "64",
            "LOG_LEVEL": "ERROR",
            "JWT_SECRET_KEY": "a secret of the tests, long enough for HS256",
        }
        good, figures = await measure(own.url, environment, options, tell=lambda line: None)
    assert good, figures
    assert figures["acknowledged_changes"] > 0


@pytest.mark.shows("issue4-shows-processes")
async def test_the_verdict_sees_an_update_that_was_lost(services: Services, agent: Agent) -> None:
    memory_id = await agent.stored_id("Meter 1 stands at 0.", metadata={"count": 0})
    place = agent.agent_id, memory_id
    account = Account()
    account.versions[place], account.increments[place] = [2], 1
    found = await judge(services.database_url, account, [])
    assert (found["lost_updates"], found["wrong_versions"], found["wrong_counts"]) == (1, 1, 1)
